/* The filters stand at clsact egress of the interface, in preferences of their own: one for IPv4,
 * one for IPv6. Others' filters at the same place are never touched, nor is a clsact that was there
 * before. A filter's classid, which means nothing at clsact, tells that it is pktd's and whether
 * pktd made the clsact: that is how what a killed pktd left is known. Its device went with it, and
 * then the kernel drops what is sent there.
 *
 * Sources: tc-u32(8), linux/pkt_cls.h.
 */
#include "redirect.h"

#include "select.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>

#define PREFERENCE 0x7473u /* of the IPv4 filters; the IPv6 filters have the next */
#define MARK_FOUND 0x74730001u
#define MARK_MADE 0x74730002u /* pktd made the clsact */
#define SETTLE_TRIES 30
#define SETTLE_NS 10000000
#define EGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)
#define INGRESS TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)

static int change_clsact(const struct nl_channel *nl, int index, uint16_t type, uint16_t flags,
                         struct nl_why *why) {
    struct tcmsg tc = {.tcm_family = AF_UNSPEC,
                       .tcm_ifindex = index,
                       .tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0),
                       .tcm_parent = TC_H_CLSACT};
    struct nl_buffer q = {0};
    nl_begin(&q, type, flags, 1, &tc, sizeof tc);
    nl_put_text(&q, TCA_KIND, "clsact");
    return nl_ask(nl, &q, NULL, NULL, why);
}

static struct tcmsg filter_message(int index, int version) {
    bool is4 = version == 4;
    return (struct tcmsg){
        .tcm_family = AF_UNSPEC,
        .tcm_ifindex = index,
        .tcm_parent = EGRESS,
        .tcm_info = TC_H_MAKE((PREFERENCE + !is4) << 16, htons(is4 ? ETH_P_IP : ETH_P_IPV6))};
}

static void put_selector(struct nl_buffer *q, const struct selector *s) {
    struct tc_u32_sel head = {.flags = TC_U32_TERMINAL, .nkeys = s->keys};
    char bytes[sizeof head + sizeof s->key];
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, s->key, s->keys * sizeof *s->key);
    nl_put(q, TCA_U32_SEL, bytes, sizeof head + s->keys * sizeof *s->key);
}

static void put_mirred(struct nl_buffer *q, int to) {
    struct tc_mirred parameters = {
        .action = TC_ACT_STOLEN, .eaction = TCA_EGRESS_REDIR, .ifindex = (uint32_t)to};
    size_t actions = nl_nest(q, TCA_U32_ACT);
    size_t first = nl_nest(q, 1);
    nl_put_text(q, TCA_ACT_KIND, "mirred");
    size_t options = nl_nest(q, TCA_ACT_OPTIONS);
    nl_put(q, TCA_MIRRED_PARMS, &parameters, sizeof parameters);
    nl_nest_end(q, options);
    nl_nest_end(q, first);
    nl_nest_end(q, actions);
}

struct maker {
    const struct redirect *redirect;
    int to;
    struct nl_why *why;
};

static int add_filter(const struct maker *m, int version, const struct selector *s) {
    struct tcmsg tc = filter_message(m->redirect->from, version);
    struct nl_buffer q = {0};
    nl_begin(&q, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, 1, &tc, sizeof tc);
    nl_put_text(&q, TCA_KIND, "u32");
    size_t options = nl_nest(&q, TCA_OPTIONS);
    nl_put_u32(&q, TCA_U32_CLASSID, m->redirect->made_clsact ? MARK_MADE : MARK_FOUND);
    put_selector(&q, s);
    put_mirred(&q, m->to);
    nl_nest_end(&q, options);
    return nl_ask(&m->redirect->nl, &q, NULL, NULL, m->why);
}

static int remove_filters(const struct redirect *redirect, int version, struct nl_why *why) {
    struct tcmsg tc = filter_message(redirect->from, version);
    struct nl_buffer q = {0};
    nl_begin(&q, RTM_DELTFILTER, 0, 1, &tc, sizeof tc);
    return nl_ask(&redirect->nl, &q, NULL, NULL, why);
}

