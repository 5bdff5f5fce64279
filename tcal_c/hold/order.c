/* Orders and other signals, read from a descriptor instead of in handlers.
 *
 * Process 1 of a namespace never gets a signal that it neither handles nor blocks, also from
 * outside; one that it blocks is queued (pid_namespaces(7), signal(7)). So blocking is what makes
 * a held container able to take orders.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "hold.h"

static const char *const NAMES[] = {
    [ORDER_JOIN] = "join",   [ORDER_LEAVE] = "leave",   [ORDER_CRASH] = "crash",
    [ORDER_PAUSE] = "pause", [ORDER_RESUME] = "resume", [ORDER_SETUP] = "setup",
    [ORDER_KILL] = "kill"};

enum order order_named(const char *name) {
    for (int order = ORDER_JOIN; order <= ORDER_LAST; order++) {
        if (strcmp(name, NAMES[order]) == 0) {
            return (enum order)order;
        }
    }
    return ORDER_NONE;
}

const char *order_name(enum order order) {
    return NAMES[order];
}

/* A plain kill(2) carries no value, so it is no order. */
int signals_read(int descriptor, int *number, enum order *order) {
    struct signalfd_siginfo info;
    ssize_t length;
    do {
        length = read(descriptor, &info, sizeof info);
    } while (length < 0 && errno == EINTR);
    if (length < 0) {
        return errno == EAGAIN ? 0 : -errno;
    }
    bool queued = info.ssi_code == SI_QUEUE;
    bool known = info.ssi_int >= ORDER_JOIN && info.ssi_int <= ORDER_LAST;
    *number = (int)info.ssi_signo;
    *order = queued && known ? (enum order)info.ssi_int : ORDER_NONE;
    return 1;
}
