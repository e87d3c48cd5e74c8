/* What the environment says, read once when the library is loaded; and the switch that turns all of it off. */
#ifndef ARK_SETTINGS_H
#define ARK_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

struct ark_settings {
    bool on;               /* ARK_RUN=off ends steering for this program and its children */
    char socket[108];      /* ARK_SOCKET: where the agent listens */
    char off_file[120];    /* the socket's name and ".off": while this file exists, nothing is asked */
    char log[256];         /* ARK_RUN_LOG: one line a connection is appended there; "" for none */
    uint64_t size_bytes;   /* ARK_RUN_SIZE: each connection is a transfer of so much; 0: a lane */
    int64_t wait_ns;       /* ARK_RUN_WAIT_MS: how long an answer may take */
};

extern struct ark_settings ark_settings;

void ark_settings_read(void);

/* Whether anything is to be steered now. */
bool ark_is_on(void);

#endif