/* -- what is there already --------------------------------------------------------------------- */

struct survey {
    uint32_t filters; /* of anybody */
    bool ours[2];     /* IPv4, IPv6: our preference is in use */
    bool foreign;     /* by somebody else, or by a pktd that lives */
    bool made_clsact; /* by the pktd that left these filters */
};

/* The device that the filter's first action sends to, 0 when it has gone or there is none. */
static uint32_t mirred_target(const struct nl_attr *actions) {
    struct nl_attr first = nl_find(actions->bytes, actions->length, 1);
    struct nl_attr options = nl_find(first.bytes, first.length, TCA_ACT_OPTIONS);
    struct nl_attr parameters = nl_find(options.bytes, options.length, TCA_MIRRED_PARMS);
    struct tc_mirred mirred;
    return nl_get(&parameters, &mirred, sizeof mirred) ? mirred.ifindex : 0;
}

static void look(void *context, uint16_t type, const char *body, size_t length) {
    struct survey *survey = context;
    struct tcmsg tc;
    if (type != RTM_NEWTFILTER || !nl_body(&tc, sizeof tc, &body, &length)) {
        return;
    }
    survey->filters++;
    uint32_t which = TC_H_MAJ(tc.tcm_info) >> 16;
    if (tc.tcm_parent != EGRESS || (which != PREFERENCE && which != PREFERENCE + 1)) {
        return;
    }
    survey->ours[which - PREFERENCE] = true;
    struct nl_attr options = nl_find(body, length, TCA_OPTIONS);
    struct nl_attr id = nl_find(options.bytes, options.length, TCA_U32_CLASSID);
    uint32_t mark;
    if (!nl_get(&id, &mark, sizeof mark)) {
        return; /* the head of the hash table */
    }
    struct nl_attr actions = nl_find(options.bytes, options.length, TCA_U32_ACT);
    survey->made_clsact |= mark == MARK_MADE;
    survey->foreign |= (mark != MARK_MADE && mark != MARK_FOUND) || mirred_target(&actions) != 0;
}

/* Again if somebody changed filters meanwhile. */
static int survey_filters(const struct redirect *redirect, uint32_t parent, struct survey *survey) {
    struct tcmsg tc = {
        .tcm_family = AF_UNSPEC, .tcm_ifindex = redirect->from, .tcm_parent = parent};
    struct nl_why why;
    int error;
    do {
        struct nl_buffer q = {0};
        *survey = (struct survey){0};
        nl_begin(&q, RTM_GETTFILTER, NLM_F_DUMP, 1, &tc, sizeof tc);
        error = nl_ask(&redirect->nl, &q, look, survey, &why);
    } while (error == -EINTR);
    return error;
}

/* -- in and out -------------------------------------------------------------------------------- */

/* Takes away what is ours; then the clsact, if nobody uses it. What counts is what is left:
 * somebody else may have removed some of it. */
static int take_away(struct redirect *redirect, struct nl_why *why) {
    struct survey out;
    struct survey in;
    struct nl_why other;
    int error = remove_filters(redirect, 4, why);
    int second = remove_filters(redirect, 6, error ? &other : why);
    int unseen = survey_filters(redirect, EGRESS, &out);
    if (unseen || out.ours[0] || out.ours[1]) {
        return error ? error : second ? second : unseen;
    }
    unseen = survey_filters(redirect, INGRESS, &in);
    if (unseen || out.filters || in.filters || !redirect->made_clsact) {
        return unseen;
    }
    return change_clsact(&redirect->nl, redirect->from, RTM_DELQDISC, 0, why);
}

struct place {
    int index;
    bool clsact;
};

