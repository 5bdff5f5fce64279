/* Network namespaces of a thread. */
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int netns_here(void) {
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    return home < 0 ? -errno : home;
}

int netns_enter(int netns) {
    int home = netns_here();
    if (home >= 0 && setns(netns, CLONE_NEWNET)) {
        int error = -errno;
        close(home);
        return error;
    }
    return home;
}

void netns_return(int home) {
    if (setns(home, CLONE_NEWNET)) {
        perror("return to the own network namespace");
        abort();
    }
    close(home);
}
