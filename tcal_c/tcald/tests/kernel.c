/* The kernel's side of tcald's conversation, in memory (kernel.h). */
#include "kernel.h"

#include "tcal/tree/objects.h"
#include "tcal/probe.h"
#include "tcal/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/gen_stats.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#define OPTIONS_ROOM 512
#define IFINDEX 7

enum sort { QDISC, CLASS, FILTER };

struct object {
    enum sort sort;
    struct tcmsg tc;
    char kind[16];
    size_t length; /* of the options */
    uint8_t options[OPTIONS_ROOM];
    struct kernel_stats stats;
};

static struct {
    struct object *object;
    size_t objects;
    size_t objects_room;
    bool gone;
    char other[16];
    uint64_t messages;
    uint64_t counted;
    uint64_t fail_at;
    int fail_with;
    struct {
        uint16_t type;
        char kind[16];
    } log[KERNEL_MESSAGES_KEPT];
    uint64_t log_from;
    uint8_t *answer; /* datagrams: a length, then so many bytes */
    size_t answers;
    size_t answered;
    size_t room;
    bool lost;
    const uint8_t *script;
    size_t script_left;
    const uint8_t *garble;
    size_t garble_left;
    uint32_t next_root; /* handles of filters in root tables */
    bool netem_counts;
    uint64_t clock_ns; /* of the probe */
} k;

void kernel_reset(void) {
    free(k.object);
    free(k.answer);
    memset(&k, 0, sizeof k);
}

void kernel_fail(uint64_t message, int error) {
    k.fail_at = message ? k.messages + message : 0;
    k.fail_with = error;
}

void kernel_unplug(void) {
    k.gone = true;
    k.objects = 0;
}

void kernel_occupy(const char *kind) {
    memset(k.other, 0, sizeof k.other);
    if (kind) {
        memcpy(k.other, kind, strlen(kind));
    }
}

uint64_t kernel_messages(void) {
    return k.messages;
}

uint64_t kernel_count(void) {
    uint64_t count = k.messages - k.counted;
    k.counted = k.messages;
    k.log_from = k.messages;
    return count;
}

uint64_t kernel_count_of(uint16_t type, const char *kind) {
    uint64_t count = 0;
    for (uint64_t i = k.log_from; i < k.messages; i++) {
        size_t at = i % KERNEL_MESSAGES_KEPT;
        count += k.log[at].type == type && (!*kind || strcmp(k.log[at].kind, kind) == 0);
    }
    return count;
}

size_t kernel_objects(void) {
    return k.objects;
}

void kernel_script(const uint8_t *bytes, size_t length) {
    k.script = bytes;
    k.script_left = length;
}

void kernel_garble(const uint8_t *bytes, size_t length) {
    k.garble = bytes;
    k.garble_left = length;
}

/* -- objects ----------------------------------------------------------------------------------- */

static struct object *find(enum sort sort, uint32_t handle, uint32_t info) {
    for (size_t i = 0; i < k.objects; i++) {
        struct object *o = &k.object[i];
        if (o->sort == sort && o->tc.tcm_handle == handle &&
            (sort != FILTER || o->tc.tcm_info == info)) {
            return o;
        }
    }
    return NULL;
}

static void drop(struct object *o) {
    *o = k.object[--k.objects];
}

/* The qdisc, what is in it, and (of htb) its classes and filters. */
static void drop_tree(uint32_t handle) {
    for (size_t i = 0; i < k.objects;) {
        struct object *o = &k.object[i];
        bool mine = (o->sort == QDISC && o->tc.tcm_handle == handle) ||
                    (o->sort != QDISC && (o->tc.tcm_parent & 0xffff0000u) == handle);
        if (mine) {
            drop(o);
            i = 0;
        } else if (o->sort == QDISC && (o->tc.tcm_parent & 0xffff0000u) == handle &&
                   o->tc.tcm_parent != TC_H_ROOT) {
            drop_tree(o->tc.tcm_handle);
            i = 0;
        } else {
            i++;
        }
    }
}

void kernel_break(uint32_t handle) {
    drop_tree(handle);
}

