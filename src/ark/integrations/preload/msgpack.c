#include "msgpack.h"

#include <string.h>

/* First bytes of msgpack's formats. */
enum {
    FIXARRAY = 0x90, FIXSTR = 0xa0, FALSE_ = 0xc2, TRUE_ = 0xc3,
    UINT8 = 0xcc, UINT16 = 0xcd, UINT32 = 0xce, UINT64 = 0xcf,
    STR8 = 0xd9, STR16 = 0xda, STR32 = 0xdb, ARRAY16 = 0xdc, ARRAY32 = 0xdd,
};

static void put(struct ark_writer *w, const void *bytes, size_t count)
{
    if (w->full || count > w->size - w->used) {
        w->full = true;
        return;
    }
    memcpy(w->bytes + w->used, bytes, count);
    w->used += count;
}

static void put_byte(struct ark_writer *w, unsigned byte)
{
    put(w, &(uint8_t){(uint8_t)byte}, 1);
}

static void put_number(struct ark_writer *w, uint64_t value, unsigned bytes)
{
    for (unsigned left = bytes; left > 0; left--)
        put_byte(w, (unsigned)(value >> (8 * (left - 1))) & 0xff);
}

void ark_write_array(struct ark_writer *w, unsigned count)
{
    put_byte(w, FIXARRAY | (count & 0xf));
}

void ark_write_uint(struct ark_writer *w, uint64_t value)
{
    if (value < 0x80) {
        put_byte(w, (unsigned)value);
        return;
    }
    unsigned power = value <= 0xff ? 0 : value <= 0xffff ? 1 : value <= 0xffffffff ? 2 : 3;
    put_byte(w, UINT8 + power);
    put_number(w, value, 1u << power);
}

void ark_write_text(struct ark_writer *w, const char *text)
{
    size_t length = strnlen(text, 255);
    if (length < 32) {
        put_byte(w, FIXSTR | (unsigned)length);
    } else {
        put_byte(w, STR8);
        put_byte(w, (unsigned)length);
    }
    put(w, text, length);
}

void ark_write_bool(struct ark_writer *w, bool value)
{
    put_byte(w, value ? TRUE_ : FALSE_);
}

static unsigned take_byte(struct ark_reader *r)
{
    if (r->bad || r->next == r->end) {
        r->bad = true;
        return 0;
    }
    return *r->next++;
}

static uint64_t take_number(struct ark_reader *r, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | take_byte(r);
    return r->bad ? 0 : value;
}

static uint64_t refuse(struct ark_reader *r)
{
    r->bad = true;
    return 0;
}

uint32_t ark_read_array(struct ark_reader *r)
{
    unsigned first = take_byte(r);
    if ((first & 0xf0) == FIXARRAY)
        return r->bad ? 0 : first & 0xf;
    if (first == ARRAY16)
        return (uint32_t)take_number(r, 2);
    if (first == ARRAY32)
        return (uint32_t)take_number(r, 4);
    return (uint32_t)refuse(r);
}

uint64_t ark_read_uint(struct ark_reader *r, uint64_t max)
{
    unsigned first = take_byte(r);
    uint64_t value = first;
    if (first >= 0x80)
        value = first >= UINT8 && first <= UINT64 ? take_number(r, 1u << (first - UINT8)) : refuse(r);
    if (r->bad || value > max)
        return refuse(r);
    return value;
}

uint32_t ark_read_text(struct ark_reader *r, char *into, size_t size)
{
    unsigned first = take_byte(r);
    uint64_t length;
    if ((first & 0xe0) == FIXSTR)
        length = first & 0x1f;
    else if (first >= STR8 && first <= STR32)
        length = take_number(r, 1u << (first - STR8));
    else
        length = refuse(r);
    if (r->bad || length > (size_t)(r->end - r->next)) {
        r->bad = true;
        length = 0;
    }
    size_t kept = length < size ? length : size - 1;
    memcpy(into, r->next, kept);
    into[kept] = '\0';
    r->next += length;
    return (uint32_t)length;
}
