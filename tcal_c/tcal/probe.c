/* Whether this kernel has what a tree is made of: really added, to an interface made for it.
 *
 * Modules may be built in, loaded on demand, refused or absent; only an attempt tells.
 */
#include "probe.h"

#include "common/netlink/netns.h"
#include "tcal/tree/dist.h"
#include "tcal/tree/objects.h"
#include "socket.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <net/if.h>

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

static const struct {
    const char *name;
    bool needed;
} abilities[TCAL_ABILITIES] = {{"htb", true},          {"tbf", true},       {"netem", true},
                               {"bfifo", true},        {"blackhole", true}, {"u32", true},
                               {"netem-counts", false}};

enum { HTB, TBF, NETEM, BFIFO, BLACKHOLE, U32 };

#define INTERFACE "eth0"

/* Sends one message and notes what became of it. */
static bool attempt(const struct nl_channel *channel, struct nl_buffer *b,
                    struct tcal_ability *ability) {
    struct nl_why why;
    int error = nl_ask(channel, b, NULL, NULL, &why);
    ability->found = error == 0;
    if (error) {
        snprintf(ability->why, sizeof ability->why, "%.60s%s%.50s", strerror(-error),
                 *why.text ? ": " : "", why.text);
    }
    return error == 0;
}

static void add_interface(struct nl_buffer *b) {
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
    nl_begin(b, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 1, &info, sizeof info);
    nl_put_text(b, IFLA_IFNAME, INTERFACE);
    size_t linkinfo = nl_nest(b, IFLA_LINKINFO);
    nl_put_text(b, IFLA_INFO_KIND, "veth");
    nl_nest_end(b, linkinfo);
    nl_end(b);
}

/* The tree of one path, on an interface with this number. */
static void add_all(const struct nl_channel *channel, uint32_t ifindex,
                    struct tcal_ability *ability) {
    struct nl_buffer b = {0};
    struct tcal_mail m = {&b, 1, ifindex};
    struct tcal_path path = {.rate_bps = 8000000, .delay_ns = 1000, .jitter_ns = 1, .up = true};
    struct tcal_options options = {.burst_ns = TCAL_BURST_NS};
    struct tcal_params p = tcal_derive(&path, &options, 1500, 0);
    struct addr addr = {4, {10, 0, 0, 1}};
    tcal_mail_root(&m, 1500);
    if (!attempt(channel, &b, &ability[TBF])) {
        nl_buffer_free(&b);
        return;
    }
    tcal_mail_htb(&m);
    if (attempt(channel, &b, &ability[HTB])) {
        /* A htb whose classes are refused is none. */
        tcal_mail_class(&m, 0, p.rate_bytes_ps, p.burst_ticks, 1500);
        attempt(channel, &b, &ability[HTB]);
    }
    tcal_mail_hole(&m, 0);
    attempt(channel, &b, &ability[BLACKHOLE]);
    tcal_mail_netem(&m, 0, &p, 1, tcal_class_of(0), true);
    attempt(channel, &b, &ability[NETEM]);
    tcal_mail_fifo(&m, 0, 10000, true);
    attempt(channel, &b, &ability[BFIFO]);
    tcal_mail_table(&m, 0, TCAL_SUBTABLE(0, 0));
    if (attempt(channel, &b, &ability[U32])) {
        tcal_mail_filter(&m, &addr, tcal_filter_handle(&addr, 1), tcal_class_of(0));
        attempt(channel, &b, &ability[U32]);
    }
    nl_buffer_free(&b);
}

/* -- does netem count what waits in the queue behind it? -----------------------------------------
 */

#define FRAMES 10
#define WAIT_NS 200000000ull /* at 8 Mb/s ten frames take 10 */

static void raise_link(const struct nl_channel *channel, uint32_t ifindex) {
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC,
                             .ifi_index = (int)ifindex,
                             .ifi_flags = IFF_UP,
                             .ifi_change = IFF_UP};
    struct nl_buffer b = {0};
    struct tcal_ability ignored = {0};
    nl_begin(&b, RTM_NEWLINK, 0, 1, &info, sizeof info);
    attempt(channel, &b, &ignored);
}

