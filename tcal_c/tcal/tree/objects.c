/* Messages of rtnetlink's traffic control (rtnetlink(7), linux/pkt_sched.h, linux/pkt_cls.h). */
#include "objects.h"

#include "dist.h"

#include <arpa/inet.h>
#include <string.h>

#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#define MAKE (NLM_F_CREATE | NLM_F_REPLACE)
#define NETEM_PRNG_SEED 14 /* TCA_NETEM_PRNG_SEED; older headers lack it */
#define BUCKETS 256u
#define TABLE_ID(table) ((table) << 20)

static void begin(const struct tcal_mail *m, uint16_t type, uint16_t flags, uint32_t parent,
                  uint32_t handle, uint32_t info) {
    struct tcmsg body = {.tcm_family = AF_UNSPEC,
                         .tcm_ifindex = (int)m->ifindex,
                         .tcm_handle = handle,
                         .tcm_parent = parent,
                         .tcm_info = info};
    nl_begin(m->buffer, type, flags, m->sequence, &body, sizeof body);
}

static void end(const struct tcal_mail *m) {
    nl_end(m->buffer);
}

/* -- classes and queueing disciplines ---------------------------------------------------------- */

/* Sizes of layer 3, for everything in the tree; the kernel takes such a table at the root only. */
static void put_size_table(struct nl_buffer *b) {
    struct tc_sizespec spec = {.overhead = -(int)TCAL_ETHERNET_BYTES};
    size_t nest = nl_nest(b, TCA_STAB);
    nl_put(b, TCA_STAB_BASE, &spec, sizeof spec);
    nl_nest_end(b, nest);
}

static uint32_t rate32(uint64_t bytes_ps) {
    return bytes_ps > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes_ps;
}

static struct tc_ratespec rate_spec(uint64_t bytes_ps) {
    /* Of a stated link layer: the kernel need not guess it from a table. */
    return (struct tc_ratespec){.linklayer = TC_LINKLAYER_ETHERNET, .rate = rate32(bytes_ps)};
}

/* A tbf that never delays. What it is there for: a packet larger than its max_size is split into
 * its segments, or dropped if it is none of those, and max_size is what the peak rate's burst says.
 */
static void put_splitter(struct nl_buffer *b, uint32_t mtu) {
    struct tc_tbf_qopt opt = {.rate = rate_spec(TCAL_FASTEST_BYTES_PS),
                              .peakrate = rate_spec(2 * TCAL_FASTEST_BYTES_PS)};
    nl_put_text(b, TCA_KIND, "tbf");
    size_t nest = nl_nest(b, TCA_OPTIONS);
    nl_put(b, TCA_TBF_PARMS, &opt, sizeof opt);
    nl_put_u64(b, TCA_TBF_RATE64, TCAL_FASTEST_BYTES_PS);
    nl_put_u64(b, TCA_TBF_PRATE64, 2 * TCAL_FASTEST_BYTES_PS);
    nl_put_u32(b, TCA_TBF_BURST, 1u << 24);
    nl_put_u32(b, TCA_TBF_PBURST, mtu + TCAL_FRAME_EXTRA);
    nl_nest_end(b, nest);
}

void tcal_mail_root(const struct tcal_mail *m, uint32_t mtu) {
    begin(m, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, TC_H_ROOT, TCAL_ROOT, 0);
    put_size_table(m->buffer);
    put_splitter(m->buffer, mtu);
    end(m);
}

void tcal_mail_htb(const struct tcal_mail *m) {
    struct tc_htb_glob glob = {.version = 3, .rate2quantum = 10, .defcls = TCAL_DEFAULT_CLASS};
    begin(m, RTM_NEWQDISC, MAKE, TCAL_ROOT | 1, TCAL_HTB, 0);
    nl_put_text(m->buffer, TCA_KIND, "htb");
    size_t nest = nl_nest(m->buffer, TCA_OPTIONS);
    nl_put(m->buffer, TCA_HTB_INIT, &glob, sizeof glob);
    nl_put_u32(m->buffer, TCA_HTB_DIRECT_QLEN, 1000);
    nl_nest_end(m->buffer, nest);
    end(m);
}