static struct object *any_of(uint32_t handle) {
    struct object *o = find(QDISC, handle, 0);
    return o ? o : find(CLASS, handle, 0);
}

struct kernel_stats *kernel_stats_of(uint32_t handle) {
    struct object *o = any_of(handle);
    return o ? &o->stats : NULL;
}

size_t kernel_options(uint32_t handle, void *value, size_t room) {
    const struct object *o = any_of(handle);
    if (!o) {
        return 0;
    }
    memcpy(value, o->options, o->length < room ? o->length : room);
    return o->length;
}

size_t kernel_option(uint32_t handle, uint16_t type, void *value, size_t room) {
    const struct object *o = any_of(handle);
    if (!o) {
        return 0;
    }
    size_t skip = strcmp(o->kind, "netem") == 0 ? sizeof(struct tc_netem_qopt) : 0;
    struct nl_attr attr = nl_find((const char *)o->options + skip, o->length - skip, type);
    if (attr.bytes) {
        memcpy(value, attr.bytes, attr.length < room ? attr.length : room);
    }
    return attr.length;
}

static struct object *add(enum sort sort, const struct tcmsg *tc, const char *kind) {
    if (k.objects == k.objects_room) {
        k.objects_room = k.objects_room ? k.objects_room * 2 : 64;
        k.object = realloc(k.object, k.objects_room * sizeof *k.object);
        if (!k.object) {
            abort();
        }
    }
    struct object *o = &k.object[k.objects++];
    *o = (struct object){.sort = sort, .tc = *tc};
    memcpy(o->kind, kind, strlen(kind));
    return o;
}

/* Options as they will be dumped: delay tables and seeds are not. */
static void set_options(struct object *o, const struct nl_attr *options) {
    size_t skip = strcmp(o->kind, "netem") == 0 ? sizeof(struct tc_netem_qopt) : 0;
    const char *run = options->bytes;
    size_t length = options->length;
    skip = skip < length ? skip : length;
    o->length = skip;
    if (!run) {
        return;
    }
    memcpy(o->options, run, skip);
    run += skip;
    length -= skip;
    if (strcmp(o->kind, "bfifo") == 0) {
        o->length = length < OPTIONS_ROOM ? length : OPTIONS_ROOM;
        memcpy(o->options, run, o->length);
        return;
    }
    while (length) {
        const char *before = run;
        struct nl_attr attr = nl_next(&run, &length);
        size_t size = (size_t)(run - before);
        if (!attr.bytes) {
            break;
        }
        if (size < 200 && o->length + size <= OPTIONS_ROOM) {
            memcpy(o->options + o->length, before, size);
            o->length += size;
        }
    }
}

static int new_qdisc(struct tcmsg *tc, uint16_t flags, const char *kind,
                     const struct nl_attr *options) {
    struct object *o = find(QDISC, tc->tcm_handle, 0);
    if (tc->tcm_parent == 0 || (o && o->tc.tcm_parent == tc->tcm_parent)) {
        if (!o) {
            return -ENOENT;
        }
        if (flags & NLM_F_EXCL) {
            return -EEXIST;
        }
        if (strcmp(o->kind, kind) != 0) {
            return -EINVAL;
        }
        set_options(o, options);
        return 0;
    }
    bool top = tc->tcm_parent == TC_H_ROOT;
    uint32_t major = tc->tcm_parent & 0xffff0000u;
    if (!top && !find(QDISC, major, 0)) {
        return -ENOENT;
    }
    if (!top && major == TCAL_HTB && !find(CLASS, tc->tcm_parent, 0)) {
        return -ENOENT;
    }
    if (!(flags & NLM_F_CREATE)) {
        return -ENOENT;
    }
    for (size_t i = 0; i < k.objects; i++) {
        if (k.object[i].sort == QDISC && k.object[i].tc.tcm_parent == tc->tcm_parent) {
            drop_tree(k.object[i].tc.tcm_handle);
            break;
        }
    }
    o = add(QDISC, tc, kind);
    set_options(o, options);
    return 0;
}

