#include "claim.h"

#include <stdatomic.h>
#include <unistd.h>

enum { LIFE_BITS = 12, PEER_BITS = 10, PATH_BITS = 6, HANDLE_BITS = 36 };
enum { PATH_AT = HANDLE_BITS, PEER_AT = PATH_AT + PATH_BITS, LIFE_AT = PEER_AT + PEER_BITS };

_Static_assert(LIFE_AT + LIFE_BITS == 64, "a claim fills its number");
_Static_assert(ARK_PEERS_MAX == 1 << PEER_BITS && ARK_PATHS_MAX == 1 << PATH_BITS, "as the header says");

static _Atomic pid_t owner;
static _Atomic uint32_t life;

static uint64_t part(ark_claim claim, unsigned at, unsigned bits)
{
    return claim >> at & ((1ULL << bits) - 1);
}

void ark_claims_begin(void)
{
    uint32_t begun = (atomic_load(&life) + 1) % (1u << LIFE_BITS);
    atomic_store(&life, begun == 0 ? 1 : begun); /* so that no claim is 0 */
    atomic_store(&owner, getpid());
}

ark_claim ark_claim_make(uint32_t peer, uint32_t path, uint64_t handle)
{
    return (uint64_t)atomic_load(&life) << LIFE_AT | (uint64_t)peer << PEER_AT | (uint64_t)path << PATH_AT
        | part(handle, 0, HANDLE_BITS);
}

uint32_t ark_claim_peer(ark_claim claim)
{
    return (uint32_t)part(claim, PEER_AT, PEER_BITS);
}

uint32_t ark_claim_path(ark_claim claim)
{
    return (uint32_t)part(claim, PATH_AT, PATH_BITS);
}

uint64_t ark_claim_handle(ark_claim claim)
{
    return part(claim, 0, HANDLE_BITS);
}

bool ark_is_owner(void)
{
    return getpid() == atomic_load(&owner);
}

bool ark_claim_is_mine(ark_claim claim)
{
    return claim != 0 && part(claim, LIFE_AT, LIFE_BITS) == atomic_load(&life) && ark_is_owner();
}
