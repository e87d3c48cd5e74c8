/* A connection's claim of a path: what is kept of it until the connection closes.
 *
 * One number, so that close() can take it out of a table atomically: 12 bits of life, 10 of the peer, 6 of the
 * path, 36 of the reservation's handle (0: a lane). Lives count the forks between the first process and this
 * one: a child neither has nor gives up what its parent claims. */
#ifndef ARK_CLAIM_H
#define ARK_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t ark_claim; /* 0 for none */

enum { ARK_PEERS_MAX = 1 << 10, ARK_PATHS_MAX = 1 << 6 }; /* that a claim can tell apart */

/* In a new process: no claim made so far is its own. */
void ark_claims_begin(void);

ark_claim ark_claim_make(uint32_t peer, uint32_t path, uint64_t handle);
uint32_t ark_claim_peer(ark_claim claim);
uint32_t ark_claim_path(ark_claim claim);
uint64_t ark_claim_handle(ark_claim claim);

/* Whether this process is the one that our memory belongs to: a child of vfork() shares its parent's. */
bool ark_is_owner(void);

/* Whether this process made the claim. */
bool ark_claim_is_mine(ark_claim claim);

#endif
