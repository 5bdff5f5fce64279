/* Just enough netlink: build a request, send it, learn the kernel's answer in its own words. */
#ifndef PKTD_NETLINK_H
#define PKTD_NETLINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/netlink.h>

struct nl_request {
    _Alignas(NLMSG_ALIGNTO) char bytes[1024];
    uint32_t length;
};

/* An rtnetlink socket of the calling thread's network namespace, or -errno. */
int nl_open(void);

/* Starts a request whose fixed part is `body`. */
void nl_begin(struct nl_request *q, uint16_t type, uint16_t flags, const void *body, size_t bytes);
void nl_put(struct nl_request *q, uint16_t type, const void *value, size_t bytes);
void nl_put_u32(struct nl_request *q, uint16_t type, uint32_t value);
void nl_put_text(struct nl_request *q, uint16_t type, const char *value);

/* Appends bytes without a header of their own, as the fixed part inside a nest. */
void nl_append(struct nl_request *q, const void *value, size_t bytes);

/* Attributes between these two are inside the one that nl_nest began. */
uint32_t nl_nest(struct nl_request *q, uint16_t type);
void nl_nest_end(struct nl_request *q, uint32_t nest);

/* Sends and waits for the answer: 0 or -errno; then `why` holds the kernel's text (may be empty).
 */
int nl_talk(int fd, struct nl_request *q, char *why, size_t why_room);

/* Attributes one after the other, as received. */
struct nl_view {
    const char *bytes;
    size_t length;
};

/* Copies the fixed part of a message and finds its attributes; false when it is too short. */
bool nl_body(const struct nlmsghdr *message, void *body, size_t bytes, struct nl_view *attrs);

/* The first attribute of that type, or NULL. */
const struct nlattr *nl_find(const struct nl_view *attrs, uint16_t type);

/* The attributes inside one; none for NULL. */
struct nl_view nl_inside(const struct nlattr *attr);

/* Copies a value; false when there is none or it is too short. */
bool nl_get(const struct nlattr *attr, void *value, size_t bytes);

/* Asks for a list and calls `visit` for each message of the answer: 0 or -errno. */
typedef void nl_visit(void *context, const struct nlmsghdr *message);
int nl_dump(int fd, struct nl_request *q, nl_visit *visit, void *context);

#endif
