/* Netlink messages: built as the kernel wants them, read whatever is in them. */
#include "common/tests/check.h"
#include "suites.h"
#include "common/netlink/netlink.h"

#include <errno.h>

static void messages_are_nested_and_padded(void) {
    struct nl_buffer b = {0};
    uint32_t body = 7;
    nl_begin(&b, 36, 0x400, 5, &body, sizeof body);
    nl_put_text(&b, 1, "htb");
    size_t nest = nl_nest(&b, 2);
    nl_put_u64(&b, 3, 0x0102030405060708ull);
    nl_put(&b, 4, "abc", 3);
    nl_nest_end(&b, nest);
    nl_end(&b);
    struct nlmsghdr header;
    memcpy(&header, b.bytes, sizeof header);
    CHECK_EQ(header.nlmsg_len, b.used);
    CHECK_EQ(header.nlmsg_flags, 0x400 | NLM_F_REQUEST);
    CHECK_EQ(header.nlmsg_seq, 5);
    CHECK_EQ(b.used % 4, 0);
    const char *run = b.bytes + NLMSG_HDRLEN + sizeof body;
    size_t length = b.used - NLMSG_HDRLEN - sizeof body;
    struct nl_attr kind = nl_find(run, length, 1);
    CHECK_TEXT(kind.bytes, "htb");
    struct nl_attr inner = nl_find(run, length, 2);
    struct nl_attr number = nl_find(inner.bytes, inner.length, 3);
    CHECK_EQ(nl_get_u64(&number), 0x0102030405060708ull);
    struct nl_attr text = nl_find(inner.bytes, inner.length, 4);
    CHECK_EQ(text.length, 3);
    CHECK(!nl_find(inner.bytes, inner.length, 9).bytes);
    nl_buffer_free(&b);
}

/* Lengths that lie end the run; values that are too short are filled with zeros. */
static void attributes_that_lie_are_not_read(void) {
    static const uint8_t bad[][12] = {
        {0, 0, 1, 0}, {3, 0, 1, 0}, {200, 0, 1, 0}, {8, 0, 2, 0, 1, 2, 3, 4, 255, 255, 1, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!nl_find((const char *)bad[i], sizeof bad[i], 1).bytes);
    }
    CHECK(!nl_find("\1\0", 2, 1).bytes);
    static const uint8_t shorter[] = {6, 0, 1, 0, 0x34, 0x12, 0, 0};
    struct nl_attr attr = nl_find((const char *)shorter, sizeof shorter, 1);
    uint32_t value;
    CHECK(!nl_get(&attr, &value, sizeof value));
    CHECK_EQ(value, 0x1234);
    attr = (struct nl_attr){0};
    CHECK_EQ(nl_get_u64(&attr), 0);
    static const uint8_t nested[] = {8, 0, 2, NLA_F_NESTED >> 8, 7, 0, 0, 0};
    CHECK_EQ(nl_find((const char *)nested, sizeof nested, 2).length, 4);
    CHECK(!nl_find((const char *)nested, sizeof nested - 1, 2).bytes);
}

static void a_message_ends_with_its_attributes(void) {
    static const char message[] = {1, 2, 3, 4, 5, 0, 0, 0, 9};
    const char *rest = message;
    size_t length = sizeof message;
    char body[5];
    CHECK(!nl_body(body, sizeof message + 1, &rest, &length));
    CHECK(nl_body(body, sizeof body, &rest, &length));
    CHECK_EQ(body[4], 5);
    CHECK(rest == message + 8 && length == 1);
    CHECK(!nl_body(body, sizeof body, &rest, &length));
    length = sizeof body;
    rest = message;
    CHECK(nl_body(body, sizeof body, &rest, &length));
    CHECK_EQ(length, 0);
}

/* -- the conversation: a channel that says what a test wants ----------------------------------- */

struct talk {
    const char *answers[4];
    size_t lengths[4];
    int given;
    int sends;
    int heard;
    int error;
    uint32_t failed;
    char text[200];
};

static ssize_t talk_send(void *context, const void *bytes, size_t count) {
    struct talk *talk = context;
    struct nlmsghdr header;
    memcpy(&header, bytes, sizeof header);
    CHECK(header.nlmsg_flags & NLM_F_ACK);
    /* The first attempt is interrupted. */
    return talk->sends++ == 0 ? -EINTR : (ssize_t)count;
}

static ssize_t talk_receive(void *context, void *bytes, size_t room) {
    struct talk *talk = context;
    if (talk->given == 4 || !talk->answers[talk->given]) {
        return -EAGAIN;
    }
    size_t length = talk->lengths[talk->given];
    CHECK(length <= room);
    memcpy(bytes, talk->answers[talk->given++], length);
    return (ssize_t)length;
}

static void talk_failed(void *context, uint32_t sequence, int error, const char *text) {
    struct talk *talk = context;
    talk->failed = sequence;
    talk->error = error;
    snprintf(talk->text, sizeof talk->text, "%s", text);
}

static void talk_message(void *context, uint16_t type, const char *body, size_t length) {
    struct talk *talk = context;
    CHECK_EQ(type, 36);
    CHECK(body && length == 4);
    talk->heard++;
}