static void look_at_place(void *context, uint16_t type, const char *body, size_t length) {
    struct place *place = context;
    struct tcmsg tc;
    char kind[sizeof "clsact"];
    if (type == RTM_NEWQDISC && nl_body(&tc, sizeof tc, &body, &length) &&
        tc.tcm_ifindex == place->index && tc.tcm_parent == TC_H_CLSACT) {
        struct nl_attr attr = nl_find(body, length, TCA_KIND);
        place->clsact =
            nl_get(&attr, kind, sizeof kind) && memcmp(kind, "clsact", sizeof kind) == 0;
    }
}

/* The older ingress has the same place and takes filters for egress without a word, for what comes
 * in. */
static int check_clsact(const struct redirect *redirect, struct nl_why *why) {
    struct place place = {.index = redirect->from};
    struct tcmsg tc = {.tcm_family = AF_UNSPEC, .tcm_ifindex = redirect->from};
    int error;
    do {
        struct nl_buffer q = {0};
        nl_begin(&q, RTM_GETQDISC, NLM_F_DUMP, 1, &tc, sizeof tc);
        error = nl_ask(&redirect->nl, &q, look_at_place, &place, why);
    } while (error == -EINTR);
    if (!error && !place.clsact) {
        snprintf(why->text, sizeof why->text, "there is an ingress qdisc where clsact must be");
        error = -EBUSY;
    }
    return error;
}

/* The kernel removes the veth of a pktd that was killed some time after its end: what looks in use
 * gets that time. */
static int survey_settled(const struct redirect *redirect, struct survey *survey) {
    int error = 0;
    for (int tries = 0; tries < SETTLE_TRIES && !error; tries++) {
        struct timespec pause = {0, tries ? SETTLE_NS : 0};
        nanosleep(&pause, NULL);
        error = survey_filters(redirect, EGRESS, survey);
        if (!survey->foreign) {
            break;
        }
    }
    return error;
}

/* Looks at what is there: nothing, others' filters, or what a pktd left that was killed. */
static int prepare(struct redirect *redirect, struct nl_why *why) {
    struct survey survey = {0};
    int error =
        change_clsact(&redirect->nl, redirect->from, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, why);
    redirect->made_clsact = !error;
    if (error != -EEXIST) {
        return error;
    }
    error = check_clsact(redirect, why);
    if (!error) {
        error = survey_settled(redirect, &survey);
    }
    if (error) {
        return error;
    }
    if (survey.foreign) {
        snprintf(why->text, sizeof why->text, "its filters of preference %u are in use",
                 PREFERENCE);
        return -EBUSY;
    }
    redirect->made_clsact = survey.made_clsact;
    for (int i = 0; !error && i < 2; i++) {
        error = survey.ours[i] ? remove_filters(redirect, i ? 6 : 4, why) : 0;
    }
    return error;
}

static int add_all(const struct maker *m, const struct prefix *prefix, uint32_t count) {
    struct selector s[SELECTOR_LIMIT];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t selectors = select_prefix(&prefix[i], s);
        for (uint32_t k = 0; k < selectors; k++) {
            int error = add_filter(m, prefix[i].addr.version, &s[k]);
            if (error) {
                return error;
            }
        }
    }
    return 0;
}

int redirect_make(struct redirect *redirect, int from, int to, const struct prefix *prefix,
                  uint32_t count, struct nl_why *why) {
    struct nl_why other;
    *redirect = (struct redirect){.from = from};
    int error = nl_open(&redirect->nl);
    if (error) {
        return error;
    }
    error = prepare(redirect, why);
    if (!error) {
        struct maker m = {redirect, to, why};
        error = add_all(&m, prefix, count);
        if (error) {
            take_away(redirect, &other);
        }
    }
    if (error) {
        nl_close(&redirect->nl);
    }
    return error;
}

int redirect_remove(struct redirect *redirect, struct nl_why *why) {
    if (!redirect->nl.close) {
        return 0;
    }
    int error = take_away(redirect, why);
    nl_close(&redirect->nl);
    return error == -ENODEV || error == -ENOENT || error == -EINVAL ? 0 : error;
}