static int new_class(struct tcmsg *tc, const char *kind, const struct nl_attr *options) {
    struct object *o = find(CLASS, tc->tcm_handle, 0);
    if (!find(QDISC, tc->tcm_parent, 0)) {
        return -ENOENT;
    }
    o = o ? o : add(CLASS, tc, kind);
    set_options(o, options);
    return 0;
}

/* A filter goes into a table that is there; a table's own handle has no node in it. */
static int new_filter(struct tcmsg *tc, const char *kind, const struct nl_attr *options) {
    struct nl_attr hash = nl_find(options->bytes, options->length, TCA_U32_HASH);
    struct nl_attr link = nl_find(options->bytes, options->length, TCA_U32_LINK);
    struct nl_attr divisor = nl_find(options->bytes, options->length, TCA_U32_DIVISOR);
    if (!find(QDISC, tc->tcm_parent, 0)) {
        return -ENOENT;
    }
    if ((hash.bytes && !find(FILTER, nl_get_u32(&hash) & 0xfff00000u, tc->tcm_info)) ||
        (link.bytes && !find(FILTER, nl_get_u32(&link), tc->tcm_info))) {
        return -EINVAL;
    }
    if (!divisor.bytes && tc->tcm_handle == 0) {
        tc->tcm_handle = 0x80000800u + k.next_root++;
    }
    if (find(FILTER, tc->tcm_handle, tc->tcm_info)) {
        return -EEXIST;
    }
    struct object *o = add(FILTER, tc, kind);
    set_options(o, options);
    return 0;
}

/* -- messages ---------------------------------------------------------------------------------- */

static void answer(uint16_t type, uint32_t sequence, uint16_t flags, const void *body,
                   size_t bytes) {
    uint32_t total = (uint32_t)(NLMSG_HDRLEN + bytes);
    struct nlmsghdr header = {
        .nlmsg_len = total, .nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_seq = sequence};
    if (k.answers + sizeof total + total > k.room) {
        k.room = (k.answers + total) * 2 + 4096;
        k.answer = realloc(k.answer, k.room);
    }
    memcpy(k.answer + k.answers, &total, sizeof total);
    memcpy(k.answer + k.answers + sizeof total, &header, sizeof header);
    memcpy(k.answer + k.answers + sizeof total + NLMSG_HDRLEN, body, bytes);
    k.answers += sizeof total + total;
}

static void answer_error(const struct nlmsghdr *to, int error) {
    struct {
        struct nlmsgerr head;
        char text[40];
    } body = {.head = {.error = error, .msg = *to}};
    static const char words[] = "the test wants it";
    struct nlattr attr = {sizeof attr + sizeof words, NLMSGERR_ATTR_MSG};
    if (error == 0) {
        answer(NLMSG_ERROR, to->nlmsg_seq, NLM_F_CAPPED, &body.head, sizeof body.head);
        return;
    }
    memcpy(body.text, &attr, sizeof attr);
    memcpy(body.text + sizeof attr, words, sizeof words);
    answer(NLMSG_ERROR, to->nlmsg_seq, NLM_F_CAPPED | NLM_F_ACK_TLVS, &body, sizeof body);
}

static void answer_object(const struct object *o, uint32_t sequence) {
    static const uint16_t types[] = {RTM_NEWQDISC, RTM_NEWTCLASS, RTM_NEWTFILTER};
    struct nl_buffer b = {0};
    struct gnet_stats_basic basic = {.bytes = o->stats.bytes,
                                     .packets = (uint32_t)o->stats.packets};
    struct gnet_stats_queue queue = {.qlen = o->stats.qlen,
                                     .backlog = o->stats.backlog,
                                     .drops = o->stats.drops,
                                     .overlimits = o->stats.overlimits};
    nl_begin(&b, types[o->sort], 0, sequence, &o->tc, sizeof o->tc);
    nl_put_text(&b, TCA_KIND, o->kind);
    nl_put(&b, TCA_OPTIONS, o->options, o->length);
    size_t nest = nl_nest(&b, TCA_STATS2);
    nl_put(&b, TCA_STATS_BASIC, &basic, sizeof basic);
    nl_put(&b, TCA_STATS_QUEUE, &queue, sizeof queue);
    if (o->stats.packets > UINT32_MAX) {
        nl_put_u64(&b, TCA_STATS_PKT64, o->stats.packets);
    }
    nl_nest_end(&b, nest);
    nl_end(&b);
    answer(types[o->sort], sequence, NLM_F_MULTI, b.bytes + NLMSG_HDRLEN, b.used - NLMSG_HDRLEN);
    nl_buffer_free(&b);
}

