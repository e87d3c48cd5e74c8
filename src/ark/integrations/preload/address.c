#include "address.h"

#include <arpa/inet.h>
#include <string.h>

bool ark_address_copy(union ark_address *into, const struct sockaddr *from, socklen_t length)
{
    memset(into, 0, sizeof *into);
    if (from == NULL || length < sizeof from->sa_family || length > sizeof *into)
        return false;
    if (!(from->sa_family == AF_INET && length >= sizeof into->four)
        && !(from->sa_family == AF_INET6 && length >= sizeof into->six))
        return false;
    memcpy(into, from, length);
    return true;
}

socklen_t ark_address_length(const union ark_address *address)
{
    return address->any.sa_family == AF_INET ? sizeof address->four : sizeof address->six;
}

uint16_t ark_address_port(const union ark_address *address)
{
    return ntohs(address->any.sa_family == AF_INET ? address->four.sin_port : address->six.sin6_port);
}

void ark_address_set_port(union ark_address *address, uint16_t port)
{
    if (address->any.sa_family == AF_INET)
        address->four.sin_port = htons(port);
    else
        address->six.sin6_port = htons(port);
}

bool ark_address_is_any(const union ark_address *address)
{
    if (address->any.sa_family == AF_INET)
        return address->four.sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&address->six.sin6_addr);
}

void ark_gid_text(const uint8_t gid[16], char *into, size_t size)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool is_four = memcmp(gid, mapped, sizeof mapped) == 0;
    if (inet_ntop(is_four ? AF_INET : AF_INET6, is_four ? gid + 12 : gid, into, (socklen_t)size) == NULL)
        *into = '\0';
}

void ark_address_text(const union ark_address *address, char *into, size_t size)
{
    if (address->any.sa_family != AF_INET)
        ark_gid_text(address->six.sin6_addr.s6_addr, into, size);
    else if (inet_ntop(AF_INET, &address->four.sin_addr, into, (socklen_t)size) == NULL)
        *into = '\0';
}
