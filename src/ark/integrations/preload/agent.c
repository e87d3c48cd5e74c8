#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lock.h"
#include "real.h"
#include "settings.h"

enum {
    FD_MIN = 512,               /* our descriptor is moved above those that a program counts on */
    RETRY_NS = 250 * 1000000,   /* how long an agent that did not answer is left alone */
    HOLD_MAX_NS = 100 * 1000000 /* longest hold that is believed */
};

/* Descriptor and inode of the socket. A program may close all descriptors and reuse the numbers: before each
 * use the inode says whether it is still ours. */
static int fd = -1;
static ino_t inode;

static int64_t hold_ns;
static int64_t retry_at_ns;

static uint8_t input[ARK_REPLY_MAX];
static size_t input_used;

static bool is_ours(void)
{
    struct stat found;
    return fd >= 0 && fstat(fd, &found) == 0 && S_ISSOCK(found.st_mode) && found.st_ino == inode;
}

static void end(void)
{
    if (is_ours())
        ark_real_close(fd);
    fd = -1;
    input_used = 0;
    retry_at_ns = ark_now_ns() + RETRY_NS;
}

void ark_agent_forget(void)
{
    if (is_ours())
        ark_real_close(fd);
    fd = -1;
    input_used = 0;
    retry_at_ns = 0;
}

static bool send_all(const uint8_t *bytes, size_t length)
{
    if (length > 0 && is_ours() && send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length)
        return true;
    end();
    return false;
}

enum outcome { DONE, LATE, BROKEN };

/* Wait for bytes and take them in. */
static enum outcome receive(int64_t deadline_ns)
{
    for (;;) {
        int64_t left_ns = deadline_ns - ark_now_ns();
        if (!is_ours())
            return BROKEN;
        if (left_ns < 0)
            return LATE;
        struct timespec left = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        int ready = ppoll(&waiting, 1, &left, NULL);
        if (ready == 0)
            return LATE;
        ssize_t got = ready < 0 ? -1 : recv(fd, input + input_used, sizeof input - input_used, MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return BROKEN;
        input_used += (size_t)got;
        return DONE;
    }
}

/* Take the next whole frame out of the input; LATE if none is there. */
static enum outcome next_reply(struct ark_reply *reply)
{
    if (input_used < 4)
        return LATE;
    size_t length = ark_frame_length(input);
    if (length == 0)
        return BROKEN;
    if (input_used < length)
        return LATE;
    bool good = ark_read_reply(input + 4, length - 4, reply);
    input_used -= length;
    memmove(input, input + length, input_used);
    return good ? DONE : BROKEN;
}

static bool is_wanted(const struct ark_reply *reply, uint64_t handle)
{
    if (handle == 0)
        return reply->kind == ARK_WELCOME;
    return reply->handle == handle && (reply->kind == ARK_GRANT || reply->kind == ARK_REFUSAL);
}

/* Read until the answer about a handle is there; handle 0 stands for the welcome. */
static enum outcome read_until(uint64_t handle, int64_t deadline_ns, struct ark_reply *reply)
{
    for (;;) {
        enum outcome found = next_reply(reply);
        if (found == DONE && is_wanted(reply, handle))
            return DONE;
        if (found == LATE)
            found = receive(deadline_ns);
        if (found != DONE)
            return found;
    }
}

static bool open_socket(void)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    memcpy(where.sun_path, ark_settings.socket, sizeof where.sun_path);
    int low = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (low < 0)
        return false;
    fd = fcntl(low, F_DUPFD_CLOEXEC, FD_MIN);
    if (fd < 0)
        fd = low;
    else
        ark_real_close(low);
    struct stat made;
    if (fstat(fd, &made) != 0) {
        ark_real_close(fd);
        fd = -1;
        return false;
    }
    inode = made.st_ino;
    return ark_real_connect(fd, (const struct sockaddr *)&where, sizeof where) == 0;
}

/* What this program is called: ASCII, for the agent takes no broken UTF-8. */
static void own_name(char *into, size_t size)
{
    snprintf(into, size, "%.40s:%d", program_invocation_short_name, (int)getpid());
    for (; *into != '\0'; into++)
        if (*into < ' ' || *into > '~')
            *into = '?';
}

static bool be_welcomed(int64_t deadline_ns)
{
    static struct ark_reply reply;
    char name[64];
    uint8_t hello[128];
    own_name(name, sizeof name);
    if (!send_all(hello, ark_hello(hello, sizeof hello, name)))
        return false;
    if (read_until(0, deadline_ns, &reply) != DONE)
        return false;
    hold_ns = reply.hold_ns < HOLD_MAX_NS ? (int64_t)reply.hold_ns : HOLD_MAX_NS;
    return true;
}

bool ark_agent_ready(int64_t deadline_ns, bool *is_new)
{
    *is_new = false;
    char ended;
    if (is_ours() && recv(fd, &ended, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
        return ark_now_ns() >= retry_at_ns;
    if (fd >= 0) {
        end();
        retry_at_ns = 0; /* that it has ended does not say that there is no new one */
    }
    if (ark_now_ns() < retry_at_ns)
        return false;
    *is_new = true;
    if (open_socket() && be_welcomed(deadline_ns))
        return true;
    end();
    return false;
}

bool ark_agent_ask(const uint8_t *request, size_t length, uint64_t handle, int64_t deadline_ns,
                   struct ark_reply *reply)
{
    if (!send_all(request, length))
        return false;
    enum outcome read = read_until(handle, deadline_ns + hold_ns, reply);
    if (read == LATE) {
        uint8_t release[32];
        retry_at_ns = ark_now_ns() + RETRY_NS;
        send_all(release, ark_release(release, sizeof release, handle));
    } else if (read == BROKEN) {
        end();
    }
    return read == DONE;
}

void ark_agent_tell(const uint8_t *request, size_t length)
{
    if (fd >= 0)
        send_all(request, length);
}
