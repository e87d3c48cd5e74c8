#include "messages.h"

#include "msgpack.h"

enum { PREFIX = 4, VERSION = 1 };
enum { HELLO = 0, ACQUIRE = 1, RELEASE = 5, LANES = 6 };            /* numbers of requests */
enum { WELCOME = 0, GRANT = 1, REFUSAL = 2, REPORT = 3 };           /* numbers of replies */
enum { PORT_MAX = 65535, PATH_MAX_ = 65535, LABEL_MAX = 0xfffff };

static const uint64_t HANDLE_MAX = INT64_MAX;

static struct ark_writer begin(uint8_t *into, size_t size, unsigned fields, unsigned number)
{
    struct ark_writer w = {.bytes = into, .size = size, .used = PREFIX, .full = size < PREFIX};
    ark_write_array(&w, fields);
    ark_write_uint(&w, number);
    return w;
}

static size_t finish(struct ark_writer *w)
{
    if (w->full)
        return 0;
    size_t body = w->used - PREFIX;
    for (unsigned i = 0; i < PREFIX; i++)
        w->bytes[i] = (uint8_t)(body >> (8 * (PREFIX - 1 - i)));
    return w->used;
}

size_t ark_hello(uint8_t *into, size_t size, const char *name)
{
    struct ark_writer w = begin(into, size, 3, HELLO);
    ark_write_uint(&w, VERSION);
    ark_write_text(&w, name);
    return finish(&w);
}

size_t ark_acquire(uint8_t *into, size_t size, uint64_t handle, const struct ark_way *way, uint64_t size_bytes)
{
    struct ark_writer w = begin(into, size, 7, ACQUIRE);
    ark_write_uint(&w, handle);
    ark_write_text(&w, way->target);
    ark_write_uint(&w, size_bytes);
    ark_write_uint(&w, way->dport);
    ark_write_uint(&w, way->proto);
    ark_write_text(&w, way->nic);
    return finish(&w);
}

size_t ark_lanes(uint8_t *into, size_t size, uint64_t handle, const struct ark_way *way)
{
    struct ark_writer w = begin(into, size, 6, LANES);
    ark_write_uint(&w, handle);
    ark_write_text(&w, way->target);
    ark_write_uint(&w, way->dport);
    ark_write_uint(&w, way->proto);
    ark_write_text(&w, way->nic);
    return finish(&w);
}

size_t ark_release(uint8_t *into, size_t size, uint64_t handle)
{
    struct ark_writer w = begin(into, size, 2, RELEASE);
    ark_write_uint(&w, handle);
    return finish(&w);
}

size_t ark_frame_length(const uint8_t prefix[4])
{
    uint32_t body = (uint32_t)prefix[0] << 24 | (uint32_t)prefix[1] << 16 | (uint32_t)prefix[2] << 8 | prefix[3];
    return body > ARK_REPLY_MAX - PREFIX ? 0 : PREFIX + body;
}

static struct ark_lane read_lane(struct ark_reader *r)
{
    struct ark_lane lane = {0};
    uint32_t fields = ark_read_array(r);
    if (fields < 1 || fields > 3)
        r->bad = true;
    lane.path = (uint16_t)ark_read_uint(r, PATH_MAX_);
    if (fields > 1)
        lane.source_port = (uint16_t)ark_read_uint(r, PORT_MAX);
    if (fields > 2)
        lane.flow_label = (uint32_t)ark_read_uint(r, LABEL_MAX);
    return lane;
}

static void read_grant(struct ark_reader *r, uint32_t fields, struct ark_reply *reply)
{
    char unused[1]; /* how it was chosen, and between which addresses it holds */
    if (fields < 4 || fields > 7) {
        r->bad = true;
        return;
    }
    reply->handle = ark_read_uint(r, HANDLE_MAX);
    ark_read_text(r, unused, sizeof unused);
    uint32_t count = ark_read_array(r);
    if (count > ARK_LANES_MAX)
        r->bad = true;
    for (uint32_t i = 0; i < count && !r->bad; i++)
        reply->lanes[i] = read_lane(r);
    reply->lane_count = r->bad ? 0 : count;
    if (fields > 4)
        ark_read_text(r, unused, sizeof unused);
    if (fields > 5)
        ark_read_text(r, unused, sizeof unused);
    if (fields > 6)
        ark_read_text(r, reply->reason, sizeof reply->reason);
}

bool ark_read_reply(const uint8_t *body, size_t length, struct ark_reply *reply)
{
    struct ark_reader r = {.next = body, .end = body + length};
    char host[1];
    reply->handle = reply->hold_ns = 0;
    reply->lane_count = 0;
    reply->reason[0] = '\0';
    uint32_t fields = ark_read_array(&r);
    uint64_t number = ark_read_uint(&r, REPORT);
    if (r.bad)
        return false;
    if (number == REPORT) { /* we never ask for one */
        reply->kind = ARK_OTHER;
        return true;
    }
    if (number == WELCOME) {
        reply->kind = ARK_WELCOME;
        r.bad = fields != 4 || ark_read_uint(&r, UINT64_MAX) != VERSION;
        ark_read_text(&r, host, sizeof host);
        reply->hold_ns = ark_read_uint(&r, INT64_MAX);
    } else if (number == REFUSAL) {
        reply->kind = ARK_REFUSAL;
        r.bad = fields != 3;
        reply->handle = ark_read_uint(&r, HANDLE_MAX);
        ark_read_text(&r, reply->reason, sizeof reply->reason);
    } else {
        reply->kind = ARK_GRANT;
        read_grant(&r, fields, reply);
    }
    return !r.bad && r.next == r.end;
}
