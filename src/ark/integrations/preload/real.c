#include "real.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

int (*ark_real_connect)(int, const struct sockaddr *, socklen_t);
int (*ark_real_bind)(int, const struct sockaddr *, socklen_t);
int (*ark_real_getsockname)(int, struct sockaddr *, socklen_t *);
int (*ark_real_close)(int);

void ark_real_find(void)
{
    ark_real_bind = dlsym(RTLD_NEXT, "bind");
    ark_real_getsockname = dlsym(RTLD_NEXT, "getsockname");
    ark_real_close = dlsym(RTLD_NEXT, "close");
    ark_real_connect = dlsym(RTLD_NEXT, "connect"); /* last: who finds it set finds all */
}

/* Whether a function is one of this library's own. */
static bool is_own(const void *function)
{
    Dl_info its, own;
    return dladdr(function, &its) != 0 && dladdr(&ark_real_find, &own) != 0 && its.dli_fbase == own.dli_fbase;
}

/* A function of a library that is loaded already, by the library's name. */
static void *of_module(const char *name, const char *function, const char *version)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return NULL;
    void *found = dlvsym(handle, function, version);
    dlclose(handle); /* it stays: somebody else has it open */
    return found == NULL || is_own(found) ? NULL : found;
}

void *ark_real_of(const void *caller, const char *library, const char *function, const char *version)
{
    Dl_info module;
    void *found = dlvsym(RTLD_NEXT, function, version);
    /* Wheels bring a libibverbs of their own under another name, loaded for one module only. */
    if (found == NULL && dladdr(caller, &module) != 0 && module.dli_fname != NULL)
        found = of_module(module.dli_fname, function, version);
    /* Who asked libark_ibverbs.so for the function is not linked with the library at all. */
    return found != NULL ? found : of_module(library, function, version);
}
