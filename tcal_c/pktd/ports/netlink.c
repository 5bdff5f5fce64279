/* rtnetlink requests with extended acknowledgements (netlink(7), NETLINK_EXT_ACK). */
#include "netlink.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int nl_open(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) {
        return -errno;
    }
    int on = 1;
    /* Both are comforts; without them errors come with more text or less. */
    setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    return fd;
}

void nl_append(struct nl_request *q, const void *value, size_t bytes) {
    size_t padded = NLMSG_ALIGN(bytes);
    assert(q->length + padded <= sizeof q->bytes);
    memset(q->bytes + q->length, 0, padded);
    if (bytes) {
        memcpy(q->bytes + q->length, value, bytes);
    }
    q->length += (uint32_t)padded;
}

void nl_begin(struct nl_request *q, uint16_t type, uint16_t flags, const void *body, size_t bytes) {
    struct nlmsghdr header = {.nlmsg_type = type,
                              .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags),
                              .nlmsg_seq = 1};
    q->length = 0;
    nl_append(q, &header, sizeof header);
    nl_append(q, body, bytes);
}

void nl_put(struct nl_request *q, uint16_t type, const void *value, size_t bytes) {
    struct nlattr header = {.nla_len = (uint16_t)(sizeof header + bytes), .nla_type = type};
    nl_append(q, &header, sizeof header);
    nl_append(q, value, bytes);
}

void nl_put_u32(struct nl_request *q, uint16_t type, uint32_t value) {
    nl_put(q, type, &value, sizeof value);
}

void nl_put_text(struct nl_request *q, uint16_t type, const char *value) {
    nl_put(q, type, value, strlen(value) + 1);
}

uint32_t nl_nest(struct nl_request *q, uint16_t type) {
    uint32_t nest = q->length;
    nl_put(q, type, NULL, 0);
    return nest;
}

void nl_nest_end(struct nl_request *q, uint32_t nest) {
    struct nlattr header;
    memcpy(&header, q->bytes + nest, sizeof header);
    header.nla_len = (uint16_t)(q->length - nest);
    memcpy(q->bytes + nest, &header, sizeof header);
}

/* The text attribute of an extended acknowledgement, if there is one. */
static void read_text(const char *bytes, size_t length, char *why, size_t room) {
    struct nlmsghdr header;
    memcpy(&header, bytes, sizeof header);
    if (!(header.nlmsg_flags & NLM_F_ACK_TLVS)) {
        return;
    }
    size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nlmsgerr));
    while (at + sizeof(struct nlattr) <= length) {
        struct nlattr attr;
        memcpy(&attr, bytes + at, sizeof attr);
        if (attr.nla_len < sizeof attr || at + attr.nla_len > length) {
            return;
        }
        if ((attr.nla_type & NLA_TYPE_MASK) == NLMSGERR_ATTR_MSG) {
            int size = (int)(attr.nla_len - sizeof attr);
            snprintf(why, room, "%.*s", size, bytes + at + sizeof attr);
            return;
        }
        at += NLA_ALIGN(attr.nla_len);
    }
}

int nl_talk(int fd, struct nl_request *q, char *why, size_t why_room) {
    struct nlmsghdr *header = (struct nlmsghdr *)(void *)q->bytes;
    header->nlmsg_len = q->length;
    why[0] = '\0';
    if (send(fd, q->bytes, q->length, 0) < 0) {
        return -errno;
    }
    _Alignas(NLMSG_ALIGNTO) char answer[8192];
    for (;;) {
        ssize_t length = recv(fd, answer, sizeof answer, 0);
        if (length < 0 && errno == EINTR) {
            continue;
        }
        if (length < 0) {
            return -errno;
        }
        if ((size_t)length < NLMSG_HDRLEN + sizeof(struct nlmsgerr)) {
            return -EPROTO;
        }
        struct nlmsghdr got;
        struct nlmsgerr result;
        memcpy(&got, answer, sizeof got);
        memcpy(&result, answer + NLMSG_HDRLEN, sizeof result);
        if (got.nlmsg_type != NLMSG_ERROR) {
            continue;
        }
        if (result.error) {
            read_text(answer, (size_t)length, why, why_room);
        }
        return result.error;
    }
}
