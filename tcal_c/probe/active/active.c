/* Commands, probes under way and what became of them. */
#include "active.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { STEPPED_NS = 1000000 };

static const char OPEN_USAGE[] = "open END netns=PATH addr=ADDRESS [if=NAME mac=MAC]";
static const char PAIR_USAGE[] = "pair PAIR FROM TO wait=NS [bytes=N]";
static const char AT_USAGE[] = "at NS PAIR";
static const char REPORT_USAGE[] = "report NS [last]";

/* -- arrivals ---------------------------------------------------------------------------------- */

/* Packets that were stamped before a step are read after it, all of them within a second. */
void active_look(struct wall *wall, uint64_t now_ns, uint64_t wall_ns) {
    int64_t ahead_ns = (int64_t)(wall_ns - now_ns);
    if (llabs(ahead_ns - wall->ahead_ns) > STEPPED_NS) {
        wall->doubted_until_ns = now_ns + NS_PER_S;
    }
    wall->ahead_ns = ahead_ns;
}

uint64_t active_arrival(const struct wall *wall, uint64_t now_ns, uint64_t stamp_ns) {
    uint64_t wall_ns = now_ns + (uint64_t)wall->ahead_ns;
    if (!stamp_ns || now_ns < wall->doubted_until_ns || stamp_ns > wall_ns) {
        return now_ns;
    }
    return now_ns - (wall_ns - stamp_ns);
}

/* -- what is under way ------------------------------------------------------------------------- */

static struct flight *flight_of(struct proto *p, uint32_t number) {
    return &p->flight[number % FLIGHTS];
}

/* Flights at the front of which there is nothing more to tell make room. */
static void move_on(struct proto *p) {
    while (p->first != p->next && flight_of(p, p->first)->fate == REPORTED) {
        p->first++;
    }
}

static void encode(const struct proto *p, uint32_t number, uint8_t *bytes) {
    uint32_t words[] = {htonl(p->cookie), htonl(number)};
    memcpy(bytes, words, PROBE_BYTES);
}

static void send_probe(struct proto *p, uint32_t pair) {
    const struct pair *way = &p->pair[pair];
    const struct active_io *io = p->io;
    if (!p->end[way->from].open || !p->end[way->to].open) {
        return; /* one of them is not there: nothing was to be measured */
    }
    if (p->next - p->first == FLIGHTS) {
        p->skipped++;
        return;
    }
    struct flight *flight = flight_of(p, p->next);
    encode(p, p->next, p->packet);
    *flight = (struct flight){.sent_ns = io->clock(io->context), .pair = pair, .fate = UNDER_WAY};
    if (io->send(io->context, way->from, &p->end[way->from], &p->end[way->to], p->packet,
                 way->bytes)) {
        p->refused++;
        return; /* the number is used again */
    }
    p->next++;
}

void active_arrived(struct proto *p, uint32_t end, const struct addr *from, const uint8_t *bytes,
                    size_t size, uint64_t at_ns) {
    uint32_t words[2];
    if (size < PROBE_BYTES) {
        return;
    }
    memcpy(words, bytes, sizeof words);
    uint32_t number = ntohl(words[1]);
    if (ntohl(words[0]) != p->cookie || number - p->first >= p->next - p->first) {
        return;
    }
    struct flight *flight = flight_of(p, number);
    const struct pair *way = &p->pair[flight->pair];
    if (flight->fate != UNDER_WAY || way->to != end || size != way->bytes ||
        !addr_equal(&p->end[way->from].addr, from)) {
        return;
    }
    flight->delay_ns = at_ns > flight->sent_ns ? at_ns - flight->sent_ns : 0;
    flight->fate = ARRIVED;
}

/* -- commands ---------------------------------------------------------------------------------- */

/* KEY=VALUE as the next word. */
static char *take_value(struct words *w, const char *key) {
    char *word = words_next(w);
    char *value = word ? word_value(word) : NULL;
    return value && !strcmp(word, key) && *value ? value : NULL;
}

static bool take_time(struct words *w, uint64_t *at_ns, const char *usage, struct refusal *r) {
    const char *word = words_next(w);
    if (!word) {
        return syntax(r, usage);
    }
    if (!word_number(word, INT64_MAX, at_ns)) {
        return refuse(r, "range", "time '%.32s' is not a number of ns", word);
    }
    return true;
}

/* The rest of an `open`: a device and its address, or nothing. */
static bool take_device(struct words *w, struct end *end) {
    char *word = words_next(w);
    if (!word) {
        return true;
    }
    end->device = word_value(word);
    const char *mac = end->device && strcmp(word, "if") == 0 ? take_value(w, "mac") : NULL;
    end->has_mac = mac && word_mac(mac, end->mac);
    return end->has_mac && !words_next(w);
}

