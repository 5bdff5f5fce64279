/* A classifier at clsact egress that writes the low 48 bits of CLOCK_MONOTONIC into the source MAC.
 *
 * The program is thirteen instructions, so it is written down here instead of being compiled: no
 * clang, no libbpf, no object file. It is loaded once and attached to every port with a netlink
 * message. Sources: bpf(2), bpf-helpers(7) (bpf_ktime_get_ns, bpf_skb_store_bytes), tc-bpf(8)
 * direct action.
 */
#include "stamp.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#define STAMP_BITS 48
#define STAMP_MASK ((1ull << STAMP_BITS) - 1)
#define SOURCE_MAC_OFFSET 6

#define MOVE(to, from)                                                                             \
    { .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from) }
#define LOAD(to, value)                                                                            \
    { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value) }
#define ADD(to, value)                                                                             \
    { .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (to), .imm = (value) }
#define CALL(function)                                                                             \
    { .code = BPF_JMP | BPF_CALL, .imm = (function) }
#define LITTLE(reg)                                                                                \
    { .code = BPF_ALU | BPF_END | BPF_TO_LE, .dst_reg = (reg), .imm = 64 }
#define STORE(reg, offset)                                                                         \
    { .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .src_reg = (reg), .off = (offset) }
#define EXIT                                                                                       \
    { .code = BPF_JMP | BPF_EXIT }

static const struct bpf_insn program[] = {
    MOVE(BPF_REG_6, BPF_REG_1),
    CALL(BPF_FUNC_ktime_get_ns),
    LITTLE(BPF_REG_0),
    STORE(BPF_REG_0, -8),
    MOVE(BPF_REG_1, BPF_REG_6),
    LOAD(BPF_REG_2, SOURCE_MAC_OFFSET),
    MOVE(BPF_REG_3, BPF_REG_10),
    ADD(BPF_REG_3, -8),
    LOAD(BPF_REG_4, STAMP_BITS / 8),
    LOAD(BPF_REG_5, 0),
    CALL(BPF_FUNC_skb_store_bytes),
    LOAD(BPF_REG_0, TC_ACT_UNSPEC),
    EXIT,
};

int stamp_load(void) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_SCHED_CLS;
    attr.insns = (uint64_t)(uintptr_t)program;
    attr.insn_cnt = sizeof program / sizeof *program;
    attr.license = (uint64_t)(uintptr_t) "Apache-2.0";
    memcpy(attr.prog_name, "pktd_stamp", 11);
    long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
    return fd < 0 ? -errno : (int)fd;
}

static int add_clsact(const struct nl_channel *nl, int index, struct nl_why *why) {
    struct tcmsg tc = {.tcm_family = AF_UNSPEC,
                       .tcm_ifindex = index,
                       .tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0),
                       .tcm_parent = TC_H_CLSACT};
    struct nl_buffer q = {0};
    nl_begin(&q, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, 1, &tc, sizeof tc);
    nl_put_text(&q, TCA_KIND, "clsact");
    return nl_ask(nl, &q, NULL, NULL, why);
}

static int add_filter(const struct nl_channel *nl, int index, int bpf, struct nl_why *why) {
    struct tcmsg tc = {.tcm_family = AF_UNSPEC,
                       .tcm_ifindex = index,
                       .tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS),
                       .tcm_info = TC_H_MAKE(1u << 16, htons(ETH_P_ALL))};
    struct nl_buffer q = {0};
    nl_begin(&q, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, 1, &tc, sizeof tc);
    nl_put_text(&q, TCA_KIND, "bpf");
    size_t options = nl_nest(&q, TCA_OPTIONS);
    nl_put_u32(&q, TCA_BPF_FD, (uint32_t)bpf);
    nl_put_text(&q, TCA_BPF_NAME, "pktd_stamp");
    nl_put_u32(&q, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
    nl_nest_end(&q, options);
    return nl_ask(nl, &q, NULL, NULL, why);
}

int stamp_attach(int bpf, int index, struct nl_why *why) {
    struct nl_channel nl;
    int error = nl_open(&nl);
    if (error) {
        return error;
    }
    error = add_clsact(&nl, index, why);
    if (!error) {
        error = add_filter(&nl, index, bpf, why);
    }
    nl_close(&nl);
    return error;
}

static uint64_t read_stamp(const uint8_t *source_mac) {
    uint64_t low = 0;
    for (int i = 5; i >= 0; i--) {
        low = low << 8 | source_mac[i];
    }
    return low;
}

static bool has_stamp(const uint8_t *source_mac, const uint8_t *plain) {
    return memcmp(source_mac, plain, 6) != 0;
}

uint64_t stamp_take(uint8_t *source_mac, const uint8_t *plain, uint64_t now_ns) {
    if (!has_stamp(source_mac, plain)) {
        return now_ns;
    }
    /* The stamp has the time's low bits, and is a little older than now. */
    uint64_t age = (now_ns - read_stamp(source_mac)) & STAMP_MASK;
    memcpy(source_mac, plain, 6);
    return age < STAMP_AGE_LIMIT_NS && age <= now_ns ? now_ns - age : now_ns;
}

bool stamp_take_near(uint8_t *source_mac, const uint8_t *plain, uint64_t about_ns,
                     uint64_t *at_ns) {
    uint64_t ahead = (read_stamp(source_mac) - about_ns) & STAMP_MASK;
    uint64_t behind = STAMP_MASK + 1 - ahead;
    bool is_behind = behind <= STAMP_AGE_LIMIT_NS && behind <= about_ns;
    if (!has_stamp(source_mac, plain) || !(ahead <= STAMP_AGE_LIMIT_NS || is_behind)) {
        return false;
    }
    memcpy(source_mac, plain, 6);
    *at_ns = is_behind ? about_ns - behind : about_ns + ahead;
    return true;
}

uint64_t stamp_of_wall(uint64_t stamp_ns, uint64_t wall_ns, uint64_t now_ns) {
    uint64_t age = wall_ns - min_u64(stamp_ns, wall_ns);
    return age <= STAMP_WALL_LIMIT_NS && age <= now_ns ? now_ns - age : now_ns;
}
