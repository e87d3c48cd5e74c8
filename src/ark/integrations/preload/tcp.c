/* TCP: connect() from a port that leads over the chosen path.
 *
 * The kernel is told the one port that it may take (IP_LOCAL_PORT_RANGE): it then refuses in connect() what is
 * in use, the socket stays as it was, and the next port can be tried. A port outside of the kernel's own range,
 * or before Linux 6.3, is bound to; strictly, so that no later connect() can fail for that. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "address.h"
#include "choice.h"
#include "log.h"
#include "real.h"
#include "settings.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51 /* Linux 6.3, include/uapi/linux/in.h */
#endif

enum { FDS_MAX = 65536 }; /* descriptors above are steered, but their connections not counted */

static _Atomic ark_claim claims[FDS_MAX];
static _Atomic bool deferred[FDS_MAX]; /* bound to an address; the port is still to be chosen */

static bool is_kept(int fd)
{
    return fd >= 0 && fd < FDS_MAX;
}

static bool is_tcp(int fd)
{
    int type = 0, protocol = 0;
    socklen_t length = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
        return false;
    length = sizeof protocol;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 && protocol == IPPROTO_TCP;
}

static bool name_of(int fd, union ark_address *name)
{
    socklen_t length = sizeof *name;
    memset(name, 0, sizeof *name);
    return ark_real_getsockname(fd, &name->any, &length) == 0
        && (name->any.sa_family == AF_INET || name->any.sa_family == AF_INET6);
}

/* The address from which the kernel would send to a target; connecting a UDP socket sends nothing. */
static bool source_for(const union ark_address *target, union ark_address *source)
{
    int probe = socket(target->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return false;
    bool found = ark_real_connect(probe, &target->any, ark_address_length(target)) == 0 && name_of(probe, source);
    ark_real_close(probe);
    return found;
}

/* Whether a connection can be steered: where it leads, and its own side. */
static bool is_steerable(int fd, const union ark_address *target, union ark_address *source, struct ark_way *way)
{
    if (ark_address_port(target) == 0 || !is_tcp(fd) || !name_of(fd, source))
        return false;
    if (source->any.sa_family != target->any.sa_family || ark_address_port(source) != 0)
        return false; /* the program chose the port, or the connection is under way */
    if (ark_address_is_any(source) && !source_for(target, source))
        return false;
    ark_address_text(target, way->target, sizeof way->target);
    ark_address_text(source, way->nic, sizeof way->nic);
    way->dport = ark_address_port(target);
    way->proto = ARK_TCP;
    return *way->target != '\0' && strcmp(way->target, way->nic) != 0; /* to itself: no fabric */
}

/* The kernel's own range, as of this process's network namespace now. */
static bool is_in_kernel_range(uint16_t port)
{
    unsigned low = 0, high = 0;
    char text[32];
    int file = open("/proc/sys/net/ipv4/ip_local_port_range", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t got = read(file, text, sizeof text - 1);
    ark_real_close(file);
    text[got < 0 ? 0 : got] = '\0';
    return sscanf(text, "%u %u", &low, &high) == 2 && port >= low && port <= high;
}

static bool bind_strictly(int fd, union ark_address *source, uint16_t port)
{
    int shared = 0, none = 0;
    socklen_t length = sizeof shared;
    getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shared, &length);
    if (shared)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &none, sizeof none);
    ark_address_set_port(source, port);
    bool bound = ark_real_bind(fd, &source->any, ark_address_length(source)) == 0;
    if (shared)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &shared, sizeof shared);
    return bound;
}

