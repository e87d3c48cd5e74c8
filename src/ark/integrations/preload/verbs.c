/* RoCE by libibverbs: the flow label of a queue pair is set when it becomes ready to receive (INIT to RTR), the
 * only time at which most drivers look at it. The driver makes the UDP source port out of the label. */
#include <errno.h>
#include <string.h>

#include "address.h"
#include "log.h"
#include "queue_pairs.h"
#include "real.h"
#include "settings.h"
#include "verbs_abi.h"

#define EXPORT __attribute__((visibility("default")))

enum { ROCE_DPORT = 4791 };

static const char LIBRARY[] = "libibverbs.so.1", VERSION[] = "IBVERBS_1.1";

typedef int modify_qp_call(struct verbs_qp *, struct verbs_qp_attr *, int);
typedef int destroy_qp_call(struct verbs_qp *);
typedef int query_gid_call(void *, uint8_t, int, uint8_t *);

static bool is_steerable(const struct verbs_qp *qp, const struct verbs_qp_attr *attr, int mask)
{
    return (mask & (MASK_STATE | MASK_AV)) == (MASK_STATE | MASK_AV) && attr->qp_state == QP_STATE_RTR
        && attr->ah_attr.is_global
        && (qp->qp_type == QP_TYPE_RC || qp->qp_type == QP_TYPE_UC || qp->qp_type == QP_TYPE_XRC_SEND
            || qp->qp_type == QP_TYPE_XRC_RECV);
}

/* Where a queue pair will send to, and from which address, as far as libibverbs tells. */
static struct ark_way way_of(const void *caller, const struct verbs_qp *qp, const struct verbs_ah_attr *to)
{
    struct ark_way way = {.dport = ROCE_DPORT, .proto = ARK_UDP};
    uint8_t gid[16];
    query_gid_call *query_gid = (query_gid_call *)ark_real_of(caller, LIBRARY, "ibv_query_gid", VERSION);
    ark_gid_text(to->dgid, way.target, sizeof way.target);
    if (query_gid != NULL && query_gid(qp->context, to->port_num, to->sgid_index, gid) == 0)
        ark_gid_text(gid, way.nic, sizeof way.nic);
    return way;
}

/* Copy what the caller's structure surely has: its last field is younger than the others. */
static void copy(struct verbs_qp_attr *into, const struct verbs_qp_attr *from, int mask)
{
    memset(into, 0, sizeof *into);
    memcpy(into, from, offsetof(struct verbs_qp_attr, rate_limit));
    if (mask & MASK_RATE_LIMIT)
        into->rate_limit = from->rate_limit;
}

static int modify_steered(modify_qp_call *real, const void *caller, struct verbs_qp *qp,
                          struct verbs_qp_attr *attr, int mask)
{
    struct ark_way way = way_of(caller, qp, &attr->ah_attr);
    struct ark_choice choice;
    struct verbs_qp_attr changed;
    if (strcmp(way.target, way.nic) == 0)
        return real(qp, attr, mask); /* to itself: no fabric */
    bool chosen = ark_choose(&way, &choice);
    uint32_t label = chosen ? choice.lanes[0].flow_label : 0;
    uint16_t port = label != 0 ? choice.lanes[0].source_port : 0;
    ark_log("ibv_modify_qp", &way, &choice, port);
    if (label == 0) {
        ark_leave(choice.claim);
        return real(qp, attr, mask);
    }
    copy(&changed, attr, mask);
    changed.ah_attr.flow_label = label;
    int result = real(qp, &changed, mask);
    if (result == 0)
        ark_hold(qp, (struct ark_held){choice.claim, port});
    else
        ark_leave(choice.claim);
    return result;
}

EXPORT int ibv_modify_qp(struct verbs_qp *qp, struct verbs_qp_attr *attr, int mask)
{
    const void *caller = __builtin_return_address(0);
    modify_qp_call *real = (modify_qp_call *)ark_real_of(caller, LIBRARY, "ibv_modify_qp", VERSION);
    if (real == NULL)
        return ENOSYS; /* no libibverbs is loaded */
    if (ark_settings.on && is_steerable(qp, attr, mask) && ark_is_on())
        return modify_steered(real, caller, qp, attr, mask);
    int result = real(qp, attr, mask);
    if (result == 0 && (mask & MASK_STATE) && (attr->qp_state == QP_STATE_RESET || attr->qp_state == QP_STATE_ERR))
        ark_let_go(qp);
    return result;
}

EXPORT int ibv_destroy_qp(struct verbs_qp *qp)
{
    const void *caller = __builtin_return_address(0);
    destroy_qp_call *real = (destroy_qp_call *)ark_real_of(caller, LIBRARY, "ibv_destroy_qp", VERSION);
    if (real == NULL)
        return ENOSYS;
    int result = real(qp);
    if (result == 0)
        ark_let_go(qp);
    return result;
}
