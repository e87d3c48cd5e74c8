#include "lock.h"

#include <time.h>

enum { PAUSE_NS = 100 * 1000 }; /* between two looks at a lock that another thread has */

int64_t ark_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool ark_lock_try(struct ark_lock *lock)
{
    return !atomic_flag_test_and_set_explicit(&lock->taken, memory_order_acquire);
}

bool ark_lock_until(struct ark_lock *lock, int64_t deadline_ns)
{
    while (!ark_lock_try(lock)) {
        if (ark_now_ns() >= deadline_ns)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return true;
}

void ark_lock_free(struct ark_lock *lock)
{
    atomic_flag_clear_explicit(&lock->taken, memory_order_release);
}