static void dump(const struct nlmsghdr *header, const struct tcmsg *tc) {
    enum sort sort = header->nlmsg_type == RTM_GETQDISC    ? QDISC
                     : header->nlmsg_type == RTM_GETTCLASS ? CLASS
                                                           : FILTER;
    int done = 0;
    for (size_t i = 0; i < k.objects; i++) {
        if (k.object[i].sort == sort &&
            (sort == QDISC || (k.object[i].tc.tcm_parent & 0xffff0000u) == tc->tcm_parent)) {
            answer_object(&k.object[i], header->nlmsg_seq);
        }
    }
    answer(NLMSG_DONE, header->nlmsg_seq, NLM_F_MULTI, &done, sizeof done);
}

static int carry_out(const struct nlmsghdr *header, struct tcmsg *tc, const char *kind,
                     const struct nl_attr *options) {
    struct object *o;
    switch (header->nlmsg_type) {
    case RTM_NEWQDISC:
        return new_qdisc(tc, header->nlmsg_flags, kind, options);
    case RTM_DELQDISC:
        if (!find(QDISC, tc->tcm_handle, 0)) {
            return -ENOENT;
        }
        drop_tree(tc->tcm_handle);
        return 0;
    case RTM_NEWTCLASS:
        return new_class(tc, kind, options);
    case RTM_NEWTFILTER:
        return new_filter(tc, kind, options);
    case RTM_DELTFILTER:
        o = find(FILTER, tc->tcm_handle, tc->tcm_info);
        if (!o) {
            return -ENOENT;
        }
        drop(o);
        return 0;
    case RTM_GETQDISC:
        o = find(QDISC, tc->tcm_handle, 0);
        if (o) {
            answer_object(o, header->nlmsg_seq);
        }
        return o ? 0 : -ENOENT;
    default:
        return 0; /* of links */
    }
}

/* Whether a failure was wanted just now; *error. */
static bool wanted(int *error) {
    if (k.fail_at && (k.messages == k.fail_at ||
                      (k.messages > k.fail_at && k.fail_with == KERNEL_REFUSES_ALL))) {
        *error = k.fail_with > -4 ? -EPERM : k.fail_with;
        return true;
    }
    return false;
}

