/* Building netlink messages, reading them, and the conversation (netlink(7), RFC 3549). */
#include "netlink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_BYTES 65536u

void nl_buffer_free(struct nl_buffer *b) {
    free(b->bytes);
    *b = (struct nl_buffer){0};
}

static bool make_room(struct nl_buffer *b, size_t more) {
    if (b->failed) {
        return false;
    }
    if (b->used + more <= b->room) {
        return true;
    }
    size_t room = b->room ? b->room : 65536;
    while (b->used + more > room) {
        room *= 2;
    }
    char *bytes = realloc(b->bytes, room);
    if (!bytes) {
        b->failed = true;
        return false;
    }
    b->bytes = bytes;
    b->room = room;
    return true;
}

void nl_append(struct nl_buffer *b, const void *value, size_t bytes) {
    size_t padded = NLMSG_ALIGN(bytes);
    if (!make_room(b, padded)) {
        return;
    }
    if (bytes) {
        memcpy(b->bytes + b->used, value, bytes);
    }
    memset(b->bytes + b->used + bytes, 0, padded - bytes);
    b->used += padded;
}

void nl_begin(struct nl_buffer *b, uint16_t type, uint16_t flags, uint32_t sequence,
              const void *body, size_t bytes) {
    struct nlmsghdr header = {.nlmsg_type = type,
                              .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
                              .nlmsg_seq = sequence};
    b->message = b->used;
    nl_append(b, &header, sizeof header);
    nl_append(b, body, bytes);
}

void nl_end(struct nl_buffer *b) {
    if (!b->failed) {
        uint32_t length = (uint32_t)(b->used - b->message);
        memcpy(b->bytes + b->message + offsetof(struct nlmsghdr, nlmsg_len), &length,
               sizeof length);
    }
}

void nl_put(struct nl_buffer *b, uint16_t type, const void *value, size_t bytes) {
    struct nlattr header = {.nla_len = (uint16_t)(sizeof header + bytes), .nla_type = type};
    nl_append(b, &header, sizeof header);
    nl_append(b, value, bytes);
}

void nl_put_u32(struct nl_buffer *b, uint16_t type, uint32_t value) {
    nl_put(b, type, &value, sizeof value);
}

void nl_put_u64(struct nl_buffer *b, uint16_t type, uint64_t value) {
    nl_put(b, type, &value, sizeof value);
}

void nl_put_text(struct nl_buffer *b, uint16_t type, const char *value) {
    nl_put(b, type, value, strlen(value) + 1);
}

size_t nl_nest(struct nl_buffer *b, uint16_t type) {
    size_t nest = b->used;
    nl_put(b, type, NULL, 0);
    return nest;
}

void nl_nest_end(struct nl_buffer *b, size_t nest) {
    if (!b->failed) {
        uint16_t length = (uint16_t)(b->used - nest);
        memcpy(b->bytes + nest + offsetof(struct nlattr, nla_len), &length, sizeof length);
    }
}

struct nl_attr nl_next(const char **run, size_t *length) {
    struct nl_attr attr = {0};
    struct nlattr header;
    if (*length < sizeof header) {
        return attr;
    }
    memcpy(&header, *run, sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > *length) {
        *length = 0;
        return attr;
    }
    attr.type = header.nla_type & NLA_TYPE_MASK;
    attr.bytes = *run + sizeof header;
    attr.length = header.nla_len - sizeof header;
    size_t step = NLA_ALIGN(header.nla_len);
    step = step < *length ? step : *length;
    *run += step;
    *length -= step;
    return attr;
}

struct nl_attr nl_find(const char *run, size_t length, uint16_t type) {
    while (length) {
        struct nl_attr attr = nl_next(&run, &length);
        /* Type 0 is padding in some messages, never what is looked for. */
        if (attr.bytes && attr.type == type) {
            return attr;
        }
        if (!attr.bytes) {
            break;
        }
    }
    return (struct nl_attr){0};
}

bool nl_get(const struct nl_attr *attr, void *value, size_t room) {
    size_t length = attr->length < room ? attr->length : room;
    memset(value, 0, room);
    if (length) {
        memcpy(value, attr->bytes, length);
    }
    return length == room;
}

uint32_t nl_get_u32(const struct nl_attr *attr) {
    uint32_t value;
    nl_get(attr, &value, sizeof value);
    return value;
}

uint64_t nl_get_u64(const struct nl_attr *attr) {
    uint64_t value;
    nl_get(attr, &value, sizeof value);
    return value;
}

/* -- the conversation -------------------------------------------------------------------------- */

enum heard { HEARD_MORE, HEARD_LAST };

/* The text attribute of an extended acknowledgement. Its place depends on whether the request is
 * repeated in front of it (NLM_F_CAPPED: it is not). */
static void read_text(const struct nlmsghdr *header, const char *body, size_t length, char *text,
                      size_t room) {
    text[0] = '\0';
    struct nlmsgerr result;
    if (!(header->nlmsg_flags & NLM_F_ACK_TLVS) || length < sizeof result) {
        return;
    }
    memcpy(&result, body, sizeof result);
    size_t skip = sizeof result;
    if (!(header->nlmsg_flags & NLM_F_CAPPED) && result.msg.nlmsg_len >= sizeof result.msg) {
        skip += NLMSG_ALIGN(result.msg.nlmsg_len - sizeof result.msg);
    }
    if (skip > length) {
        return;
    }
    struct nl_attr attr = nl_find(body + skip, length - skip, NLMSGERR_ATTR_MSG);
    if (!attr.bytes) {
        return;
    }
    size_t size = 0;
    for (; size < attr.length && size + 1 < room && attr.bytes[size]; size++) {
        /* It becomes part of a line of printable words. */
        char c = attr.bytes[size];
        text[size] = c < ' ' || c > '~' ? '?' : c;
    }
    text[size] = '\0';
}

