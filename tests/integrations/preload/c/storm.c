/* Connections made and closed by threads and by a signal handler, while the process forks:
 * storm ADDRESS PORT CYCLES THREADS */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sockaddr_in target;
static atomic_int made, failed, stop, victim = -1;

static int opened(int *result)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *result = connect(fd, (struct sockaddr *)&target, sizeof target);
    if (*result != 0)
        fprintf(stderr, "connect: %s\n", strerror(errno));
    /* No TIME_WAIT: thousands of these would use up the ports of the machine. */
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    atomic_fetch_add(*result == 0 ? &made : &failed, 1);
    return fd;
}

/* Closes a connection wherever it interrupts, also a thread that speaks with the agent. */
static void on_signal(int number)
{
    int before = errno, fd = atomic_exchange(&victim, -1);
    (void)number;
    if (fd >= 0)
        close(fd);
    errno = before;
}

static int once(void)
{
    int result, fd = opened(&result);
    close(fd);
    return result;
}

static void *work(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        once();
        usleep(2000);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    if (count != 5)
        return 2;
    target.sin_family = AF_INET;
    inet_pton(AF_INET, arguments[1], &target.sin_addr);
    target.sin_port = htons((unsigned short)atoi(arguments[2]));
    int cycles = atoi(arguments[3]), threads = atoi(arguments[4]), bad = 0;
    pthread_t started[16];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < threads; i++)
        pthread_create(&started[i], NULL, work, NULL);
    for (int i = 0; i < cycles; i++) {
        int result, next = opened(&result), last = atomic_exchange(&victim, next);
        if (last >= 0)
            close(last);
        pid_t child = fork();
        if (child == 0)
            _exit(once() != 0);
        int status = 1;
        if (waitpid(child, &status, 0) != child || status != 0)
            bad++;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < threads; i++)
        pthread_join(started[i], NULL);
    printf("made %s, failed %d, bad children %d\n", atomic_load(&made) > 0 ? "some" : "none", atomic_load(&failed), bad);
    return bad != 0 || atomic_load(&failed) != 0;
}
