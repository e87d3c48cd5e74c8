#include "queue_pairs.h"

#include <stddef.h>

#include "lock.h"

/* A hash table with linear probing. Full: further queue pairs are steered, but not counted as uses of a path. */
enum { SLOTS = 16384, KEPT_MAX = SLOTS / 4 * 3, WAIT_NS = 20 * 1000000 };

static const char removed; /* its address marks a slot whose queue pair has gone */

static struct slot {
    const void *queue_pair;
    struct ark_held held;
} slots[SLOTS];

static unsigned used; /* slots that are not free: queue pairs and marks */
static struct ark_lock lock = ARK_LOCK_FREE;

/* The slot of a queue pair, or NULL. */
static struct slot *find(const void *queue_pair)
{
    size_t place = (size_t)((uintptr_t)queue_pair >> 4) * 2654435761u;
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[(place + i) % SLOTS];
        if (slot->queue_pair == queue_pair)
            return slot;
        if (slot->queue_pair == NULL)
            return NULL;
    }
    return NULL;
}

/* A slot to put a queue pair into, or NULL. */
static struct slot *room(const void *queue_pair)
{
    size_t place = (size_t)((uintptr_t)queue_pair >> 4) * 2654435761u;
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[(place + i) % SLOTS];
        if (slot->queue_pair == &removed)
            return slot;
        if (slot->queue_pair == NULL) {
            if (used == KEPT_MAX)
                return NULL;
            used++;
            return slot;
        }
    }
    return NULL;
}

void ark_queue_pairs_begin(void)
{
    ark_lock_free(&lock);
}

void ark_hold(const void *queue_pair, struct ark_held held)
{
    ark_claim before = held.claim;
    if (ark_lock_until(&lock, ark_now_ns() + WAIT_NS)) {
        struct slot *slot = find(queue_pair);
        if (slot != NULL) {
            before = slot->held.claim;
            slot->held = held;
        } else if ((slot = room(queue_pair)) != NULL) {
            before = 0;
            *slot = (struct slot){queue_pair, held};
        }
        ark_lock_free(&lock);
    }
    ark_leave(before);
}

struct ark_held ark_held_by(const void *queue_pair)
{
    struct ark_held held = {0};
    if (ark_lock_until(&lock, ark_now_ns() + WAIT_NS)) {
        const struct slot *slot = find(queue_pair);
        if (slot != NULL)
            held = slot->held;
        ark_lock_free(&lock);
    }
    return held;
}

void ark_let_go(const void *queue_pair)
{
    ark_claim before = 0;
    if (ark_lock_until(&lock, ark_now_ns() + WAIT_NS)) {
        struct slot *slot = find(queue_pair);
        if (slot != NULL) {
            before = slot->held.claim;
            slot->queue_pair = &removed;
        }
        ark_lock_free(&lock);
    }
    ark_leave(before);
}
