/* rumour ROUND_MS FANOUT BEGIN_MS END_MS: a member of a group that spreads a rumour by UDP.
 *
 * Member 0 knows it from BEGIN_MS on. Every round, at a phase of its own, each member that knows it
 * sends it to FANOUT members drawn at random. Each line of the output says when and from whom this
 * one heard it: `heard FROM DELAY_NS` for every message, `knows NS` (the date) for the first. The
 * members are the instances of its service, as /etc/hosts has them.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#define PORT 7000
#define MEMBERS 4096
#define NS_PER_MS 1000000
#define NS_PER_S 1000000000

struct message {
    int64_t sent_ns;
    int32_t from;
};

static struct sockaddr_in member[MEMBERS];
static int members;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * (int64_t)NS_PER_S + now.tv_nsec;
}

static void read_members(const char *service) {
    char line[256], address[64], name[64];
    size_t length = strlen(service);
    FILE *hosts = fopen("/etc/hosts", "r");
    while (hosts && fgets(line, sizeof line, hosts)) {
        struct in_addr found;
        if (sscanf(line, "%63s %63s", address, name) != 2 || strncmp(name, service, length) ||
            name[length] != '.' || inet_pton(AF_INET, address, &found) != 1) {
            continue;
        }
        int index = atoi(name + length + 1);
        if (index >= MEMBERS) {
            continue;
        }
        member[index] = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = found};
        members = index >= members ? index + 1 : members;
    }
    if (hosts) {
        fclose(hosts);
    }
}

static void tell(int socket, int me, int fanout) {
    for (int i = 0; i < fanout; i++) {
        int other = (me + 1 + (int)(random() % (members - 1))) % members;
        struct message message = {.from = me, .sent_ns = now_ns()};
        sendto(socket, &message, sizeof message, 0, (const struct sockaddr *)&member[other],
               sizeof member[other]);
    }
}

/* Whether it knows afterwards. */
static int hear(int socket, int knows) {
    struct message message;
    if (recv(socket, &message, sizeof message, 0) != sizeof message) {
        return knows;
    }
    int64_t now = now_ns();
    printf("heard %d %lld\n", (int)message.from, (long long)(now - message.sent_ns));
    if (!knows) {
        printf("knows %lld\n", (long long)now);
    }
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: rumour ROUND_MS FANOUT BEGIN_MS END_MS\n");
        return 2;
    }
    int64_t began = now_ns(), round = atoll(argv[1]) * NS_PER_MS;
    int64_t begin = began + atoll(argv[3]) * NS_PER_MS, end = began + atoll(argv[4]) * NS_PER_MS;
    int me = atoi(getenv("TSTORM_INDEX")), knows = 0, opened = socket(AF_INET, SOCK_DGRAM, 0);
    unsigned seed;
    read_members(getenv("TSTORM_SERVICE"));
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (members < 2 || getrandom(&seed, sizeof seed, 0) != sizeof seed ||
        bind(opened, (const struct sockaddr *)&any, sizeof any)) {
        perror("rumour");
        return 1;
    }
    srandom(seed);
    int64_t next = begin + random() % round;
    for (int64_t now = now_ns(); now < end; now = now_ns()) {
        if (now >= next) {
            if (me == 0 && !knows) {
                knows = 1;
                printf("knows %lld\n", (long long)now);
            }
            if (knows) {
                tell(opened, me, atoi(argv[2]));
            }
            next += round;
            continue;
        }
        int64_t wait = (next < end ? next : end) - now;
        struct timespec timeout = {.tv_sec = wait / NS_PER_S, .tv_nsec = wait % NS_PER_S};
        struct pollfd readable = {.fd = opened, .events = POLLIN};
        if (ppoll(&readable, 1, &timeout, NULL) == 1) {
            knows = hear(opened, knows);
        }
    }
    return 0;
}