void tcal_mail_segments(const struct tcal_mail *m, uint32_t segments) {
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC, .ifi_index = (int)m->ifindex};
    nl_begin(m->buffer, RTM_SETLINK, 0, m->sequence, &info, sizeof info);
    nl_put_u32(m->buffer, IFLA_GSO_MAX_SEGS, segments);
    end(m);
}

void tcal_mail_unroot(const struct tcal_mail *m) {
    begin(m, RTM_DELQDISC, 0, TC_H_ROOT, TCAL_ROOT, 0);
    end(m);
}

void tcal_mail_class(const struct tcal_mail *m, uint32_t slot, uint64_t rate_bytes_ps,
                     uint32_t burst_ticks, uint32_t mtu) {
    struct tc_htb_opt opt = {.rate = rate_spec(rate_bytes_ps),
                             .ceil = rate_spec(rate_bytes_ps),
                             .buffer = burst_ticks,
                             .cbuffer = burst_ticks,
                             .quantum = mtu + TCAL_ETHERNET_BYTES};
    begin(m, RTM_NEWTCLASS, NLM_F_CREATE, TCAL_HTB, tcal_class_of(slot), 0);
    nl_put_text(m->buffer, TCA_KIND, "htb");
    size_t nest = nl_nest(m->buffer, TCA_OPTIONS);
    nl_put(m->buffer, TCA_HTB_PARMS, &opt, sizeof opt);
    nl_put_u64(m->buffer, TCA_HTB_RATE64, rate_bytes_ps);
    nl_put_u64(m->buffer, TCA_HTB_CEIL64, rate_bytes_ps);
    nl_nest_end(m->buffer, nest);
    end(m);
}

void tcal_mail_hole(const struct tcal_mail *m, uint32_t slot) {
    begin(m, RTM_NEWQDISC, MAKE, tcal_class_of(slot), tcal_handle_of(slot, TCAL_HOLE), 0);
    nl_put_text(m->buffer, TCA_KIND, "blackhole");
    end(m);
}

void tcal_mail_split(const struct tcal_mail *m, uint32_t slot, uint32_t mtu) {
    begin(m, RTM_NEWQDISC, MAKE, tcal_class_of(slot), tcal_handle_of(slot, TCAL_SPLIT), 0);
    put_splitter(m->buffer, mtu);
    end(m);
}

void tcal_mail_netem(const struct tcal_mail *m, uint32_t slot, const struct tcal_params *p,
                     uint64_t seed, uint32_t parent, bool table) {
    struct tc_netem_qopt opt = {.limit = p->netem.limit, .loss = p->netem.loss};
    /* A rate, however large, makes netem time each packet after the one before: order is kept. */
    struct tc_netem_rate rate = {.rate = UINT32_MAX};
    struct nl_buffer *b = m->buffer;
    begin(m, RTM_NEWQDISC, parent ? MAKE : 0, parent, tcal_handle_of(slot, TCAL_NETEM), 0);
    nl_put_text(b, TCA_KIND, "netem");
    size_t nest = nl_nest(b, TCA_OPTIONS);
    nl_append(b, &opt, sizeof opt);
    nl_put_u64(b, TCA_NETEM_LATENCY64, p->netem.latency_ns);
    nl_put_u64(b, TCA_NETEM_JITTER64, p->netem.jitter_ns);
    nl_put(b, TCA_NETEM_RATE, &rate, sizeof rate);
    nl_put_u64(b, TCA_NETEM_RATE64, TCAL_NETEM_RATE_BYTES_PS);
    nl_put_u64(b, NETEM_PRNG_SEED, seed);
    if (table) {
        nl_put(b, TCA_NETEM_DELAY_DIST, tcal_dist_table(p->dist),
               TCAL_TABLE_SIZE * sizeof(int16_t));
    }
    nl_nest_end(b, nest);
    end(m);
}

void tcal_mail_fifo(const struct tcal_mail *m, uint32_t slot, uint32_t bytes, bool make) {
    struct tc_fifo_qopt opt = {.limit = bytes};
    begin(m, RTM_NEWQDISC, make ? MAKE : 0, make ? tcal_handle_of(slot, TCAL_NETEM) | 1 : 0,
          tcal_handle_of(slot, TCAL_FIFO), 0);
    nl_put_text(m->buffer, TCA_KIND, "bfifo");
    nl_put(m->buffer, TCA_OPTIONS, &opt, sizeof opt);
    end(m);
}