static void hear_class(void *context, uint16_t type, const char *body, size_t length) {
    uint32_t *packets = context;
    struct gnet_stats_basic basic;
    if (type == RTM_NEWTCLASS && length > sizeof(struct tcmsg)) {
        body += sizeof(struct tcmsg);
        length -= sizeof(struct tcmsg);
        struct nl_attr stats = nl_find(body, length, TCA_STATS2);
        struct nl_attr attr = nl_find(stats.bytes, stats.length, TCA_STATS_BASIC);
        nl_get(&attr, &basic, sizeof basic);
        *packets = basic.packets;
    }
}

/* Until Linux 6.13 (and 6.12.7, 6.6.68, 6.1.122) netem did not count the packets in a queue behind
 * it, so that htb took its class for empty, and they waited there for the next packet. */
static void try_counting(const struct nl_channel *channel, const struct tcal_interface *interface,
                         struct tcal_ability *ability) {
    struct nl_buffer b = {0};
    struct tcal_mail m = {&b, 7, interface->ifindex};
    uint32_t sent = 0;
    struct nl_listener listener = {.context = &sent, .message = hear_class};
    raise_link(channel, interface->ifindex);
    raise_link(channel, interface->peer);
    snprintf(ability->why, sizeof ability->why, "no frames could be sent");
    if (probe_send(interface->ifindex, tcal_class_of(0), FRAMES)) {
        uint64_t end = probe_clock_ns() + WAIT_NS;
        do {
            b.used = 0;
            tcal_mail_dump(&m, RTM_GETTCLASS, TCAL_HTB);
            ability->found = nl_dump(channel, &b, 7, &listener) == 0 && sent == FRAMES;
            probe_pause();
        } while (!ability->found && probe_clock_ns() < end);
        snprintf(ability->why, sizeof ability->why,
                 "%u of %u frames left the queue: trees are made deep", sent, FRAMES);
    }
    nl_buffer_free(&b);
}

void probe_begin(struct tcal_ability ability[TCAL_ABILITIES]) {
    for (int i = 0; i < TCAL_ABILITIES; i++) {
        ability[i] = (struct tcal_ability){.name = abilities[i].name,
                                           .needed = abilities[i].needed,
                                           .why = "not tried: what it needs is missing"};
    }
}

bool probe_kernel(const struct nl_channel *channel, struct tcal_ability ability[TCAL_ABILITIES],
                  struct tcal_error *error) {
    struct tcal_interface interface;
    struct tcal_ability link = {0};
    struct nl_buffer b = {0};
    add_interface(&b);
    bool good = attempt(channel, &b, &link) ||
                tcal_fail(error, 0, NULL, "add a veth interface: %s", link.why);
    nl_buffer_free(&b);
    good = good && tcal_interface_find(channel, INTERFACE, &interface, error);
    if (good) {
        add_all(channel, interface.ifindex, ability);
        if (ability[BFIFO].found) {
            try_counting(channel, &interface, &ability[TCAL_COUNTS]);
        }
    }
    return good;
}

/* -- in a network namespace that is thrown away ----------------------------------------------- */

/* Runs in the throwaway namespace. */
static bool inside(struct tcal_ability *ability, struct tcal_error *error) {
    struct nl_channel channel;
    uint64_t inode;
    if (!tcal_socket_open("/proc/thread-self/ns/net", &channel, &inode, error)) {
        return false;
    }
    bool good = probe_kernel(&channel, ability, error);
    nl_close(&channel);
    return good;
}

bool tcal_probe(struct tcal_ability ability[TCAL_ABILITIES], struct tcal_error *error) {
    probe_begin(ability);
    int home = netns_here();
    if (home < 0) {
        return tcal_fail(error, home, NULL, "open /proc/thread-self/ns/net");
    }
    bool good = unshare(CLONE_NEWNET) == 0
                    ? inside(ability, error)
                    : tcal_fail(error, -errno, NULL,
                                "make a network namespace (CAP_SYS_ADMIN is needed: run as root, "
                                "or in a user namespace)");
    netns_return(home);
    return good;
}