static bool do_open(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t number;
    struct end end = {.open = true};
    if (!take_index(w, "end", ENDS, &number, OPEN_USAGE, r)) {
        return false;
    }
    const char *netns = take_value(w, "netns");
    const char *text = netns ? take_value(w, "addr") : NULL;
    if (!text || !take_device(w, &end)) {
        return syntax(r, OPEN_USAGE);
    }
    if (!word_ipv4(text, &end.addr) && !word_ipv6(text, &end.addr)) {
        return refuse(r, "range", "'%.48s' is no address", text);
    }
    if (p->end[number].open) {
        return refuse(r, "conflict", "end %u is open already", number);
    }
    int error = p->io->open(p->io->context, number, netns, &end);
    end.device = NULL;
    if (error) {
        return refuse(r, "system", "opening a raw socket in %.200s: %s", netns, strerror(-error));
    }
    p->end[number] = end;
    return done(p);
}

/* Nobody can tell what becomes of the probes that are on their way to or from this end. The next
 * report says so: to leave them out would tell of those that arrived alone. */
static void give_up(struct proto *p, uint32_t end) {
    for (uint32_t number = p->first; number != p->next; number++) {
        struct flight *flight = flight_of(p, number);
        const struct pair *way = &p->pair[flight->pair];
        if (flight->fate == UNDER_WAY && (way->from == end || way->to == end)) {
            flight->fate = UNKNOWN;
        }
    }
}

static bool do_close(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t number;
    if (!take_index(w, "end", ENDS, &number, "close END", r) || !take_end(w, "close END", r)) {
        return false;
    }
    if (!p->end[number].open) {
        return refuse(r, "unknown", "end %u is not open", number);
    }
    give_up(p, number);
    p->io->close(p->io->context, number);
    p->end[number].open = false;
    return done(p);
}

static bool do_pair(struct proto *p, struct words *w, struct refusal *r) {
    uint32_t number;
    struct pair pair = {.declared = true, .bytes = PROBE_BYTES};
    if (!take_index(w, "pair", PAIRS, &number, PAIR_USAGE, r) ||
        !take_index(w, "end", ENDS, &pair.from, PAIR_USAGE, r) ||
        !take_index(w, "end", ENDS, &pair.to, PAIR_USAGE, r)) {
        return false;
    }
    const char *wait = take_value(w, "wait");
    char *more = wait ? words_next(w) : NULL;
    const char *bytes = more ? word_value(more) : NULL;
    if (!wait || (more && (!bytes || strcmp(more, "bytes"))) || !take_end(w, PAIR_USAGE, r)) {
        return syntax(r, PAIR_USAGE);
    }
    if (!word_number(wait, INT64_MAX, &pair.wait_ns)) {
        return refuse(r, "range", "time '%.32s' is not a number of ns", wait);
    }
    uint64_t size = PROBE_BYTES;
    if (bytes && (!word_number(bytes, PROBE_MOST_BYTES, &size) || size < PROBE_BYTES)) {
        return refuse(r, "range", "a probe has %d to %d bytes, not '%.32s'", PROBE_BYTES,
                      PROBE_MOST_BYTES, bytes);
    }
    pair.bytes = (uint32_t)size;
    if (pair.from == pair.to) {
        return refuse(r, "conflict", "pair %u: from end %u to itself", number, pair.from);
    }
    if (p->pair[number].declared) {
        return refuse(r, "conflict", "pair %u is declared already", number);
    }
    p->pair[number] = pair;
    return done(p);
}

static bool do_at(struct proto *p, struct words *w, struct refusal *r) {
    struct asked asked;
    if (!take_time(w, &asked.at_ns, AT_USAGE, r) ||
        !take_index(w, "pair", PAIRS, &asked.pair, AT_USAGE, r) || !take_end(w, AT_USAGE, r)) {
        return false;
    }
    if (!p->pair[asked.pair].declared) {
        return refuse(r, "unknown", "pair %u is not declared", asked.pair);
    }
    if (asked.at_ns < p->asked_last_ns) {
        return refuse(r, "order", "a probe before the one that was asked for last");
    }
    if (p->asked_count == WAITING) {
        return refuse(r, "limit", "%u probes wait already", p->asked_count);
    }
    p->asked[(p->asked_first + p->asked_count++) % WAITING] = asked;
    p->asked_last_ns = asked.at_ns;
    return done(p);
}

/* What was sent so long ago that it should have been there before `at_ns` is lost. */
static bool is_lost(const struct proto *p, const struct flight *flight, uint64_t at_ns) {
    uint64_t wait_ns = p->pair[flight->pair].wait_ns;
    return flight->fate == UNDER_WAY && at_ns >= wait_ns && at_ns - wait_ns >= flight->sent_ns;
}

