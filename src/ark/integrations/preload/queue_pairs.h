/* Which claim each open queue pair holds, by its address in this process. */
#ifndef ARK_QUEUE_PAIRS_H
#define ARK_QUEUE_PAIRS_H

#include "choice.h"

struct ark_held {
    ark_claim claim;
    uint16_t source_port;
};

/* In a forked child: whoever had the lock is not there. */
void ark_queue_pairs_begin(void);

/* Remember a queue pair's claim, in place of an older one, which is left. */
void ark_hold(const void *queue_pair, struct ark_held held);

/* What a queue pair holds; a claim of 0 for nothing. */
struct ark_held ark_held_by(const void *queue_pair);

/* A queue pair is reset or destroyed. */
void ark_let_go(const void *queue_pair);

#endif
