/* The process's connection to the agent of its host. All calls are made with the lock held (choice.c). */
#ifndef ARK_AGENT_H
#define ARK_AGENT_H

#include <stdbool.h>

#include "messages.h"

/* Begin to use the agent before `deadline_ns`: whether it answers. `is_new` tells that what an earlier
 * connection held is gone. */
bool ark_agent_ready(int64_t deadline_ns, bool *is_new);

/* Send a request and read until the answer about `handle` is there, or `deadline_ns` and the agent's hold are
 * over. Without an answer in time what was asked for is released, and the agent left alone for a while. */
bool ark_agent_ask(const uint8_t *request, size_t length, uint64_t handle, int64_t deadline_ns,
                   struct ark_reply *reply);

/* Send a request that has no answer; the connection ends if the agent does not take it at once. */
void ark_agent_tell(const uint8_t *request, size_t length);

/* In a forked child: leave the connection to the parent. */
void ark_agent_forget(void);

#endif
