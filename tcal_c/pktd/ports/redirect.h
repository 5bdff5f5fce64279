/* Sending what leaves an interface towards some prefixes to another interface: clsact, u32 and
 * mirred. */
#ifndef PKTD_REDIRECT_H
#define PKTD_REDIRECT_H

#include "common/addr.h"
#include "common/netlink/netlink.h"

/* Where a redirect is, for taking it back. */
struct redirect {
    struct nl_channel nl; /* of the interface's network namespace; all 0: none */
    int from;
    bool made_clsact;
};

/* Sends what leaves interface `from` towards the prefixes to interface `to`, and takes away what a
 * pktd that was killed left there. With -errno nothing is left behind; `why` has the kernel's text.
 * The calling thread is in the network namespace of both. */
int redirect_make(struct redirect *redirect, int from, int to, const struct prefix *prefix,
                  uint32_t count, struct nl_why *why);

/* Takes the redirect back, whatever namespace the thread is in: 0 or -errno. An interface that has
 * gone took its redirect with it: 0. */
int redirect_remove(struct redirect *redirect, struct nl_why *why);

#endif
