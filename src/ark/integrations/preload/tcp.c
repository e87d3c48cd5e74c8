/* TCP: connect() from a port that leads over the chosen path.
 *
 * The kernel is told the one port that it may take (IP_LOCAL_PORT_RANGE): it then refuses in connect() what is
 * in use, the socket stays as it was, and the next port can be tried. A port outside of the kernel's own range,
 * or before Linux 6.3, is bound to; strictly, so that no later connect() can fail for that. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
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

/* Let a socket be routed as another one: by its device and its mark. */
static bool route_like(int fd, int probe)
{
    char device[IF_NAMESIZE] = "";
    uint32_t mark = 0;
    socklen_t named = sizeof device, marked = sizeof mark;
    return getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, &named) == 0
        && getsockopt(fd, SOL_SOCKET, SO_MARK, &mark, &marked) == 0
        && (named == 0 || setsockopt(probe, SOL_SOCKET, SO_BINDTODEVICE, device, named) == 0)
        && (mark == 0 || setsockopt(probe, SOL_SOCKET, SO_MARK, &mark, sizeof mark) == 0);
}

/* The address from which the kernel would send to a target; connecting a UDP socket sends nothing. */
static bool source_for(int fd, const union ark_address *target, union ark_address *source)
{
    int probe = socket(target->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return false;
    bool found = route_like(fd, probe)
        && ark_real_connect(probe, &target->any, ark_address_length(target)) == 0 && name_of(probe, source);
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
    if (ark_address_is_any(source) && !source_for(fd, target, source))
        return false;
    ark_address_text(target, way->target, sizeof way->target);
    ark_address_text(source, way->nic, sizeof way->nic);
    way->dport = ark_address_port(target);
    way->proto = ARK_TCP;
    return *way->target != '\0' && strcmp(way->target, way->nic) != 0; /* to itself: no fabric */
}

/* What the kernel says of ports, as of this process's network namespace now; empty if it says nothing. */
static void read_kernel(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, text, size - 1);
    if (file >= 0)
        ark_real_close(file);
    text[got < 0 ? 0 : got] = '\0';
}

static bool is_in_kernel_range(uint16_t port)
{
    unsigned low = 0, high = 0;
    char text[32];
    read_kernel("/proc/sys/net/ipv4/ip_local_port_range", text, sizeof text);
    return sscanf(text, "%u %u", &low, &high) == 2 && port >= low && port <= high;
}

/* Whether the administrator keeps a port for a service: a list like 8080,9000-9100. */
static bool is_reserved(uint16_t port)
{
    char text[4096];
    read_kernel("/proc/sys/net/ipv4/ip_local_reserved_ports", text, sizeof text);
    for (const char *next = text; *next != '\0'; next += *next == ',') {
        unsigned low = 0, high = 0;
        int parts = sscanf(next, "%u-%u", &low, &high);
        if (parts > 0 && port >= low && port <= (parts == 2 ? high : low))
            return true;
        next += strcspn(next, ",");
    }
    return false;
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

/* Connect from one port; false if that is in use or reserved, and the socket as it was. */
static bool connect_from(int fd, const union ark_address *target, union ark_address *source, uint16_t port,
                         int *result)
{
    uint32_t range = (uint32_t)port << 16 | port, before = 0;
    socklen_t length = sizeof before;
    if (is_reserved(port))
        return false;
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

/* Keep the claim of a connection for close(), or leave it where that can't know of it. */
static void keep(int fd, ark_claim claim)
{
    ark_leave(is_kept(fd) ? atomic_exchange(&claims[fd], claim) : claim); /* of a connection closed unseen */
}

/* Leave a claim that is kept; nothing happens if close() has done that meanwhile. */
static void give_up(int fd, ark_claim claim)
{
    int error = errno;
    if (is_kept(fd) && atomic_compare_exchange_strong(&claims[fd], &(ark_claim){claim}, 0))
        ark_leave(claim);
    errno = error;
}

/* The claim is kept before the call: it may block, its thread be cancelled, and another close the socket. */
static int steer(int fd, const union ark_address *target, union ark_address *source, const struct ark_way *way,
                 struct ark_choice *choice)
{
    int result;
    keep(fd, choice->claim);
    for (unsigned i = 0; i < choice->count || ark_choose_port(choice); i++) {
        uint16_t port = choice->lanes[i].source_port;
        if (!connect_from(fd, target, source, port, &result))
            continue;
        ark_log("tcp", way, choice, port);
        if (result != 0 && errno != EINPROGRESS && errno != EINTR)
            give_up(fd, choice->claim);
        return result;
    }
    ark_log("tcp", way, choice, 0);
    give_up(fd, choice->claim);
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