/* Connect from one port; false if that is in use, and the socket as it was. */
static bool connect_from(int fd, const union ark_address *target, union ark_address *source, uint16_t port,
                         int *result)
{
    uint32_t range = (uint32_t)port << 16 | port, before = 0;
    socklen_t length = sizeof before;
    if (is_in_kernel_range(port) && getsockopt(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &before, &length) == 0
        && setsockopt(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof range) == 0) {
        *result = ark_real_connect(fd, &target->any, ark_address_length(target));
        int error = errno;
        setsockopt(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &before, sizeof before);
        errno = error;
        if (*result == 0 || error != EADDRNOTAVAIL)
            return true;
    }
    if (!bind_strictly(fd, source, port))
        return false;
    *result = ark_real_connect(fd, &target->any, ark_address_length(target));
    return true;
}

static int steer(int fd, const union ark_address *target, union ark_address *source, const struct ark_way *way,
                 struct ark_choice *choice)
{
    int result;
    for (unsigned i = 0; i < choice->count || ark_choose_port(choice); i++) {
        uint16_t port = choice->lanes[i].source_port;
        if (!connect_from(fd, target, source, port, &result))
            continue;
        ark_log("tcp", way, choice, port);
        bool is_open = result == 0 || errno == EINPROGRESS || errno == EINTR;
        if (is_open && is_kept(fd))
            ark_leave(atomic_exchange(&claims[fd], choice->claim)); /* of a connection closed unseen */
        else
            ark_leave(choice->claim);
        return result;
    }
    ark_log("tcp", way, choice, 0);
    ark_leave(choice->claim);
    return ark_real_connect(fd, &target->any, ark_address_length(target));
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    union ark_address target, source;
    struct ark_way way;
    struct ark_choice choice;
    if (ark_real_connect == NULL)
        ark_real_find();
    int before = errno;
    bool asked = ark_settings.on && ark_address_copy(&target, address, length)
        && is_steerable(fd, &target, &source, &way) && ark_is_on();
    bool chosen = asked && ark_choose(&way, &choice);
    if (is_kept(fd))
        atomic_store(&deferred[fd], false);
    errno = before;
    if (chosen)
        return steer(fd, &target, &source, &way, &choice);
    if (asked)
        ark_log("tcp", &way, &choice, 0);
    return ark_real_connect(fd, address, length);
}

/* Binding to an address of ours but to no port: leave the port to connect(), which may choose it then. */
EXPORT int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    union ark_address wanted;
    int yes = 1, before = 0;
    socklen_t size = sizeof before;
    if (ark_real_connect == NULL)
        ark_real_find();
    if (!ark_settings.on || !is_kept(fd) || !ark_address_copy(&wanted, address, length)
        || ark_address_port(&wanted) != 0 || ark_address_is_any(&wanted) || !is_tcp(fd)
        || getsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &before, &size) != 0 || before != 0
        || setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes) != 0)
        return ark_real_bind(fd, address, length);
    int result = ark_real_bind(fd, address, length);
    atomic_store(&deferred[fd], result == 0);
    if (result != 0) {
        int error = errno;
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &before, sizeof before);
        errno = error;
    }
    return result;
}

/* Who asks for the port before connecting gets one now, as without us. */
EXPORT int getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
    union ark_address name;
    int no = 0, before = errno;
    if (ark_real_connect == NULL)
        ark_real_find();
    if (is_kept(fd) && atomic_load(&deferred[fd]) && atomic_exchange(&deferred[fd], false) && name_of(fd, &name)
        && ark_address_port(&name) == 0 && !ark_address_is_any(&name)) {
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &no, sizeof no);
        ark_real_bind(fd, &name.any, ark_address_length(&name));
    }
    errno = before;
    return ark_real_getsockname(fd, address, length);
}

EXPORT int close(int fd)
{
    ark_claim claim = 0;
    if (ark_real_connect == NULL)
        ark_real_find();
    if (is_kept(fd) && (atomic_load(&claims[fd]) != 0 || atomic_load(&deferred[fd])) && ark_is_owner()) {
        claim = atomic_exchange(&claims[fd], 0);
        atomic_store(&deferred[fd], false);
    }
    int result = ark_real_close(fd);
    int error = errno;
    ark_leave(claim);
    errno = error;
    return result;
}
