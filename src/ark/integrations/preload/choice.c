#include "choice.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "lock.h"
#include "settings.h"

enum {
    PEERS_MAX = ARK_PEERS_MAX, /* full: one without connections makes room, else no preference */
    PATHS_MAX = ARK_PATHS_MAX, /* further ones are not used */
    LEFT_MAX = 256, /* reservations to be released by who next has the lock; full: by the agent, as leaks */
};

/* How long an unknown target is not asked about again. */
static const int64_t REFUSED_NS = 10 * (int64_t)1000000000;

struct path {
    uint16_t number;
    uint8_t count;
    _Atomic uint32_t uses; /* open connections of this process */
    struct ark_lane lanes[ARK_PORTS_MAX];
};

struct peer {
    struct ark_way way;
    uint8_t sets;               /* sets of lanes that the agent has given over this connection to it */
    uint64_t handles[ARK_PORTS_MAX];
    uint32_t path_count;
    int64_t refused_until_ns;
    char reason[ARK_REASON_MAX];
    struct path paths[PATHS_MAX];
};

static struct ark_lock lock = ARK_LOCK_FREE;
static struct peer peers[PEERS_MAX];
static uint32_t peer_count;
static uint64_t handle_next = 1;
static uint32_t turn; /* where looking for the least used path begins: not at the same one in all processes */

static _Atomic uint64_t left[LEFT_MAX];

static struct peer *peer_of(ark_claim claim)
{
    return &peers[ark_claim_peer(claim)];
}

static struct path *path_of(ark_claim claim)
{
    return &peer_of(claim)->paths[ark_claim_path(claim)];
}

void ark_choice_begin(void)
{
    ark_claims_begin();
    peer_count = 0;
    turn = (uint32_t)getpid() * 2654435761u ^ (uint32_t)ark_now_ns();
    for (uint32_t i = 0; i < LEFT_MAX; i++)
        atomic_store(&left[i], 0);
    ark_agent_forget();
    ark_lock_free(&lock);
}

/* With the lock: release what was left while others had it. */
static void release_left(void)
{
    for (uint32_t i = 0; i < LEFT_MAX; i++) {
        uint64_t handle = atomic_load_explicit(&left[i], memory_order_relaxed);
        if (handle != 0 && atomic_compare_exchange_strong(&left[i], &handle, 0)) {
            uint8_t request[32];
            ark_agent_tell(request, ark_release(request, sizeof request, handle));
        }
    }
}

static bool is_any_left(void)
{
    for (uint32_t i = 0; i < LEFT_MAX; i++)
        if (atomic_load(&left[i]) != 0)
            return true;
    return false;
}

/* Free the lock; whoever found it taken meanwhile has left work to do. */
static void unlock(void)
{
    do {
        release_left();
        ark_lock_free(&lock);
    } while (is_any_left() && ark_lock_try(&lock));
}

void ark_leave(ark_claim claim)
{
    if (!ark_claim_is_mine(claim))
        return;
    uint64_t handle = ark_claim_handle(claim);
    atomic_fetch_sub(&path_of(claim)->uses, 1);
    if (handle == 0)
        return;
    for (uint32_t i = 0; i < LEFT_MAX; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&left[i], &none, handle))
            break;
    }
    if (ark_lock_try(&lock))
        unlock();
}

static bool is_used(const struct peer *peer)
{
    for (uint32_t i = 0; i < peer->path_count; i++)
        if (atomic_load(&peer->paths[i].uses) != 0)
            return true;
    return false;
}

/* What the agent has given for a peer is given back, or gone with the connection to it. */
static void forget_sets(struct peer *peer, bool tell)
{
    for (uint32_t i = 0; tell && i < peer->sets; i++) {
        uint8_t request[32];
        ark_agent_tell(request, ark_release(request, sizeof request, peer->handles[i]));
    }
    peer->sets = 0;
    peer->refused_until_ns = 0;
    for (uint32_t i = 0; i < peer->path_count; i++)
        peer->paths[i].count = 0;
}

