#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "real.h"
#include "settings.h"

void ark_log(const char *what, const struct ark_way *way, const struct ark_choice *choice, uint16_t port)
{
    char line[512];
    if (*ark_settings.log == '\0')
        return;
    int before = errno;
    int used = snprintf(line, sizeof line - 1, "pid=%d kind=%s source=%s target=%s dport=%u ", (int)getpid(), what,
                        *way->nic ? way->nic : "-", way->target, way->dport);
    if (port != 0)
        used += snprintf(line + used, sizeof line - 1 - (size_t)used, "path=%u port=%u", choice->path, port);
    else
        used += snprintf(line + used, sizeof line - 1 - (size_t)used, "not steered: %s",
                         choice->claim != 0 ? "all known ports are in use" : choice->reason);
    if (used > (int)sizeof line - 2)
        used = (int)sizeof line - 2;
    line[used++] = '\n';
    int fd = open(ark_settings.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                  0600); /* a pipe that nobody reads is not waited for */
    if (fd >= 0) {
        ssize_t written = write(fd, line, (size_t)used);
        (void)written; /* a full disk is no reason to disturb the program */
        ark_real_close(fd);
    }
    errno = before;
}
