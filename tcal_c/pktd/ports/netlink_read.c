/* Reading netlink messages: nothing beyond the length that the kernel stated is looked at. */
#include "netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

bool nl_body(const struct nlmsghdr *message, void *body, size_t bytes, struct nl_view *attrs) {
    size_t start = NLMSG_HDRLEN + NLMSG_ALIGN(bytes);
    if (message->nlmsg_len < start) {
        return false;
    }
    memcpy(body, (const char *)message + NLMSG_HDRLEN, bytes);
    *attrs = (struct nl_view){(const char *)message + start, message->nlmsg_len - start};
    return true;
}

const struct nlattr *nl_find(const struct nl_view *attrs, uint16_t type) {
    size_t at = 0;
    while (at + sizeof(struct nlattr) <= attrs->length) {
        const struct nlattr *attr = (const struct nlattr *)(const void *)(attrs->bytes + at);
        if (attr->nla_len < sizeof *attr || at + attr->nla_len > attrs->length) {
            break;
        }
        if ((attr->nla_type & NLA_TYPE_MASK) == type) {
            return attr;
        }
        at += NLA_ALIGN(attr->nla_len);
    }
    return NULL;
}

struct nl_view nl_inside(const struct nlattr *attr) {
    if (!attr) {
        return (struct nl_view){NULL, 0};
    }
    return (struct nl_view){(const char *)attr + NLA_HDRLEN, attr->nla_len - (size_t)NLA_HDRLEN};
}

bool nl_get(const struct nlattr *attr, void *value, size_t bytes) {
    if (!attr || attr->nla_len < NLA_HDRLEN + bytes) {
        return false;
    }
    memcpy(value, (const char *)attr + NLA_HDRLEN, bytes);
    return true;
}

/* One datagram of the answer: 1 when more will come, 0 at the end, or -errno. */
static int read_part(const char *bytes, size_t length, nl_visit *visit, void *context) {
    size_t at = 0;
    while (at + NLMSG_HDRLEN <= length) {
        const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)(bytes + at);
        if (message->nlmsg_len < NLMSG_HDRLEN || at + message->nlmsg_len > length) {
            return -EPROTO;
        }
        if (message->nlmsg_type == NLMSG_DONE) {
            return 0;
        }
        if (message->nlmsg_type == NLMSG_ERROR) {
            struct nlmsgerr result = {.error = -EPROTO};
            struct nl_view rest;
            nl_body(message, &result, sizeof result, &rest);
            return result.error;
        }
        visit(context, message);
        at += NLMSG_ALIGN(message->nlmsg_len);
    }
    return 1;
}

int nl_dump(int fd, struct nl_request *q, nl_visit *visit, void *context) {
    _Alignas(NLMSG_ALIGNTO) char answer[32768];
    struct nlmsghdr *header = (struct nlmsghdr *)(void *)q->bytes;
    header->nlmsg_len = q->length;
    header->nlmsg_flags = (uint16_t)(header->nlmsg_flags & ~NLM_F_ACK);
    if (send(fd, q->bytes, q->length, 0) < 0) {
        return -errno;
    }
    for (int more = 1; more > 0;) {
        ssize_t length = recv(fd, answer, sizeof answer, 0);
        if (length < 0 && errno == EINTR) {
            continue;
        }
        if (length < 0) {
            return -errno;
        }
        more = read_part(answer, (size_t)length, visit, context);
        if (more <= 0) {
            return more;
        }
    }
    return 0;
}
