/* A program's engine, linked with (the fakes of) libibverbs and libmlx5 as Mooncake and UCX are. It does what the
 * lines on its standard input say, and prints what arrived in the libraries:
 *
 *   verbs QP TYPE MASK HEX        ibv_modify_qp() with the bytes of an ibv_qp_attr
 *   destroy QP                    ibv_destroy_qp()
 *   devx OBJECT HEX               mlx5dv_devx_obj_modify() with the bytes of a command
 *   undevx OBJECT                 mlx5dv_devx_obj_destroy()
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int ibv_modify_qp(void *, void *, int);
int ibv_destroy_qp(void *);
int mlx5dv_devx_obj_modify(void *, const void *, size_t, void *, size_t);
int mlx5dv_devx_obj_destroy(void *);

extern unsigned char fake_attr[144], fake_command[4096];
extern int fake_mask, fake_calls, fake_old_calls;
extern size_t fake_length;
extern void *fake_object;

struct fake_qp {
    void *pointers[6];
    uint32_t handle, number;
    int state, type;
};

static struct fake_qp qps[64];

/* Bytes at the very end of a page that can't be written, before one that can't be read. */
static unsigned char *guarded(const char *hex, size_t *length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *length = strlen(hex) / 2;
    unsigned char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *bytes = pages + page - *length;
    for (size_t i = 0; i < *length; i++) {
        unsigned byte;
        sscanf(hex + 2 * i, "%2x", &byte);
        bytes[i] = (unsigned char)byte;
    }
    mprotect(pages, page, PROT_READ);
    mprotect(pages + page, page, PROT_NONE);
    return bytes;
}

static void print(const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        printf("%02x", bytes[i]);
    printf("\n");
    fflush(stdout);
}

/* Make the queue pair call through a pointer, if a test gives one (as NCCL does). */
int (*engine_modify)(void *, void *, int);

void engine_run(void)
{
    static char line[16384], hex[16384];
    int number, type, mask;
    size_t length;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "verbs %d %d %d %s", &number, &type, &mask, hex) == 4) {
            unsigned char *attr = guarded(hex, &length);
            qps[number].type = type;
            int calls = fake_calls;
            int result = engine_modify != NULL ? engine_modify(&qps[number], attr, mask)
                                               : ibv_modify_qp(&qps[number], attr, mask);
            printf("%d %d %d ", result, fake_calls - calls, fake_mask == mask);
            print(fake_attr, length);
        } else if (sscanf(line, "devx %d %s", &number, hex) == 2) {
            unsigned char *command = guarded(hex, &length), out[16] = {0};
            int result = mlx5dv_devx_obj_modify(&qps[number], command, length, out, sizeof out);
            printf("%d %d %d ", result, fake_object == (void *)&qps[number] && fake_length == length, out[15] == 0xab);
            print(fake_command, length);
        } else if (sscanf(line, "destroy %d", &number) == 1) {
            printf("%d\n", ibv_destroy_qp(&qps[number]));
            fflush(stdout);
        } else if (sscanf(line, "undevx %d", &number) == 1) {
            printf("%d\n", mlx5dv_devx_obj_destroy(&qps[number]));
            fflush(stdout);
        }
    }
}