/* -- filters ----------------------------------------------------------------------------------- */

/* A struct tc_u32_sel, whose keys are behind its end. */
struct selector {
    unsigned char flags;
    unsigned char keys;
    int16_t hash_at;
    uint32_t hash_mask;
    struct tc_u32_key key[4];
};

/* Where the destination address is in the header, and its last word. */
static int destination_at(uint32_t family) {
    return family ? 24 : 16;
}

static int last_word_at(uint32_t family) {
    return family ? 36 : 16;
}

static void match(struct selector *s, const struct addr *addr, uint32_t bits) {
    uint32_t family = tcal_family_of(addr);
    for (uint32_t word = 0; word < (family ? 4u : 1u); word++) {
        uint32_t here = bits > 32 * word ? bits - 32 * word : 0;
        if (here == 0 && word > 0) {
            break;
        }
        uint32_t mask = here == 0 ? 0 : here >= 32 ? UINT32_MAX : ~(UINT32_MAX >> here);
        uint32_t value;
        memcpy(&value, addr->bytes + 4 * word, sizeof value);
        s->key[s->keys++] = (struct tc_u32_key){.mask = htonl(mask),
                                                .val = value & htonl(mask),
                                                .off = destination_at(family) + 4 * (int)word};
    }
}

static void hash_by(struct selector *s, uint32_t family, uint32_t mask) {
    s->hash_mask = htonl(mask);
    s->hash_at = (int16_t)last_word_at(family);
}

static uint32_t filter_info(uint32_t family, uint32_t priority) {
    return TC_H_MAKE(priority << 16, htons(family ? ETH_P_IPV6 : ETH_P_IP));
}

static size_t begin_filter(const struct tcal_mail *m, uint16_t type, uint16_t flags,
                           uint32_t family, uint32_t priority, uint32_t handle) {
    begin(m, type, flags, TCAL_HTB, handle, filter_info(family, priority));
    nl_put_text(m->buffer, TCA_KIND, "u32");
    return nl_nest(m->buffer, TCA_OPTIONS);
}

static void end_filter(const struct tcal_mail *m, size_t nest) {
    nl_nest_end(m->buffer, nest);
    end(m);
}

static void put_selector(const struct tcal_mail *m, const struct selector *s) {
    struct tc_u32_sel sel;
    memset(&sel, 0, sizeof sel); /* its padding too: what is read back is compared as bytes */
    sel.flags = s->flags;
    sel.nkeys = s->keys;
    sel.hoff = s->hash_at;
    sel.hmask = s->hash_mask;
    char bytes[sizeof sel + sizeof s->key];
    memcpy(bytes, &sel, sizeof sel);
    memcpy(bytes + sizeof sel, s->key, sizeof s->key);
    nl_put(m->buffer, TCA_U32_SEL, bytes, sizeof sel + s->keys * sizeof s->key[0]);
}

void tcal_mail_table(const struct tcal_mail *m, uint32_t family, uint32_t table) {
    size_t nest = begin_filter(m, RTM_NEWTFILTER, NLM_F_CREATE, family, TCAL_HASH_PRIORITY(family),
                               TABLE_ID(table));
    nl_put_u32(m->buffer, TCA_U32_DIVISOR, BUCKETS);
    end_filter(m, nest);
}

void tcal_mail_prefix(const struct tcal_mail *m, const struct prefix *prefix) {
    uint32_t family = tcal_family_of(&prefix->addr);
    struct selector s = {0};
    match(&s, &prefix->addr, prefix->bits);
    hash_by(&s, family, 0xff00);
    size_t nest =
        begin_filter(m, RTM_NEWTFILTER, NLM_F_CREATE, family, TCAL_HASH_PRIORITY(family), 0);
    nl_put_u32(m->buffer, TCA_U32_LINK, TABLE_ID(TCAL_TABLE(family)));
    put_selector(m, &s);
    end_filter(m, nest);
}

