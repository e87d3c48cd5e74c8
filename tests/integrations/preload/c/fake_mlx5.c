/* Stands in for libmlx5: keeps the command that it is given. */
#include <stddef.h>
#include <string.h>

unsigned char fake_command[4096];
size_t fake_length;
void *fake_object;

int mlx5dv_devx_obj_modify(void *object, const void *in, size_t length, void *out, size_t out_length)
{
    memcpy(fake_command, in, length);
    fake_length = length;
    fake_object = object;
    memset(out, 0xab, out_length);
    return 0;
}

int mlx5dv_devx_obj_destroy(void *object)
{
    (void)object;
    return 0;
}
