/* The functions that this library stands in front of. */
#ifndef ARK_REAL_H
#define ARK_REAL_H

#include <sys/socket.h>

extern int (*ark_real_connect)(int, const struct sockaddr *, socklen_t);
extern int (*ark_real_bind)(int, const struct sockaddr *, socklen_t);
extern int (*ark_real_getsockname)(int, struct sockaddr *, socklen_t *);
extern int (*ark_real_close)(int);

/* Find the four above; called when the library is loaded, and by who comes even earlier. */
void ark_real_find(void);

/* The function that a caller would have reached without us: the next one of all global libraries, else one of
 * the libraries that the caller's own module was linked with, else that of the library of this name. NULL if
 * there is none. */
void *ark_real_of(const void *caller, const char *library, const char *function, const char *version);

#endif
