/* What programs that start others share. 0 or more, or -errno, which is also in errno for say(). */
#ifndef COMMON_PROCESS_H
#define COMMON_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* Exit status when the program itself fails; 126 and 127 mean what they mean for a shell. */
enum { EXIT_REFUSED = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* For a child before exec: a program must start with the default for every signal and none blocked,
 * whatever we or those who started us ignored. */
void signals_reset(void);
/* Blocks the signals and makes a descriptor for them; `flags` as in signalfd(2). */
int signal_fd(const int *signals, size_t count, int flags);

/* Becomes the program: the exit status to end with when that is refused, and said. */
int process_become(char **argv);
/* Forks. The child calls `become`, which returns only when exec is refused. The child's pid once
 * its program runs, or -errno with its reason. */
pid_t process_start(void (*become)(const void *context), const void *context);

int exit_status(int wait_status);                /* as a shell says it: 128 + signal */
int parse_number(const char *text, long *value); /* a whole decimal number of 0 or more */

/* On stderr, after the program's name, with errno's words. */
void say(const char *what, ...) __attribute__((format(printf, 1, 2)));

#endif
