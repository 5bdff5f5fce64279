/* Frames and time for the probe, where a test has its own. */
#include "probe.h"

#include "common/clock.h"

#include <sys/socket.h>
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
    return clock_now();
}

void probe_pause(void) {
    usleep(1000);
}
