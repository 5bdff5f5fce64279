/* A STAND-IN for the program of any image, for tests of the manifests: says when it started and
 * with which arguments, then accepts connections on the ports in STANDIN_PORTS until SIGTERM.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PORTS = 64 };

static void end(int number) {
    (void)number;
    _exit(0);
}

/* The arguments in hexadecimal: any byte may be in them. */
static void say(int argc, char **argv) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("{\"standin\":\"workload\",\"unix_ns\":%lld,\"argv\":[",
           (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    for (int i = 0; i < argc; i++) {
        printf("%s\"", i ? "," : "");
        for (const unsigned char *c = (const unsigned char *)argv[i]; *c; c++)
            printf("%02x", *c);
        printf("\"");
    }
    printf("]}\n");
    fflush(stdout);
}

static int listen_on(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int one = 1;
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        bind(made, (struct sockaddr *)&address, sizeof address) < 0 || listen(made, 16) < 0) {
        fprintf(stderr, "port %d: %s\n", port, strerror(errno));
        exit(1);
    }
    return made;
}

int main(int argc, char **argv) {
    struct pollfd watch[MAX_PORTS];
    nfds_t count = 0;
    signal(SIGTERM, end);
    say(argc, argv);
    char *ports = getenv("STANDIN_PORTS");
    for (char *word = strtok(ports ? ports : (char[]){""}, " "); word && count < MAX_PORTS;
         word = strtok(NULL, " "))
        watch[count++] = (struct pollfd){.fd = listen_on(atoi(word)), .events = POLLIN};
    while (poll(watch, count, -1) > 0 || errno == EINTR)
        for (nfds_t i = 0; i < count; i++)
            if (watch[i].revents)
                close(accept(watch[i].fd, NULL, NULL));
    return 1;
}
