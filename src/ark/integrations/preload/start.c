/* What happens when the library is loaded, and in a forked child. */
#include <pthread.h>

#include "choice.h"
#include "queue_pairs.h"
#include "real.h"
#include "settings.h"

static void begin(void)
{
    ark_choice_begin();
    ark_queue_pairs_begin();
}

__attribute__((constructor)) static void start(void)
{
    ark_real_find();
    ark_settings_read();
    begin();
    pthread_atfork(NULL, NULL, begin);
}
