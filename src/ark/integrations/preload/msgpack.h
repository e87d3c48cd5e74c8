/* The part of msgpack that the local API's messages are made of: arrays, whole numbers, texts, booleans. */
#ifndef ARK_MSGPACK_H
#define ARK_MSGPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes into a buffer of fixed size; `full` once something did not fit. */
struct ark_writer {
    uint8_t *bytes;
    size_t size, used;
    bool full;
};

void ark_write_array(struct ark_writer *w, unsigned count); /* of at most 15 elements */
void ark_write_uint(struct ark_writer *w, uint64_t value);
void ark_write_text(struct ark_writer *w, const char *text); /* of at most 255 bytes */
void ark_write_bool(struct ark_writer *w, bool value);

/* Reads bytes that may be anything; `bad` once they are not what was asked for, and all answers are 0 then. */
struct ark_reader {
    const uint8_t *next, *end;
    bool bad;
};

uint32_t ark_read_array(struct ark_reader *r);
uint64_t ark_read_uint(struct ark_reader *r, uint64_t max);
/* A text as C string, cut to `size`; returns its length in the message. */
uint32_t ark_read_text(struct ark_reader *r, char *into, size_t size);

#endif