static bool has_news(const struct proto *p, const struct flight *flight, uint64_t at_ns,
                     bool last) {
    return flight->fate != REPORTED &&
           (flight->fate != UNDER_WAY || last || is_lost(p, flight, at_ns));
}

/* The rest of a `report`: whether it is the last one, in which all is told. */
static bool take_last(struct words *w, bool *last, struct refusal *r) {
    const char *word = words_next(w);
    *last = word;
    return !word || (!strcmp(word, "last") && !words_next(w)) || syntax(r, REPORT_USAGE);
}

/* Two passes, since the number of lines comes first. */
static bool do_report(struct proto *p, struct words *w, struct refusal *r) {
    uint64_t slack_ns;
    bool last;
    if (!take_time(w, &slack_ns, REPORT_USAGE, r) || !take_last(w, &last, r)) {
        return false;
    }
    uint64_t now_ns = p->io->clock(p->io->context);
    uint64_t at_ns = now_ns > slack_ns ? now_ns - slack_ns : 0;
    uint32_t count = 0;
    for (uint32_t number = p->first; number != p->next; number++) {
        count += has_news(p, flight_of(p, number), at_ns, last);
    }
    text_add(&p->out, "ok %u skipped=%llu refused=%llu\n", count, (unsigned long long)p->skipped,
             (unsigned long long)p->refused);
    for (uint32_t number = p->first; number != p->next; number++) {
        struct flight *flight = flight_of(p, number);
        if (!has_news(p, flight, at_ns, last)) {
            continue;
        }
        text_add(&p->out, "%u %llu ", flight->pair, (unsigned long long)flight->sent_ns);
        if (flight->fate == ARRIVED) {
            text_add(&p->out, "%llu\n", (unsigned long long)flight->delay_ns);
        } else {
            text_add(&p->out, is_lost(p, flight, at_ns) ? "-\n" : "?\n");
        }
        flight->fate = REPORTED;
    }
    p->skipped = p->refused = 0;
    move_on(p);
    return true;
}

/* -- the session ------------------------------------------------------------------------------- */

static uint64_t program_clock(struct proto *p) {
    return p->io->clock(p->io->context);
}

static void describe(struct proto *p, struct text *out) {
    (void)p;
    text_add(out, "version=%s", VERSION);
}

static uint64_t next(const struct proto *p) {
    return p->asked_count ? p->asked[p->asked_first].at_ns : TIME_NEVER;
}

static void due(struct proto *p, uint64_t now_ns) {
    while (next(p) <= now_ns) {
        struct asked asked = p->asked[p->asked_first];
        p->asked_first = (p->asked_first + 1) % WAITING;
        p->asked_count--;
        if (now_ns - asked.at_ns > SKIPPED_AFTER_NS) {
            p->skipped++;
        } else {
            send_probe(p, asked.pair);
        }
    }
}

static const struct command_row COMMANDS[] = {
    {"hello", do_hello, 0}, {"clock", do_clock, 0}, {"quit", do_quit, 0}, {"open", do_open, 0},
    {"close", do_close, 0}, {"pair", do_pair, 0},   {"at", do_at, 0},     {"report", do_report, 0},
};

static const struct session_program PROGRAM = {
    .name = "tprobe",
    .commands = COMMANDS,
    .command_count = sizeof COMMANDS / sizeof *COMMANDS,
    .clock = program_clock,
    .describe = describe,
    .next = next,
    .due = due,
};

/* All of it is used sooner or later: so it is there from the start, and nothing grows while a run
 * goes on. */
static void *ring(size_t bytes) {
    void *found = malloc(bytes);
    return found ? memset(found, 0xff, bytes) : NULL;
}

bool active_init(struct proto *p, const struct active_io *io, uint32_t cookie) {
    *p = (struct proto){.session = {.program = &PROGRAM}, .io = io, .cookie = cookie};
    p->session.out = &p->out;
    p->end = calloc(ENDS, sizeof *p->end);
    p->pair = calloc(PAIRS, sizeof *p->pair);
    p->asked = ring(WAITING * sizeof *p->asked);
    p->flight = ring(FLIGHTS * sizeof *p->flight);
    return p->end && p->pair && p->asked && p->flight;
}

void active_free(struct proto *p) {
    for (uint32_t number = 0; p->end && number < ENDS; number++) {
        if (p->end[number].open) {
            p->io->close(p->io->context, number);
        }
    }
    free(p->end);
    free(p->pair);
    free(p->asked);
    free(p->flight);
    text_free(&p->out);
}
