/* The program around the engine. How it gets at it stands in its argument:
 *   linked   the engine is a library that the program was linked with
 *   local    opened by dlopen, RTLD_LOCAL, as a Python module is
 *   deep     likewise with RTLD_DEEPBIND
 *   handle   ibv_modify_qp from dlvsym on libibverbs, opened by the name in IBVERBS_LIB, as NCCL does
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "local";
    int flags = RTLD_NOW | RTLD_LOCAL | (strcmp(how, "deep") == 0 ? RTLD_DEEPBIND : 0);
    void *engine = dlopen(getenv("ENGINE"), flags);
    if (engine == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    if (strcmp(how, "handle") == 0) {
        void *verbs = dlopen(getenv("IBVERBS_LIB"), RTLD_NOW | RTLD_LOCAL);
        void **into = dlsym(engine, "engine_modify");
        if (verbs == NULL || into == NULL || (*into = dlvsym(verbs, "ibv_modify_qp", "IBVERBS_1.1")) == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 3;
        }
    }
    void (*run)(void) = dlsym(engine, "engine_run");
    run();
    return 0;
}
