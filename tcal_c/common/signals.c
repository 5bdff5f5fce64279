/* Signals as a new program expects them. */
#include "signals.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library keeps two signals to itself and refuses to touch them, but its own posix_spawn,
 * which make uses, hands one of them on ignored. So the kernel is asked, whose structure is all
 * zeros for the default: handler, flags, restorer and mask. KILL and STOP it refuses, as it should
 * be. */
static void set_default(int number) {
    static const unsigned long zeros[8];
    syscall(SYS_rt_sigaction, number, zeros, NULL, (NSIG - 1) / 8);
}

void signals_reset(void) {
    for (int number = 1; number < NSIG; number++)
        set_default(number);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
