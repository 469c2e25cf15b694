/*
 * A service manager's ear: binds a datagram socket and prints what is said to it, one line for each datagram, until it
 * is killed. usage: notify_listener PATH
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char text[4096];
    ssize_t len;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path)) {
        (void)fputs("usage: notify_listener PATH\n", stderr);
        return 2;
    }
    memcpy(address.sun_path, argv[1], strlen(argv[1]));
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        perror("notify_listener");
        return 1;
    }
    (void)puts("listening");
    (void)fflush(stdout);
    while ((len = recv(fd, text, sizeof(text), 0)) >= 0) {
        for (ssize_t i = 0; i < len; i++) {
            (void)putchar(text[i] == '\n' ? ' ' : text[i]);
        }
        (void)putchar('\n');
        (void)fflush(stdout);
    }
    perror("notify_listener");
    return 1;
}
