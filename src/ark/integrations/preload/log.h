/* One line for each connection, for people and tests; nothing unless ARK_RUN_LOG names a file. */
#ifndef ARK_LOG_H
#define ARK_LOG_H

#include "choice.h"

/* `what` is "tcp", "ibv_modify_qp" or "devx"; a `port` of 0 says that the connection was not steered. */
void ark_log(const char *what, const struct ark_way *way, const struct ark_choice *choice, uint16_t port);

#endif
