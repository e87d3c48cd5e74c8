/* Connects, and lets a child of vfork(), which runs in our memory, close what it inherited: vfork ADDRESS PORT */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    struct sockaddr_in target = {.sin_family = AF_INET};
    if (count != 3)
        return 2;
    inet_pton(AF_INET, arguments[1], &target.sin_addr);
    target.sin_port = htons((unsigned short)atoi(arguments[2]));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&target, sizeof target) != 0)
        return 3;
    pid_t child = vfork();
    if (child == 0) {
        for (int inherited = 3; inherited < 1024; inherited++)
            close(inherited);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    puts("closed by the child");
    fflush(stdout);
    getchar();
    close(fd);
    puts("closed by us");
    fflush(stdout);
    getchar();
    return 0;
}
