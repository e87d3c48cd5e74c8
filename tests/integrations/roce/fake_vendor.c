/* Stands in for a vendor's library: writes down what it was called with, and returns what it is told to. */
#include <errno.h>
#include <stdint.h>

struct ibv_qp;

uintptr_t seen_qp;
uint32_t seen_port;
int calls;
int answer;
int answer_errno;

#ifdef HAS_CALL
int NAME(struct ibv_qp *qp, uint16_t port)
{
    seen_qp = (uintptr_t)qp;
    seen_port = port;
    calls++;
    if (answer_errno)
        errno = answer_errno;
    return answer;
}
#endif