void tcal_mail_link(const struct tcal_mail *m, uint32_t family, uint32_t octet) {
    struct selector s = {0};
    struct addr any = {.version = family ? 6 : 4};
    match(&s, &any, 0);
    hash_by(&s, family, 0xff);
    uint32_t bucket = TABLE_ID(TCAL_TABLE(family)) | octet << 12;
    size_t nest = begin_filter(m, RTM_NEWTFILTER, NLM_F_CREATE, family, TCAL_HASH_PRIORITY(family),
                               bucket | 1);
    nl_put_u32(m->buffer, TCA_U32_HASH, bucket);
    nl_put_u32(m->buffer, TCA_U32_LINK, TABLE_ID(TCAL_SUBTABLE(family, octet)));
    put_selector(m, &s);
    end_filter(m, nest);
}

uint32_t tcal_filter_handle(const struct addr *addr, uint32_t id) {
    return TABLE_ID(TCAL_SUBTABLE(tcal_family_of(addr), tcal_octet(addr, 2))) |
           tcal_octet(addr, 1) << 12 | id;
}

void tcal_mail_filter(const struct tcal_mail *m, const struct addr *addr, uint32_t handle,
                      uint32_t class) {
    uint32_t family = tcal_family_of(addr);
    struct selector s = {.flags = TC_U32_TERMINAL};
    match(&s, addr, family ? 128 : 32);
    size_t nest =
        begin_filter(m, RTM_NEWTFILTER, NLM_F_CREATE, family, TCAL_HASH_PRIORITY(family), handle);
    nl_put_u32(m->buffer, TCA_U32_HASH, handle & 0xfffff000u);
    nl_put_u32(m->buffer, TCA_U32_CLASSID, class);
    put_selector(m, &s);
    end_filter(m, nest);
}

void tcal_mail_unfilter(const struct tcal_mail *m, uint32_t family, uint32_t handle) {
    size_t nest = begin_filter(m, RTM_DELTFILTER, 0, family, TCAL_HASH_PRIORITY(family), handle);
    end_filter(m, nest);
}

/* ICMPv6 types 133 to 137, as the next header behind the fixed one. */
void tcal_mail_nd(const struct tcal_mail *m, uint32_t number) {
    static const struct {
        uint32_t first;
        uint32_t mask;
    } types[TCAL_ND_FILTERS] = {{133, 0xff}, {134, 0xfe}, {136, 0xfe}};
    struct selector s = {.flags = TC_U32_TERMINAL, .keys = 2};
    s.key[0] = (struct tc_u32_key){
        .mask = htonl(0xff00), .val = htonl((uint32_t)IPPROTO_ICMPV6 << 8), .off = 4};
    s.key[1] = (struct tc_u32_key){.mask = htonl(types[number].mask << 24),
                                   .val = htonl(types[number].first << 24),
                                   .off = 40};
    size_t nest = begin_filter(m, RTM_NEWTFILTER, NLM_F_CREATE, 1, TCAL_ND_PRIORITY, 0);
    nl_put_u32(m->buffer, TCA_U32_CLASSID, TCAL_HTB); /* htb sends it out directly */
    put_selector(m, &s);
    end_filter(m, nest);
}

bool tcal_inside(const struct prefix *prefix, const struct addr *addr) {
    if (addr->version != prefix->addr.version) {
        return false;
    }
    uint32_t whole = prefix->bits / 8;
    uint32_t rest = prefix->bits % 8;
    return memcmp(prefix->addr.bytes, addr->bytes, whole) == 0 &&
           (rest == 0 || (prefix->addr.bytes[whole] ^ addr->bytes[whole]) >> (8 - rest) == 0);
}

/* -- questions --------------------------------------------------------------------------------- */

void tcal_mail_dump(const struct tcal_mail *m, uint16_t type, uint32_t parent) {
    begin(m, type, NLM_F_DUMP, parent, 0, 0);
    end(m);
}

void tcal_mail_ask(const struct tcal_mail *m, uint32_t handle) {
    /* Before Linux 6.7 the answer goes to listeners only, unless an echo is asked for. */
    begin(m, RTM_GETQDISC, NLM_F_ECHO, 0, handle, 0);
    end(m);
}