static struct peer *new_peer(struct peer *room, const struct ark_way *way)
{
    memset(room, 0, sizeof *room);
    room->way = *way;
    return room;
}

static struct peer *find_peer(const struct ark_way *way)
{
    for (uint32_t i = 0; i < peer_count; i++) {
        struct peer *peer = &peers[i];
        if (strcmp(peer->way.target, way->target) == 0 && strcmp(peer->way.nic, way->nic) == 0
            && peer->way.dport == way->dport && peer->way.proto == way->proto)
            return peer;
    }
    if (peer_count < PEERS_MAX)
        return new_peer(&peers[peer_count++], way);
    for (uint32_t i = 0; i < PEERS_MAX; i++)
        if (!is_used(&peers[i])) {
            forget_sets(&peers[i], true);
            return new_peer(&peers[i], way);
        }
    return NULL;
}

static struct path *find_path(struct peer *peer, uint16_t number)
{
    for (uint32_t i = 0; i < peer->path_count; i++)
        if (peer->paths[i].number == number)
            return &peer->paths[i];
    if (peer->path_count == PATHS_MAX)
        return NULL;
    struct path *made = &peer->paths[peer->path_count++];
    made->number = number;
    return made;
}

/* Keep a lane unless its port is known or none. */
static void keep_lane(struct path *path, const struct ark_lane *lane)
{
    if (path == NULL || lane->source_port == 0 || path->count == ARK_PORTS_MAX)
        return;
    for (uint32_t i = 0; i < path->count; i++)
        if (path->lanes[i].source_port == lane->source_port)
            return;
    path->lanes[path->count++] = *lane;
}

static struct ark_reply reply; /* read with the lock held */

/* Ask for one more port on each path. */
static bool ask_lanes(struct peer *peer, int64_t deadline_ns)
{
    uint8_t request[ARK_REQUEST_MAX];
    uint64_t handle = handle_next++;
    if (peer->sets == ARK_PORTS_MAX)
        return false;
    size_t length = ark_lanes(request, sizeof request, handle, &peer->way);
    if (!ark_agent_ask(request, length, handle, deadline_ns, &reply)) {
        strcpy(peer->reason, "no agent answers");
        return false;
    }
    if (reply.kind == ARK_GRANT)
        peer->handles[peer->sets++] = handle;
    for (uint32_t i = 0; i < reply.lane_count; i++)
        keep_lane(find_path(peer, reply.lanes[i].path), &reply.lanes[i]);
    if (reply.kind == ARK_REFUSAL || reply.lane_count == 0) {
        peer->refused_until_ns = ark_now_ns() + REFUSED_NS;
        memcpy(peer->reason, reply.reason, sizeof peer->reason);
        return false;
    }
    return true;
}

/* Reserve a path for a transfer of the size that the settings say; NULL for no preference. */
static struct path *ask_transfer(struct peer *peer, int64_t deadline_ns, uint64_t *handle)
{
    uint8_t request[ARK_REQUEST_MAX];
    *handle = handle_next++;
    size_t length = ark_acquire(request, sizeof request, *handle, &peer->way, ark_settings.size_bytes);
    if (!ark_agent_ask(request, length, *handle, deadline_ns, &reply)) {
        strcpy(peer->reason, "no agent answers");
        return NULL;
    }
    struct path *path = reply.lane_count > 0 ? find_path(peer, reply.lanes[0].path) : NULL;
    if (path != NULL) {
        keep_lane(path, &reply.lanes[0]);
    } else {
        if (reply.kind == ARK_GRANT)
            ark_agent_tell(request, ark_release(request, sizeof request, *handle));
        else
            peer->refused_until_ns = ark_now_ns() + REFUSED_NS;
        memcpy(peer->reason, reply.reason, sizeof peer->reason);
    }
    return path;
}

static struct path *least_used(struct peer *peer)
{
    struct path *best = NULL;
    turn++;
    for (uint32_t i = 0; i < peer->path_count; i++) {
        struct path *path = &peer->paths[(i + turn) % peer->path_count];
        if (path->count != 0 && (best == NULL || atomic_load(&path->uses) < atomic_load(&best->uses)))
            best = path;
    }
    return best;
}

