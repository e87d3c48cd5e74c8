#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOCKET_DEFAULT "/run/ark/agent.sock"

enum { WAIT_MS_DEFAULT = 20, WAIT_MS_MAX = 10 * 1000 };

/* Largest transfer of the local API. */
static const uint64_t SIZE_MAX_BYTES = (uint64_t)1 << 50;

struct ark_settings ark_settings;

/* A number out of the environment; `otherwise` where there is none, or it is out of bounds. */
static uint64_t number(const char *name, uint64_t max, uint64_t otherwise)
{
    const char *text = secure_getenv(name);
    if (text == NULL || *text < '0' || *text > '9')
        return otherwise;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && value <= max ? value : otherwise;
}

/* Copy a text out of the environment; false where there is none or it is too long. */
static bool text(const char *name, char *into, size_t size)
{
    const char *found = secure_getenv(name);
    if (found == NULL || *found == '\0' || strlen(found) >= size)
        return false;
    strcpy(into, found);
    return true;
}

void ark_settings_read(void)
{
    struct ark_settings *s = &ark_settings;
    const char *run = secure_getenv("ARK_RUN");
    s->on = run == NULL || strcmp(run, "off") != 0;
    if (!text("ARK_SOCKET", s->socket, sizeof s->socket))
        strcpy(s->socket, SOCKET_DEFAULT);
    snprintf(s->off_file, sizeof s->off_file, "%s.off", s->socket);
    text("ARK_RUN_LOG", s->log, sizeof s->log);
    s->size_bytes = number("ARK_RUN_SIZE", SIZE_MAX_BYTES, 0);
    s->wait_ns = (int64_t)number("ARK_RUN_WAIT_MS", WAIT_MS_MAX, WAIT_MS_DEFAULT) * 1000000;
}

bool ark_is_on(void)
{
    return ark_settings.on && access(ark_settings.off_file, F_OK) != 0;
}
