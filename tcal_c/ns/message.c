/* Messages between the driver and us: one datagram each on a SOCK_SEQPACKET socket, so that there
 * is no framing to get wrong, with at most one descriptor beside it (unix(7), SCM_RIGHTS). */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ns.h"

union descriptor_room { /* aligned as cmsg(3) asks for */
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
};

int message_send(int socket, const char *text, int descriptor) {
    struct iovec part = {.iov_base = (void *)(size_t)text, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union descriptor_room room;
    if (descriptor >= 0) {
        memset(&room, 0, sizeof room);
        message.msg_control = room.bytes;
        message.msg_controllen = sizeof room.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int message_sendf(int socket, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args); /* a cut error text is still an error text */
    va_end(args);
    return message_send(socket, text, -1);
}

/* Returns the length (the text is NUL-terminated), 0 at end of file. A message that does not fit
 * is EMSGSIZE, never half a message. The descriptor is -1 when there was none. */
ssize_t message_receive(int socket, char *buffer, size_t size, int *descriptor) {
    struct iovec part = {.iov_base = buffer, .iov_len = size - 1};
    union descriptor_room room;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room.bytes};
    *descriptor = -1;
    ssize_t length;
    do {
        length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (length < 0 && errno == EINTR);
    if (length < 0) {
        return -errno;
    }
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    }
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        if (*descriptor >= 0) {
            close(*descriptor);
        }
        *descriptor = -1;
        errno = EMSGSIZE;
        return -errno;
    }
    buffer[length] = '\0';
    return length;
}
