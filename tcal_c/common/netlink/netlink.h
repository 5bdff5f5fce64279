/* Netlink: many messages in one buffer, sent at once, their answers matched; or a single one.
 *
 * The kernel answers a failed message in any case and a successful one only when asked. So only the
 * last message of a send asks: its answer says that all before it were worked on, in order, and
 * whatever did not answer by then has succeeded.
 */
#ifndef COMMON_NETLINK_H
#define COMMON_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/netlink.h>

struct nl_buffer {
    char *bytes;
    size_t used;
    size_t room;
    size_t message; /* where the message being built begins */
    bool failed;    /* out of memory: something is missing */
};

void nl_buffer_free(struct nl_buffer *b);

/* Starts a message whose fixed part is `body`; nl_end closes it. */
void nl_begin(struct nl_buffer *b, uint16_t type, uint16_t flags, uint32_t sequence,
              const void *body, size_t bytes);
void nl_end(struct nl_buffer *b);

void nl_put(struct nl_buffer *b, uint16_t type, const void *value, size_t bytes);
void nl_put_u32(struct nl_buffer *b, uint16_t type, uint32_t value);
void nl_put_u64(struct nl_buffer *b, uint16_t type, uint64_t value);
void nl_put_text(struct nl_buffer *b, uint16_t type, const char *value);

/* Bytes without a header of their own: the fixed part inside a nest. */
void nl_append(struct nl_buffer *b, const void *value, size_t bytes);

/* Attributes between these two are inside the one that nl_nest began. */
size_t nl_nest(struct nl_buffer *b, uint16_t type);
void nl_nest_end(struct nl_buffer *b, size_t nest);

/* The attributes of a message or a nest, one after the other. */
struct nl_attr {
    uint16_t type; /* 0: no more */
    const char *bytes;
    size_t length;
};

/* The attribute at the front of the run, which is cut off it; anything malformed ends the run. */
struct nl_attr nl_next(const char **run, size_t *length);
/* The first attribute of this type, or one of type 0. */
struct nl_attr nl_find(const char *run, size_t length, uint16_t type);
/* Copies at most `room` bytes of the value; what it lacks is zero. False when it lacks any. */
bool nl_get(const struct nl_attr *attr, void *value, size_t room);
uint32_t nl_get_u32(const struct nl_attr *attr);
uint64_t nl_get_u64(const struct nl_attr *attr);

/* A way to a kernel: a socket, or what a test puts in its place. All return -errno on failure. */
struct nl_channel {
    void *context;
    ssize_t (*send)(void *context, const void *bytes, size_t count);
    /* One datagram. */
    ssize_t (*receive)(void *context, void *bytes, size_t room);
    void (*close)(void *context);
};

/* Who is told of the answers to a send. `error` is negative; `text` is the kernel's own words and
 * may be empty. `message` without its header: `body` of `length` bytes. */
struct nl_listener {
    void *context;
    void (*failed)(void *context, uint32_t sequence, int error, const char *text);
    void (*message)(void *context, uint16_t type, const char *body, size_t length);
};

/* An rtnetlink socket of the calling thread's network namespace: 0 or -errno. */
int nl_open(struct nl_channel *channel);
void nl_close(struct nl_channel *channel); /* one that is not open: nothing */

/* The kernel's own words about what it refused; may be empty. */
struct nl_why {
    char text[160];
};

/* Cuts a message's fixed part off its front: the attributes are left. False when it is too short.
 */
bool nl_body(void *body, size_t bytes, const char **message, size_t *length);

/* Sends the one message that the buffer holds, whose sequence number is 1, and frees the buffer;
 * `heard` (NULL: nobody) gets what the kernel tells of what is asked for. 0 or -errno. */
typedef void nl_hear(void *context, uint16_t type, const char *body, size_t length);
int nl_ask(const struct nl_channel *channel, struct nl_buffer *b, nl_hear *heard, void *context,
           struct nl_why *why);

/* Sends what the buffer holds, which ends with message `last`, and hears everything up to its
 * answer. 0, or -errno when the kernel cannot be talked to: then nobody knows what is done. */
int nl_talk(const struct nl_channel *channel, struct nl_buffer *b, uint32_t last,
            const struct nl_listener *listener);

/* Sends one dump request and hears all of its answer. -EINTR: the state changed meanwhile. */
int nl_dump(const struct nl_channel *channel, struct nl_buffer *b, uint32_t sequence,
            const struct nl_listener *listener);

#endif
