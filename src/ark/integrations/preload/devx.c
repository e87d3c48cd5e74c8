/* RoCE by UCX and others that drive NVIDIA's NICs by firmware commands (DEVX): the UDP source port stands in
 * the command that makes a queue pair ready to receive. The command is copied, two bytes of the copy are set.
 *
 * Layout of the commands: Mellanox' programmer's reference; Linux, include/linux/mlx5/mlx5_ifc.h
 * (init2rtr_qp_in, rts2rts_qp_in, qpc, ads). All numbers are big-endian. */
#include <errno.h>
#include <string.h>

#include "address.h"
#include "log.h"
#include "queue_pairs.h"
#include "real.h"
#include "settings.h"

#define EXPORT __attribute__((visibility("default")))

enum { INIT2RTR_QP = 0x503, RTS2RTS_QP = 0x505, ROCE_DPORT = 4791 };

/* Bytes into a command. */
enum {
    OPCODE = 0,
    ADDRESS_PATH = 24 + 24,           /* after the command's own fields, and those of the queue pair */
    TARGET_GID = ADDRESS_PATH + 16,
    SOURCE_PORT = ADDRESS_PATH + 34,
    OPTIONAL_95_32 = 264,             /* of RTS2RTS: which fields are set, bits 95 to 32 of the mask */
    LENGTH_MAX = 4096,
};

enum { OPTIONAL_SOURCE_PORT = 1 << 2 }; /* bit of the last byte of OPTIONAL_95_32 */

static const char LIBRARY[] = "libmlx5.so.1", VERSION[] = "MLX5_1.7";

typedef int modify_call(void *, const void *, size_t, void *, size_t);
typedef int destroy_call(void *);

static unsigned number_at(const uint8_t *command, size_t place)
{
    return (unsigned)command[place] << 8 | command[place + 1];
}

/* A command that connects a queue pair by RoCE v2: it sets a source port, and a GID to send to. */
static bool is_connecting(const uint8_t *command, size_t length)
{
    static const uint8_t none[16];
    return length >= SOURCE_PORT + 2 && number_at(command, OPCODE) == INIT2RTR_QP
        && number_at(command, SOURCE_PORT) != 0 && memcmp(command + TARGET_GID, none, sizeof none) != 0;
}

/* A command that sets the source port of a queue pair that runs. */
static bool is_moving(const uint8_t *command, size_t length)
{
    return length >= OPTIONAL_95_32 + 8 && number_at(command, OPCODE) == RTS2RTS_QP
        && (command[OPTIONAL_95_32 + 7] & OPTIONAL_SOURCE_PORT) != 0;
}

static int modify_with(modify_call *real, void *object, const uint8_t *command, size_t length, uint16_t port,
                       void *out, size_t out_length)
{
    uint8_t changed[LENGTH_MAX];
    memcpy(changed, command, length);
    changed[SOURCE_PORT] = (uint8_t)(port >> 8);
    changed[SOURCE_PORT + 1] = (uint8_t)port;
    return real(object, changed, length, out, out_length);
}

static int connect_steered(modify_call *real, void *object, const uint8_t *command, size_t length, void *out,
                           size_t out_length)
{
    struct ark_way way = {.dport = ROCE_DPORT, .proto = ARK_UDP}; /* the agent knows the NIC by its rail */
    struct ark_choice choice;
    ark_gid_text(command + TARGET_GID, way.target, sizeof way.target);
    bool chosen = ark_choose(&way, &choice);
    uint16_t port = chosen ? choice.lanes[0].source_port : 0;
    ark_log("devx", &way, &choice, port);
    if (port == 0)
        return real(object, command, length, out, out_length);
    int result = modify_with(real, object, command, length, port, out, out_length);
    if (result == 0)
        ark_hold(object, (struct ark_held){choice.claim, port});
    else
        ark_leave(choice.claim);
    return result;
}

EXPORT int mlx5dv_devx_obj_modify(void *object, const void *in, size_t length, void *out, size_t out_length)
{
    const void *caller = __builtin_return_address(0);
    modify_call *real = (modify_call *)ark_real_of(caller, LIBRARY, "mlx5dv_devx_obj_modify", VERSION);
    if (real == NULL)
        return ENOSYS; /* no libmlx5 is loaded */
    if (ark_settings.on && in != NULL && length <= LENGTH_MAX) {
        if (is_connecting(in, length) && ark_is_on())
            return connect_steered(real, object, in, length, out, out_length);
        struct ark_held held = is_moving(in, length) ? ark_held_by(object) : (struct ark_held){0};
        if (held.source_port != 0)
            return modify_with(real, object, in, length, held.source_port, out, out_length);
    }
    return real(object, in, length, out, out_length);
}

EXPORT int mlx5dv_devx_obj_destroy(void *object)
{
    const void *caller = __builtin_return_address(0);
    destroy_call *real = (destroy_call *)ark_real_of(caller, LIBRARY, "mlx5dv_devx_obj_destroy", VERSION);
    if (real == NULL)
        return ENOSYS;
    int result = real(object);
    if (result == 0)
        ark_let_go(object);
    return result;
}
