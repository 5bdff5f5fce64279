/* The file that steers a TAP's packets, where this machine lets a test make a network namespace of
 * its own, in a process that ends with it: root may write the file, others are refused.
 */
#include "common/tests/check.h"
#include "pktd/ports/steering.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/if_tun.h>

#define NOT_HERE 77

/* A TAP in a new network namespace; false where this machine permits neither or has none. */
static bool make_tap(struct port *port, int flags) {
    struct ifreq r = {.ifr_name = "tap0", .ifr_flags = IFF_TAP | IFF_NO_PI};
    *port = (struct port){.kind = PORT_TAP, .out = -1, .rps = -1};
    if (unshare(flags)) {
        return false;
    }
    port->fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (port->fd < 0 || ioctl(port->fd, TUNSETIFF, &r)) {
        return false;
    }
    port->index = (int)if_nametoindex("tap0");
    return true;
}

static int root_writes_it(void) {
    struct port port;
    char text[64] = "";
    if (geteuid() != 0 || !make_tap(&port, CLONE_NEWNET)) {
        return NOT_HERE;
    }
    int error = port_steer(&port, "1");
    if (error) {
        return NOT_HERE; /* root of a container, or a kernel without it */
    }
    CHECK(pread(port.rps, text, sizeof text - 1, 0) > 0);
    CHECK_EQ(strtoul(text, NULL, 16), 1);
    CHECK_EQ(port_steer(&port, "0"), 0);
    CHECK(pread(port.rps, text, sizeof text - 1, 0) > 0);
    CHECK_EQ(strtoul(text, NULL, 16), 0);
    close(port.rps);
    close(port.fd);
    return 0;
}

static int others_are_refused(void) {
    struct port port;
    if (!make_tap(&port, CLONE_NEWUSER | CLONE_NEWNET)) {
        return NOT_HERE;
    }
    CHECK(port_steer(&port, "1") < 0);
    return 0;
}

static void in_a_process(int run(void)) {
    int status;
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        _exit(run());
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == NOT_HERE);
}

static void what_is_no_tap_has_none(void) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    struct port port = {.kind = PORT_PACKET, .fd = ends[0], .out = -1, .rps = -1};
    CHECK(port_steer(&port, "1") == -EOPNOTSUPP);
    port.kind = PORT_TAP;
    CHECK(port_steer(&port, "1") < 0);
    CHECK(port.rps == -1);
    close(ends[0]);
    close(ends[1]);
}

void test_steering(void) {
    what_is_no_tap_has_none();
    in_a_process(root_writes_it);
    in_a_process(others_are_refused);
}
