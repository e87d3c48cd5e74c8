/* Addresses as the agent reads them. */
#ifndef ARK_ADDRESS_H
#define ARK_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

union ark_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_storage room;
};

/* Copy an IPv4 or IPv6 socket address; false for any other. */
bool ark_address_copy(union ark_address *into, const struct sockaddr *from, socklen_t length);

socklen_t ark_address_length(const union ark_address *address);
uint16_t ark_address_port(const union ark_address *address);
void ark_address_set_port(union ark_address *address, uint16_t port);
bool ark_address_is_any(const union ark_address *address);

/* The address without its port, as text; IPv4 within IPv6 (also of a GID) as IPv4. */
void ark_address_text(const union ark_address *address, char *into, size_t size);
void ark_gid_text(const uint8_t gid[16], char *into, size_t size);

#endif
