/* Which path a new connection takes, and from which ports that is reached.
 *
 * An unmodified program keeps its connections: a connection is a lane, ready for transfers of which nobody
 * tells us. It claims no load. The agent says which ports lead to each path; the path that the fewest of this
 * process's open connections to that peer take comes first. With ARK_RUN_SIZE a connection is one transfer of
 * that size: the agent chooses by all that is reserved, and the reservation ends when the connection closes. */
#ifndef ARK_CHOICE_H
#define ARK_CHOICE_H

#include <stdbool.h>

#include "claim.h"
#include "messages.h"

enum { ARK_PORTS_MAX = 16 }; /* ports of one path: as many as the agent keeps */

struct ark_choice {
    ark_claim claim;
    uint16_t path;
    uint8_t count;                        /* of ports */
    struct ark_lane lanes[ARK_PORTS_MAX]; /* ways to the path, the one to be tried first at the front */
    char reason[ARK_REASON_MAX];          /* why there is no preference */
};

/* Choose a path for a connection; false for no preference. Takes at most ARK_RUN_WAIT_MS and the agent's hold. */
bool ark_choose(const struct ark_way *way, struct ark_choice *choice);

/* Ask for one more port to the chosen path, as all known ones are in use; false if there is none. */
bool ark_choose_port(struct ark_choice *choice);

/* A connection is closed; nothing happens for no claim or one of a parent. Safe in a signal handler, never waits. */
void ark_leave(ark_claim claim);

/* Set up for this process; in a forked child all that the parent had is forgotten. */
void ark_choice_begin(void);

#endif
