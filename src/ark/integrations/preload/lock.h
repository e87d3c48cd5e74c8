/* A lock that gives up: whoever waits for the agent must never make another thread wait longer than the limit.
 *
 * Plain atomics, so that a signal handler may try it and a forked child may reset it. */
#ifndef ARK_LOCK_H
#define ARK_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ark_lock {
    atomic_flag taken;
};

#define ARK_LOCK_FREE {ATOMIC_FLAG_INIT}

/* Monotonic nanoseconds. */
int64_t ark_now_ns(void);

/* Whether the lock was free; never waits. */
bool ark_lock_try(struct ark_lock *lock);

/* Whether the lock could be had before `deadline_ns`. */
bool ark_lock_until(struct ark_lock *lock, int64_t deadline_ns);

void ark_lock_free(struct ark_lock *lock);

#endif