static enum heard hear_error(const struct nlmsghdr *header, const char *body, size_t length,
                             uint32_t last, const struct nl_listener *listener) {
    int error = -EPROTO;
    if (length >= sizeof error) {
        memcpy(&error, body, sizeof error);
    }
    if (error) {
        char text[160];
        read_text(header, body, length, text, sizeof text);
        if (listener->failed) {
            listener->failed(listener->context, header->nlmsg_seq, error < 0 ? error : -EPROTO,
                             text);
        }
    }
    return header->nlmsg_seq == last ? HEARD_LAST : HEARD_MORE;
}

/* A dump that could not go on ends with the reason. */
static void hear_done(const struct nlmsghdr *header, const char *body, size_t length,
                      const struct nl_listener *listener) {
    int error = 0;
    if (length >= sizeof error) {
        memcpy(&error, body, sizeof error);
    }
    if (error < 0 && listener->failed) {
        listener->failed(listener->context, header->nlmsg_seq, error, "");
    }
}

/* One datagram of answers; *broken when a dump says that it is not consistent. */
static enum heard hear(const char *bytes, size_t length, uint32_t last, bool *broken,
                       const struct nl_listener *listener) {
    enum heard heard = HEARD_MORE;
    while (length >= sizeof(struct nlmsghdr)) {
        struct nlmsghdr header;
        memcpy(&header, bytes, sizeof header);
        if (header.nlmsg_len < sizeof header || header.nlmsg_len > length) {
            break;
        }
        const char *body = bytes + NLMSG_HDRLEN;
        size_t size = header.nlmsg_len - NLMSG_HDRLEN;
        *broken = *broken || header.nlmsg_flags & NLM_F_DUMP_INTR;
        if (header.nlmsg_type == NLMSG_ERROR) {
            heard =
                hear_error(&header, body, size, last, listener) == HEARD_LAST ? HEARD_LAST : heard;
        } else if (header.nlmsg_type == NLMSG_DONE) {
            hear_done(&header, body, size, listener);
            heard = header.nlmsg_seq == last ? HEARD_LAST : heard;
        } else if (header.nlmsg_type >= NLMSG_MIN_TYPE && listener->message) {
            listener->message(listener->context, header.nlmsg_type, body, size);
        }
        size_t step = NLMSG_ALIGN(header.nlmsg_len);
        step = step < length ? step : length;
        bytes += step;
        length -= step;
    }
    return heard;
}

static int converse(const struct nl_channel *channel, struct nl_buffer *b, uint32_t last,
                    const struct nl_listener *listener) {
    if (b->failed) {
        return -ENOMEM;
    }
    static _Thread_local _Alignas(NLMSG_ALIGNTO) char answer[ANSWER_BYTES];
    ssize_t got;
    bool broken = false;
    do {
        got = channel->send(channel->context, b->bytes, b->used);
    } while (got == -EINTR);
    if (got < 0) {
        return (int)got;
    }
    for (enum heard heard = HEARD_MORE; heard == HEARD_MORE;) {
        got = channel->receive(channel->context, answer, sizeof answer);
        if (got == -EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? (int)got : -EPROTO;
        }
        heard = hear(answer, (size_t)got, last, &broken, listener);
    }
    return broken ? -EINTR : 0;
}

int nl_talk(const struct nl_channel *channel, struct nl_buffer *b, uint32_t last,
            const struct nl_listener *listener) {
    if (!b->failed) {
        uint16_t flags;
        char *at = b->bytes + b->message + offsetof(struct nlmsghdr, nlmsg_flags);
        memcpy(&flags, at, sizeof flags);
        flags |= NLM_F_ACK;
        memcpy(at, &flags, sizeof flags);
    }
    return converse(channel, b, last, listener);
}

int nl_dump(const struct nl_channel *channel, struct nl_buffer *b, uint32_t sequence,
            const struct nl_listener *listener) {
    return converse(channel, b, sequence, listener);
}

bool nl_body(void *body, size_t bytes, const char **message, size_t *length) {
    size_t padded = NLMSG_ALIGN(bytes);
    if (*length < bytes) {
        return false;
    }
    memcpy(body, *message, bytes);
    padded = padded < *length ? padded : *length;
    *message += padded;
    *length -= padded;
    return true;
}

struct question {
    nl_hear *hear;
    void *context;
    int error;
    struct nl_why *why;
};

static void hear_refusal(void *context, uint32_t sequence, int error, const char *text) {
    struct question *q = context;
    (void)sequence;
    q->error = error;
    snprintf(q->why->text, sizeof q->why->text, "%s", text);
}

static void hear_message(void *context, uint16_t type, const char *body, size_t length) {
    struct question *q = context;
    if (q->hear) {
        q->hear(q->context, type, body, length);
    }
}

int nl_ask(const struct nl_channel *channel, struct nl_buffer *b, nl_hear *heard, void *context,
           struct nl_why *why) {
    struct question q = {heard, context, 0, why};
    struct nl_listener listener = {&q, hear_refusal, hear_message};
    struct nlmsghdr header = {0};
    why->text[0] = '\0';
    nl_end(b);
    if (!b->failed) {
        memcpy(&header, b->bytes + b->message, sizeof header);
    }
    int error = (header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP ? nl_dump(channel, b, 1, &listener)
                                                                : nl_talk(channel, b, 1, &listener);
    nl_buffer_free(b);
    return error ? error : q.error;
}
