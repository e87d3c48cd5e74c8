/* Feeds the reader of replies with what an agent would never send: fuzz SEED ROUNDS < replies
 * Each reply on standard input is 4 bytes of length, big-endian, and a body. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

static uint64_t state;

static uint32_t random_below(uint32_t bound)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17; /* xorshift64 */
    return (uint32_t)((state >> 20) % bound);
}

static void check(const uint8_t *body, size_t length)
{
    static struct ark_reply reply;
    uint8_t *exact = malloc(length); /* of exact size, so that a byte read beyond it is seen */
    if (length > 0)
        memcpy(exact, body, length);
    if (ark_read_reply(exact, length, &reply)
        && (reply.lane_count > ARK_LANES_MAX || memchr(reply.reason, 0, sizeof reply.reason) == NULL))
        abort();
    free(exact);
}

int main(int count, char **arguments)
{
    static uint8_t all[1 << 20], body[1 << 16];
    if (count != 3)
        return 2;
    state = strtoull(arguments[1], NULL, 10) * 2 + 1;
    size_t size = fread(all, 1, sizeof all, stdin);
    for (long round = atol(arguments[2]); round > 0; round--) {
        size_t place = 0, length = 0;
        uint32_t skip = random_below(16);
        for (uint32_t i = 0; place + 4 <= size && (i == 0 || i <= skip); i++) {
            length = ark_frame_length(all + place) - 4;
            memcpy(body, all + place + 4, length);
            place += 4 + length;
        }
        for (uint32_t changes = random_below(6); changes > 0 && length > 0; changes--) {
            uint32_t at = random_below((uint32_t)length), what = random_below(4);
            if (what == 0)
                body[at] = (uint8_t)random_below(256);
            else if (what == 1)
                body[at] ^= (uint8_t)(1u << random_below(8));
            else if (what == 2)
                length = at;
            else
                memmove(body + at, body + at / 2, length - at);
        }
        check(body, length);
        if (round % 4 == 0) {
            length = random_below(64);
            for (size_t i = 0; i < length; i++)
                body[i] = (uint8_t)random_below(256);
            check(body, length);
        }
    }
    puts("ok");
    return 0;
}
