/* Stands in for libibverbs: keeps what it is given, so that a test can compare. Two versions of ibv_modify_qp, as
 * the real one has; that of 1.0 must never be reached through the preload library. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

unsigned char fake_attr[144];
int fake_mask, fake_calls, fake_old_calls, fake_destroyed;

int new_modify(void *qp, void *attr, int mask)
{
    (void)qp;
    memcpy(fake_attr, attr, sizeof fake_attr - 8 * !(mask & 1 << 25));
    fake_mask = mask;
    fake_calls++;
    return mask & 1 << 30 ? 22 : 0; /* EINVAL where the test wants it */
}

int old_modify(void *qp, void *attr, int mask)
{
    (void)qp, (void)attr, (void)mask;
    fake_old_calls++;
    return 0;
}

int ibv_destroy_qp(void *qp)
{
    (void)qp;
    fake_destroyed++;
    return 0;
}

int ibv_query_gid(void *context, uint8_t port, int index, unsigned char *gid)
{
    static const unsigned char prefix[12] = {[10] = 0xff, [11] = 0xff};
    (void)context;
    memcpy(gid, prefix, 12);
    gid[12] = 10, gid[13] = 0, gid[14] = port, gid[15] = (unsigned char)index;
    return 0;
}

__asm__(".symver new_modify,ibv_modify_qp@@IBVERBS_1.1");
__asm__(".symver old_modify,ibv_modify_qp@IBVERBS_1.0");
