/* gate: as an init container, ends when the instance joins, and so lets the real ones start.
 *
 * Input: orders. Output: exit status 0 at a join, 143 at SIGTERM. An instance behind a gate is not
 * there yet, so orders to leave or crash change nothing; they are said. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "hold.h"

int cmd_gate(int argc, char **argv) {
    static const int watched[] = {HOLD_SIGNAL, SIGTERM, SIGINT};
    (void)argv;
    errno = 0;
    if (argc != 1) {
        say("gate takes no arguments");
        return EXIT_REFUSED;
    }
    int signals = signal_fd(watched, sizeof watched / sizeof *watched, SFD_NONBLOCK);
    if (signals < 0) {
        say("cannot wait for signals");
        return EXIT_REFUSED;
    }
    report("held", NULL, 0);
    struct pollfd watch = {.fd = signals, .events = POLLIN};
    for (;;) {
        int number;
        enum order order;
        if (poll(&watch, 1, -1) < 0 || signals_read(signals, &number, &order) <= 0) {
            continue;
        }
        if (number != HOLD_SIGNAL) {
            return EXIT_TERMINATED;
        }
        if (order == ORDER_JOIN) {
            report("released", NULL, 0);
            return 0;
        }
        report_text("ignored", "order", order ? order_name(order) : "not an order");
    }
}
