/* The probe of this machine's kernel, in a network namespace that is thrown away. */
#include "probe.h"
#include "socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>

#define FRAME_BYTES 1000u

/* Frames that go to the class because their socket says so. */
bool probe_send(uint32_t ifindex, uint32_t class, int frames) {
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    int priority = (int)class;
    struct sockaddr_ll to = {
        .sll_family = AF_PACKET, .sll_ifindex = (int)ifindex, .sll_protocol = htons(ETH_P_IP)};
    uint8_t frame[FRAME_BYTES] = {0};
    frame[12] = ETH_P_IP >> 8;
    bool good = fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
    for (int i = 0; i < frames && good; i++) {
        good = sendto(fd, frame, sizeof frame, 0, (struct sockaddr *)&to, sizeof to) > 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

uint64_t probe_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void probe_pause(void) {
    usleep(1000);
}

/* Runs in the throwaway namespace. */
static bool inside(struct tcal_ability *ability, struct tcal_error *error) {
    struct nl_channel channel;
    uint64_t inode;
    if (!tcal_socket_open("/proc/thread-self/ns/net", &channel, &inode, error)) {
        return false;
    }
    bool good = probe_kernel(&channel, ability, error);
    channel.close(channel.context);
    return good;
}

bool tcal_probe(struct tcal_ability ability[TCAL_ABILITIES], struct tcal_error *error) {
    probe_begin(ability);
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0) {
        return tcal_fail(error, -errno, NULL, "open /proc/thread-self/ns/net");
    }
    bool good = unshare(CLONE_NEWNET) == 0
                    ? inside(ability, error)
                    : tcal_fail(error, -errno, NULL,
                                "make a network namespace (CAP_SYS_ADMIN is needed: run as root, "
                                "or in a user namespace)");
    if (setns(home, CLONE_NEWNET)) {
        abort(); /* a process that cannot come back must not go on */
    }
    close(home);
    return good;
}
