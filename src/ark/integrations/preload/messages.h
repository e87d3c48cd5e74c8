/* The messages of the local API that a connection needs. docs/reference/local-api.md describes them. */
#ifndef ARK_MESSAGES_H
#define ARK_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ARK_REQUEST_MAX = 1024,    /* bytes of the longest request that we send */
    ARK_REPLY_MAX = 64 * 1024, /* bytes of the longest reply that we read: 1024 lanes take a third of it */
    ARK_NAME_MAX = 64,         /* an address as text, with its final zero */
    ARK_REASON_MAX = 160,
    ARK_LANES_MAX = 1024,
    ARK_TCP = 6,
    ARK_UDP = 17,
};

/* Where to, and from which NIC: "" leaves that to the agent. */
struct ark_way {
    char target[ARK_NAME_MAX];
    char nic[ARK_NAME_MAX];
    uint16_t dport;
    uint8_t proto;
};

struct ark_lane {
    uint16_t path, source_port;
    uint32_t flow_label;
};

enum ark_reply_kind { ARK_WELCOME, ARK_GRANT, ARK_REFUSAL, ARK_OTHER };

struct ark_reply {
    enum ark_reply_kind kind;
    uint64_t handle;              /* of a grant or a refusal */
    uint64_t hold_ns;             /* of a welcome */
    uint32_t lane_count;          /* of a grant */
    struct ark_lane lanes[ARK_LANES_MAX];
    char reason[ARK_REASON_MAX];  /* of a refusal, or of a grant without lanes */
};

/* Each writes a whole frame and returns its length; 0 if it does not fit. */
size_t ark_hello(uint8_t *into, size_t size, const char *name);
size_t ark_acquire(uint8_t *into, size_t size, uint64_t handle, const struct ark_way *way, uint64_t size_bytes);
size_t ark_lanes(uint8_t *into, size_t size, uint64_t handle, const struct ark_way *way);
size_t ark_release(uint8_t *into, size_t size, uint64_t handle);

/* Length of the frame that begins with these 4 bytes, prefix included; 0 if it is longer than we read. */
size_t ark_frame_length(const uint8_t prefix[4]);

/* Read the body of a frame, which may be anything; false if it is no reply. */
bool ark_read_reply(const uint8_t *body, size_t length, struct ark_reply *reply);

#endif
