/* tprobe: what the commands share. Times are CLOCK_MONOTONIC nanoseconds unless the name says wall.
 *
 * Every command prints JSON lines on stdout and one clear line on stderr when it fails. Functions
 * return 0 or -1 (after saying why on stderr) unless stated otherwise; only main() exits.
 */
#ifndef TPROBE_PROBE_H
#define TPROBE_PROBE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };
enum { DEFAULT_PORT = 7477 };

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_US INT64_C(1000)

/* --- clock.c */
int64_t now_ns(void);
int64_t wall_ns(void);
/* Sleeps until the monotonic clock shows `at`; returns at once when it is past. */
void sleep_until(int64_t at);
/* Milliseconds for poll() until `at`, rounded up, 0 when past, at most a minute. */
int poll_ms(int64_t at);

/* --- say.c: errors and JSON */
/* "tprobe: ATTEMPT OBJECT: REASON"; the reason is errno's words when err is not 0. Returns -1. */
int say_error(int err, const char *attempt, const char *object);
void json_string(const char *text);

/* --- values.c: numbers with units, all strict */
int parse_duration(const char *text, int64_t *ns); /* 250ms, 1.5s, 10us, 2m; no unit: s */
int parse_rate(const char *text, int64_t *bps);    /* 128kb, 10Mb, 1Gb, 5000000 */
int parse_count(const char *text, int64_t low, int64_t high, int64_t *value);

/* --- stats.c: a sample that grows, and its percentiles */
struct sample {
    int64_t *values;
    size_t count, room;
    bool sorted;
};
int sample_add(struct sample *s, int64_t value);
/* The smallest value that at least `per_mille` of 1000 are not above; 0 when empty. Sorts. */
int64_t sample_at(struct sample *s, unsigned per_mille);
double sample_mean(const struct sample *s);
void sample_free(struct sample *s);
/* ,"min_us":…,"mean_us":…,"p50_us":…,"p99_us":…,"max_us":… */
void sample_json(struct sample *s);

/* --- net.c */
struct host {
    struct sockaddr_storage address;
    socklen_t length;
    char text[INET6_ADDRSTRLEN];
};
/* First address of NAME, family AF_UNSPEC, AF_INET or AF_INET6. */
int host_resolve(const char *name, int family, uint16_t port, struct host *out);
/* Bytes of IP and UDP header in front of a datagram's payload. */
size_t host_overhead(const struct host *h);
bool unreachable(int err);
ssize_t host_send(int fd, const struct host *h, const void *data, size_t size);
int socket_udp(const struct host *peer); /* connected, with receive time stamps; fd or -1 */
int socket_timestamps(int fd);
/* One datagram and the monotonic time at which the kernel received it; recvmsg()'s result. */
ssize_t receive_stamped(int fd, void *buffer, size_t room, int64_t *at_ns, int64_t *at_wall_ns);
void socket_buffers(int fd, int bytes);

/* --- commands: argv without the program's name, return the exit code */
int cmd_serve(int argc, char **argv);
int cmd_rtt(int argc, char **argv);
int cmd_stream(int argc, char **argv);
int cmd_owd(int argc, char **argv);
int cmd_blast(int argc, char **argv);
int cmd_active(int argc, char **argv); /* active/active.h */

#endif