static int hold(struct talk *talk) {
    struct nl_channel channel = {.context = talk, .send = talk_send, .receive = talk_receive};
    struct nl_listener listener = {talk, talk_failed, talk_message};
    struct nl_buffer b = {0};
    nl_begin(&b, 36, 0, 9, "", 0);
    nl_end(&b);
    int error = nl_talk(&channel, &b, 9, &listener);
    nl_buffer_free(&b);
    return error;
}

/* Two answers in one datagram: an error with its words, the request in front of them, and the
 * acknowledgement. */
static size_t make_error(char *bytes, bool capped, uint32_t sequence, int error) {
    struct nlmsgerr body = {.error = error, .msg = {.nlmsg_len = NLMSG_HDRLEN + 8}};
    const char words[] = "no\nway";
    struct nlattr attr = {sizeof attr + sizeof words, NLMSGERR_ATTR_MSG};
    size_t at = NLMSG_HDRLEN;
    memcpy(bytes + at, &body, sizeof body);
    at += sizeof body;
    if (!capped) {
        memset(bytes + at, 0xee, 8);
        at += 8;
    }
    memcpy(bytes + at, &attr, sizeof attr);
    memcpy(bytes + at + sizeof attr, words, sizeof words);
    at += sizeof attr + sizeof words;
    struct nlmsghdr header = {.nlmsg_len = (uint32_t)at,
                              .nlmsg_type = NLMSG_ERROR,
                              .nlmsg_seq = sequence,
                              .nlmsg_flags = NLM_F_ACK_TLVS};
    header.nlmsg_flags |= capped ? NLM_F_CAPPED : 0;
    memcpy(bytes, &header, sizeof header);
    return NLMSG_ALIGN(at);
}

static void failures_come_with_the_kernels_words(void) {
    for (int capped = 0; capped < 2; capped++) {
        char bytes[512] = {0};
        size_t length = make_error(bytes, capped, 4, -EPERM);
        length += make_error(bytes + length, true, 9, 0);
        struct talk talk = {.answers = {bytes}, .lengths = {length}};
        CHECK_EQ(hold(&talk), 0);
        CHECK_EQ(talk.failed, 4);
        CHECK(talk.error == -EPERM);
        CHECK_TEXT(talk.text, "no?way");
        CHECK_EQ(talk.sends, 2);
    }
}

/* A dump that cannot go on says so in the message that ends it. */
static void a_dump_ends_with_its_error(void) {
    char bytes[20] = {0};
    int error = -ENODEV;
    struct nlmsghdr header = {.nlmsg_len = 20, .nlmsg_type = NLMSG_DONE, .nlmsg_seq = 9};
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + NLMSG_HDRLEN, &error, sizeof error);
    struct talk talk = {.answers = {bytes}, .lengths = {20}};
    CHECK_EQ(hold(&talk), 0);
    CHECK_EQ(talk.failed, 9);
    CHECK(talk.error == -ENODEV);
}

static void what_is_asked_for_comes_before_the_last_answer(void) {
    char first[20] = {0};
    char last[128] = {0};
    struct nlmsghdr header = {.nlmsg_len = 20, .nlmsg_type = 36, .nlmsg_seq = 9};
    memcpy(first, &header, sizeof header);
    size_t length = make_error(last, true, 9, 0);
    struct talk talk = {.answers = {first, last}, .lengths = {20, length}};
    CHECK_EQ(hold(&talk), 0);
    CHECK_EQ(talk.heard, 1);
    CHECK_EQ(talk.error, 0);
}

/* One message, asked with an answer or without, refused or not. */
static void one_question_has_one_result(void) {
    char first[20] = {0};
    char last[128] = {0};
    struct nlmsghdr header = {.nlmsg_len = 20, .nlmsg_type = 36, .nlmsg_seq = 1};
    memcpy(first, &header, sizeof header);
    for (int refused = 0; refused < 2; refused++) {
        size_t length = make_error(last, true, 1, refused ? -EPERM : 0);
        struct talk talk = {.answers = {first, last}, .lengths = {20, length}};
        struct nl_channel channel = {.context = &talk, .send = talk_send, .receive = talk_receive};
        struct nl_buffer b = {0};
        struct nl_why why;
        nl_begin(&b, 36, 0, 1, "", 0);
        CHECK(nl_ask(&channel, &b, refused ? NULL : talk_message, &talk, &why) ==
              (refused ? -EPERM : 0));
        CHECK(!b.bytes);
        CHECK_EQ(talk.heard, !refused);
        CHECK_TEXT(why.text, refused ? "no?way" : "");
    }
}

static void an_answer_that_never_comes_is_an_error(void) {
    struct talk silent = {0};
    CHECK(hold(&silent) == -EAGAIN);
    struct talk noise = {.answers = {"\xff\xff\xff\xff noise", "abc"}, .lengths = {10, 3}};
    CHECK(hold(&noise) == -EAGAIN);
}

void test_netlink(void) {
    messages_are_nested_and_padded();
    attributes_that_lie_are_not_read();
    a_message_ends_with_its_attributes();
    failures_come_with_the_kernels_words();
    a_dump_ends_with_its_error();
    what_is_asked_for_comes_before_the_last_answer();
    one_question_has_one_result();
    an_answer_that_never_comes_is_an_error();
}
