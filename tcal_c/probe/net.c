/* Names, sockets and receive time stamps. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#ifdef __GLIBC__
#include <nss.h>
#endif
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

/* In a static program glibc would load what else /etc/nsswitch.conf names (mdns, systemd's
 * resolved) as shared libraries of whatever version this machine has, and may crash. */
static void look_up_without_libraries(void) {
#ifdef __GLIBC__
    __nss_configure_lookup("hosts", "files dns");
#endif
}

int host_resolve(const char *name, int family, uint16_t port, struct host *out) {
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    look_up_without_libraries();
    int rc = getaddrinfo(name, service, &hints, &found);
    if (rc != 0) {
        fprintf(stderr, "tprobe: looking up %s: %s\n", name, gai_strerror(rc));
        return -1;
    }
    *out = (struct host){.length = found->ai_addrlen};
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    getnameinfo(found->ai_addr, found->ai_addrlen, out->text, sizeof out->text, NULL, 0,
                NI_NUMERICHOST);
    freeaddrinfo(found);
    return 0;
}

size_t host_overhead(const struct host *h) {
    return h->address.ss_family == AF_INET ? 20 + 8 : 40 + 8;
}

void socket_buffers(int fd, int bytes) {
    /* The FORCE forms pass rmem_max where that is permitted; the others take what they get. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes)) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    }
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes)) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    }
}

int socket_timestamps(int fd) {
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on)) {
        return say_error(errno, "asking for receive time stamps on", "a socket");
    }
    return 0;
}

bool unreachable(int err) {
    return err == ENETUNREACH || err == EHOSTUNREACH || err == ENETDOWN || err == EADDRNOTAVAIL;
}

ssize_t host_send(int fd, const struct host *h, const void *data, size_t size) {
    return sendto(fd, data, size, MSG_NOSIGNAL, (const struct sockaddr *)&h->address, h->length);
}

int socket_udp(const struct host *peer) {
    int fd = socket(peer->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return say_error(errno, "opening", "a UDP socket");
    }
    socket_buffers(fd, 4 << 20);
    if (socket_timestamps(fd)) {
        goto failed;
    }
    /* Without a route now there may be one later: the sender gives the address each time. */
    if (connect(fd, (const struct sockaddr *)&peer->address, peer->length) && !unreachable(errno)) {
        say_error(errno, "connecting UDP to", peer->text);
        goto failed;
    }
    return fd;
failed:
    close(fd);
    return -1;
}

ssize_t receive_stamped(int fd, void *buffer, size_t room, int64_t *at_ns, int64_t *at_wall_ns) {
    char control[CMSG_SPACE(sizeof(struct timespec)) + 64];
    struct iovec io = {.iov_base = buffer, .iov_len = room};
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT);
    if (got < 0) {
        return got;
    }
    int64_t wall = wall_ns(), mono = now_ns(), stamp = wall;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(c), sizeof t);
            stamp = (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
        }
    }
    /* The stamp is wall time; its age carries it over to the monotonic clock. */
    int64_t age = wall > stamp ? wall - stamp : 0;
    *at_ns = mono - age;
    *at_wall_ns = stamp;
    return got;
}
