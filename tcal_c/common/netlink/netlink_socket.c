/* The real kernel behind a channel. */
#include "netlink.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEND_ROOM (1 << 20)
#define RECEIVE_ROOM (4 << 20)

static ssize_t socket_send(void *context, const void *bytes, size_t count) {
    ssize_t sent = send((int)(intptr_t)context, bytes, count, 0);
    return sent < 0 ? -errno : sent;
}

static ssize_t socket_receive(void *context, void *bytes, size_t room) {
    ssize_t got = recv((int)(intptr_t)context, bytes, room, 0);
    return got < 0 ? -errno : got;
}

static void socket_close(void *context) {
    close((int)(intptr_t)context);
}

/* More than the default where that is permitted; without, sends are still within it. */
static void widen(int fd, int forced, int option, int bytes) {
    if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes)) {
        setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes);
    }
}

int nl_open(struct nl_channel *channel) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) {
        return -errno;
    }
    int on = 1;
    /* Both are comforts; without them errors come with more text or less. */
    setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    widen(fd, SO_SNDBUFFORCE, SO_SNDBUF, SEND_ROOM);
    widen(fd, SO_RCVBUFFORCE, SO_RCVBUF, RECEIVE_ROOM);
    *channel = (struct nl_channel){(void *)(intptr_t)fd, socket_send, socket_receive, socket_close};
    return 0;
}

void nl_close(struct nl_channel *channel) {
    if (channel->close) {
        channel->close(channel->context);
    }
    *channel = (struct nl_channel){0};
}