static void take(const struct nlmsghdr *header, const char *body, size_t length) {
    struct tcmsg tc = {0};
    char kind[16] = "";
    memcpy(&tc, body, length < sizeof tc ? length : sizeof tc);
    size_t skip = length < sizeof tc ? length : sizeof tc;
    struct nl_attr attr = nl_find(body + skip, length - skip, TCA_KIND);
    struct nl_attr options = nl_find(body + skip, length - skip, TCA_OPTIONS);
    nl_get(&attr, kind, sizeof kind - 1);
    if ((header->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP) {
        dump(header, &tc);
        return;
    }
    size_t at = k.messages++ % KERNEL_MESSAGES_KEPT;
    k.log[at].type = header->nlmsg_type;
    memcpy(k.log[at].kind, kind, sizeof kind);
    int error = 0;
    if (k.gone) {
        error = -ENODEV;
    } else if (!wanted(&error)) {
        error = carry_out(header, &tc, kind, &options);
    }
    if (error || header->nlmsg_flags & NLM_F_ACK) {
        answer_error(header, error);
    }
}

static ssize_t fake_send(void *context, const void *bytes, size_t count) {
    (void)context;
    const char *run = bytes;
    struct nlmsghdr header;
    memcpy(&header, run, sizeof header);
    bool question = (header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    k.answers = k.answered = 0;
    k.lost = false;
    for (size_t left = count; left >= sizeof header; left -= NLMSG_ALIGN(header.nlmsg_len)) {
        memcpy(&header, run, sizeof header);
        if (k.fail_at == k.messages + 1 && !question && k.fail_with == KERNEL_SEND_FAILS) {
            k.fail_at = 0;
            return -ENOBUFS;
        }
        if (k.fail_at == k.messages + 1 && !question && k.fail_with == KERNEL_ANSWER_LOST) {
            k.fail_at = 0;
            k.lost = true;
        }
        take(&header, run + NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN);
        run += NLMSG_ALIGN(header.nlmsg_len);
    }
    return (ssize_t)count;
}

/* What a fuzzer says; then an acknowledgement of whatever is asked, so that it ends. */
static ssize_t scripted(void *bytes, size_t room) {
    if (k.script_left < 2) {
        return -ENOBUFS;
    }
    size_t length = (size_t)(k.script[0] | k.script[1] << 8) % 4096;
    k.script += 2;
    k.script_left -= 2;
    length = length < k.script_left ? length : k.script_left;
    length = length < room ? length : room;
    memcpy(bytes, k.script, length);
    k.script += length;
    k.script_left -= length;
    return (ssize_t)length;
}

static ssize_t fake_receive(void *context, void *bytes, size_t room) {
    (void)context;
    uint32_t length;
    if (k.script) {
        return scripted(bytes, room);
    }
    if (k.lost || k.answered >= k.answers) {
        k.lost = false;
        return -ENOBUFS;
    }
    memcpy(&length, k.answer + k.answered, sizeof length);
    memcpy(bytes, k.answer + k.answered + sizeof length, length < room ? length : room);
    k.answered += sizeof length + length;
    for (int i = 0; i < 2 && k.garble_left >= 3 && length; i++) {
        ((uint8_t *)bytes)[(size_t)(k.garble[0] | k.garble[1] << 8) % length] = k.garble[2];
        k.garble += 3;
        k.garble_left -= 3;
    }
    return (ssize_t)length;
}

static void fake_close(void *context) {
    (void)context;
}

/* -- in place of socket.c ---------------------------------------------------------------------- */

bool tcal_socket_open(const char *netns, struct nl_channel *channel, uint64_t *inode,
                      struct tcal_error *error) {
    if (strcmp(netns, "/refused") == 0) {
        return tcal_fail(error, -ENOENT, NULL, "open network namespace %s", netns);
    }
    *inode = 4026531840u;
    *channel = (struct nl_channel){.send = fake_send, .receive = fake_receive, .close = fake_close};
    return true;
}

bool tcal_interface_find(const struct nl_channel *channel, const char *name,
                         struct tcal_interface *interface, struct tcal_error *error) {
    (void)channel;
    *interface = (struct tcal_interface){
        .ifindex = IFINDEX, .mtu = 1500, .segments = 65535, .mac = {2, 0, 0, 0, 0, 1}};
    memcpy(interface->root, k.other, sizeof interface->root);
    interface->ours = find(QDISC, TCAL_ROOT, 0);
    if (interface->ours) {
        memcpy(interface->root, "tbf", 4);
    }
    return strcmp(name, "eth0") == 0 || tcal_fail(error, -ENODEV, NULL, "find interface %s", name);
}

bool tcal_interface_there(const struct nl_channel *channel, uint32_t ifindex) {
    (void)channel;
    return !k.gone && ifindex == IFINDEX;
}

void kernel_leave_tree(void) {
    struct tcmsg tc = {.tcm_handle = TCAL_ROOT, .tcm_parent = TC_H_ROOT, .tcm_ifindex = IFINDEX};
    add(QDISC, &tc, "tbf");
}

/* -- in place of probe_host.c ------------------------------------------------------------------ */

void kernel_count_netem(bool counts) {
    k.netem_counts = counts;
}

bool probe_send(uint32_t ifindex, uint32_t class, int frames) {
    struct object *o = find(CLASS, class, 0);
    if (ifindex != IFINDEX || !o) {
        return false;
    }
    o->stats.packets += k.netem_counts ? (uint64_t)frames : 1;
    return true;
}

uint64_t probe_clock_ns(void) {
    return k.clock_ns;
}

void probe_pause(void) {
    k.clock_ns += 1000000;
}