/* The path for one more connection: NULL for no preference. */
static struct path *choose_path(struct peer *peer, int64_t deadline_ns, uint64_t *handle)
{
    *handle = 0;
    if (ark_now_ns() < peer->refused_until_ns)
        return NULL;
    if (ark_settings.size_bytes != 0)
        return ask_transfer(peer, deadline_ns, handle);
    if (peer->sets == 0 && !ask_lanes(peer, deadline_ns))
        return NULL;
    struct path *path = least_used(peer);
    if (path == NULL)
        strcpy(peer->reason, "no known port leads to any path");
    else if (atomic_load(&path->uses) >= path->count)
        ask_lanes(peer, deadline_ns); /* a port of its own for each connection, as long as there are some */
    return path;
}

/* Fill in the ways to the path, beginning at the one that is next in turn. */
static void fill(struct ark_choice *choice, const struct peer *peer, struct path *path, uint64_t handle)
{
    uint32_t first = atomic_fetch_add(&path->uses, 1);
    choice->claim = ark_claim_make((uint32_t)(peer - peers), (uint32_t)(path - peer->paths), handle);
    choice->path = path->number;
    choice->count = path->count;
    for (uint32_t i = 0; i < path->count; i++)
        choice->lanes[i] = path->lanes[(first + i) % path->count];
}

/* With the lock: connect to the agent if need be. */
static bool is_agent_ready(int64_t deadline_ns)
{
    bool is_new;
    bool ready = ark_agent_ready(deadline_ns, &is_new);
    for (uint32_t i = 0; is_new && i < peer_count; i++)
        forget_sets(&peers[i], false);
    return ready;
}

bool ark_choose(const struct ark_way *way, struct ark_choice *choice)
{
    int64_t deadline_ns = ark_now_ns() + ark_settings.wait_ns;
    int cancel;
    choice->claim = 0;
    choice->count = 0;
    strcpy(choice->reason, "no agent answers");
    if (!ark_is_owner() || !ark_lock_until(&lock, deadline_ns))
        return false;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (is_agent_ready(deadline_ns)) {
        struct peer *peer = find_peer(way);
        uint64_t handle;
        struct path *path = peer == NULL ? NULL : choose_path(peer, deadline_ns, &handle);
        if (path != NULL)
            fill(choice, peer, path, handle);
        else if (peer == NULL)
            strcpy(choice->reason, "too many peers");
        else
            memcpy(choice->reason, peer->reason, sizeof choice->reason);
    }
    unlock();
    pthread_setcancelstate(cancel, NULL);
    return choice->claim != 0;
}

/* A lane of a path whose port a choice does not have yet; NULL if there is none. */
static const struct ark_lane *unknown_lane(const struct path *path, const struct ark_choice *choice)
{
    for (uint32_t i = 0; i < path->count; i++) {
        bool is_known = false;
        for (uint32_t k = 0; k < choice->count; k++)
            is_known |= choice->lanes[k].source_port == path->lanes[i].source_port;
        if (!is_known)
            return &path->lanes[i];
    }
    return NULL;
}

bool ark_choose_port(struct ark_choice *choice)
{
    int64_t deadline_ns = ark_now_ns() + ark_settings.wait_ns;
    int cancel;
    const struct ark_lane *found = NULL;
    if (choice->count == ARK_PORTS_MAX || !ark_claim_is_mine(choice->claim) || !ark_lock_until(&lock, deadline_ns))
        return false;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (is_agent_ready(deadline_ns)) {
        found = unknown_lane(path_of(choice->claim), choice);
        while (found == NULL && ask_lanes(peer_of(choice->claim), deadline_ns))
            found = unknown_lane(path_of(choice->claim), choice);
    }
    if (found != NULL)
        choice->lanes[choice->count++] = *found;
    unlock();
    pthread_setcancelstate(cancel, NULL);
    return found != NULL;
}
