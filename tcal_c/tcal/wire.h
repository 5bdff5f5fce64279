/* Netlink as tcald needs it: many messages in one buffer, sent at once, their answers matched.
 *
 * The kernel answers a failed message in any case and a successful one only when asked. So only the
 * last message of a send asks: its answer says that all before it were worked on, in order, and
 * whatever did not answer by then has succeeded.
 */
#ifndef TCAL_WIRE_H
#define TCAL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/netlink.h>

struct tcal_buffer {
    char *bytes;
    size_t used;
    size_t room;
    size_t message; /* where the message being built begins */
    bool failed;    /* out of memory: something is missing */
};

void tcal_buffer_free(struct tcal_buffer *b);

/* Starts a message whose fixed part is `body`; tcal_end closes it. */
void tcal_begin(struct tcal_buffer *b, uint16_t type, uint16_t flags, uint32_t sequence,
                const void *body, size_t bytes);
void tcal_end(struct tcal_buffer *b);

void tcal_put(struct tcal_buffer *b, uint16_t type, const void *value, size_t bytes);
void tcal_put_u32(struct tcal_buffer *b, uint16_t type, uint32_t value);
void tcal_put_u64(struct tcal_buffer *b, uint16_t type, uint64_t value);
void tcal_put_text(struct tcal_buffer *b, uint16_t type, const char *value);

/* Bytes without a header of their own: the fixed part inside a nest. */
void tcal_append(struct tcal_buffer *b, const void *value, size_t bytes);

/* Attributes between these two are inside the one that tcal_nest began. */
size_t tcal_nest(struct tcal_buffer *b, uint16_t type);
void tcal_nest_end(struct tcal_buffer *b, size_t nest);

/* The attributes of a message or a nest, one after the other. */
struct tcal_attr {
    uint16_t type; /* 0: no more */
    const char *bytes;
    size_t length;
};

/* The attribute at the front of the run, which is cut off it; anything malformed ends the run. */
struct tcal_attr tcal_next(const char **run, size_t *length);
/* The first attribute of this type, or one of type 0. */
struct tcal_attr tcal_find(const char *run, size_t length, uint16_t type);
/* Copies at most `room` bytes of the value; what it lacks is zero. False when it lacks any. */
bool tcal_get(const struct tcal_attr *attr, void *value, size_t room);
uint32_t tcal_get_u32(const struct tcal_attr *attr);
uint64_t tcal_get_u64(const struct tcal_attr *attr);

/* A way to a kernel: a socket, or what a test puts in its place. All return -errno on failure. */
struct tcal_channel {
    void *context;
    ssize_t (*send)(void *context, const void *bytes, size_t count);
    /* One datagram. */
    ssize_t (*receive)(void *context, void *bytes, size_t room);
    void (*close)(void *context);
};

/* Who is told of the answers to a send. `error` is negative; `text` is the kernel's own words and
 * may be empty. `message` without its header: `body` of `length` bytes. */
struct tcal_listener {
    void *context;
    void (*failed)(void *context, uint32_t sequence, int error, const char *text);
    void (*message)(void *context, uint16_t type, const char *body, size_t length);
};

/* Sends what the buffer holds, which ends with message `last`, and hears everything up to its
 * answer. 0, or -errno when the kernel cannot be talked to: then nobody knows what is done. */
int tcal_talk(const struct tcal_channel *channel, struct tcal_buffer *b, uint32_t last,
              const struct tcal_listener *listener);

/* Sends one dump request and hears all of its answer. -EINTR: the state changed meanwhile. */
int tcal_dump(const struct tcal_channel *channel, struct tcal_buffer *b, uint32_t sequence,
              const struct tcal_listener *listener);

#endif
