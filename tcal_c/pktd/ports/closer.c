/* A thread per device that is being removed.
 *
 * Most of the time of a removal is a grace period of the kernel's; removals that run side by side
 * share it, which makes closing 64 TAPs ten times faster than one after the other.
 */
#include "closer.h"

#include <pthread.h>

#define AT_WORK_LIMIT 32

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static int at_work;

static void *work(void *port) {
    port_close(port);
    pthread_mutex_lock(&mutex);
    at_work--;
    pthread_cond_signal(&finished);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void wait_below(int limit) {
    pthread_mutex_lock(&mutex);
    while (at_work >= limit) {
        pthread_cond_wait(&finished, &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

void closer_close(struct port *port) {
    pthread_t thread;
    wait_below(AT_WORK_LIMIT);
    pthread_mutex_lock(&mutex);
    at_work++;
    pthread_mutex_unlock(&mutex);
    if (pthread_create(&thread, NULL, work, port)) {
        work(port);
    } else {
        pthread_detach(thread);
    }
}

bool closer_busy(void) {
    pthread_mutex_lock(&mutex);
    bool any = at_work > 0;
    pthread_mutex_unlock(&mutex);
    return any;
}

void closer_wait(void) {
    wait_below(1);
}
