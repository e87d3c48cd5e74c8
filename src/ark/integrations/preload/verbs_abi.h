/* The part of libibverbs' binary interface, version IBVERBS_1.1, that ibv_modify_qp() needs: the build needs no
 * header of rdma-core. Source: infiniband/verbs.h. A test compares every offset where that header is there. */
#ifndef ARK_VERBS_ABI_H
#define ARK_VERBS_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { QP_STATE_RESET = 0, QP_STATE_RTR = 2, QP_STATE_ERR = 6 };
enum { QP_TYPE_RC = 2, QP_TYPE_UC = 3, QP_TYPE_XRC_SEND = 9, QP_TYPE_XRC_RECV = 10 };
enum { MASK_STATE = 1 << 0, MASK_AV = 1 << 7, MASK_RATE_LIMIT = 1 << 25 };

struct verbs_ah_attr {
    _Alignas(8) uint8_t dgid[16];
    uint32_t flow_label;
    uint8_t sgid_index, hop_limit, traffic_class;
    uint16_t dlid;
    uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};

struct verbs_qp_attr {
    int qp_state, cur_qp_state, path_mtu, path_mig_state;
    uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
    unsigned qp_access_flags;
    uint32_t cap[5];
    struct verbs_ah_attr ah_attr, alt_ah_attr;
    uint16_t pkey_index, alt_pkey_index;
    uint8_t rest[11];
    uint32_t rate_limit;
};

struct verbs_qp {
    void *context, *qp_context, *pd, *send_cq, *recv_cq, *srq;
    uint32_t handle, qp_num;
    int state, qp_type;
};

_Static_assert(sizeof(struct verbs_ah_attr) == 32, "as struct ibv_ah_attr");
_Static_assert(offsetof(struct verbs_ah_attr, is_global) == 29, "as struct ibv_ah_attr");
_Static_assert(offsetof(struct verbs_qp_attr, ah_attr) == 56, "as struct ibv_qp_attr");
_Static_assert(sizeof(struct verbs_qp_attr) == 144, "as struct ibv_qp_attr of rdma-core 13 and later");

#endif
