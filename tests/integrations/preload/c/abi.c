/* Whether our own picture of libibverbs' structures is that of its header. Compiling it is the test. */
#include <infiniband/verbs.h>

#include "verbs_abi.h"

#define SAME(theirs, ours, their_field, our_field) \
    _Static_assert(offsetof(struct theirs, their_field) == offsetof(struct ours, our_field), #their_field)

SAME(ibv_ah_attr, verbs_ah_attr, grh.dgid, dgid);
SAME(ibv_ah_attr, verbs_ah_attr, grh.flow_label, flow_label);
SAME(ibv_ah_attr, verbs_ah_attr, grh.sgid_index, sgid_index);
SAME(ibv_ah_attr, verbs_ah_attr, dlid, dlid);
SAME(ibv_ah_attr, verbs_ah_attr, is_global, is_global);
SAME(ibv_ah_attr, verbs_ah_attr, port_num, port_num);
SAME(ibv_qp_attr, verbs_qp_attr, qp_state, qp_state);
SAME(ibv_qp_attr, verbs_qp_attr, ah_attr, ah_attr);
SAME(ibv_qp_attr, verbs_qp_attr, alt_ah_attr, alt_ah_attr);
SAME(ibv_qp_attr, verbs_qp_attr, pkey_index, pkey_index);
SAME(ibv_qp_attr, verbs_qp_attr, rate_limit, rate_limit);
SAME(ibv_qp, verbs_qp, context, context);
SAME(ibv_qp, verbs_qp, qp_num, qp_num);
SAME(ibv_qp, verbs_qp, qp_type, qp_type);
_Static_assert(sizeof(struct ibv_ah_attr) == sizeof(struct verbs_ah_attr), "ibv_ah_attr");
_Static_assert(sizeof(struct ibv_qp_attr) == sizeof(struct verbs_qp_attr), "ibv_qp_attr");
_Static_assert((int)IBV_QPS_RESET == QP_STATE_RESET && (int)IBV_QPS_RTR == QP_STATE_RTR
                   && (int)IBV_QPS_ERR == QP_STATE_ERR, "ibv_qp_state");
_Static_assert((int)IBV_QPT_RC == QP_TYPE_RC && (int)IBV_QPT_UC == QP_TYPE_UC
                   && (int)IBV_QPT_XRC_SEND == QP_TYPE_XRC_SEND && (int)IBV_QPT_XRC_RECV == QP_TYPE_XRC_RECV,
               "ibv_qp_type");
_Static_assert((int)IBV_QP_STATE == MASK_STATE && (int)IBV_QP_AV == MASK_AV
                   && (int)IBV_QP_RATE_LIMIT == MASK_RATE_LIMIT, "ibv_qp_attr_mask");
