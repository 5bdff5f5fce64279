/* Tells who started a program what it asks of its disk, before that is done (docs/tdl.md, "Power").
 *
 * By seccomp(2), so that a program that knows nothing of it, and one without a C library, is heard
 * as well, with all that it starts. Heard are calls that sync (fsync, fdatasync, sync, syncfs,
 * msync with MS_SYNC), that truncate, and that open a file to truncate it or to write through.
 * Whoever reads the descriptor lets each go on. io_uring is refused as on kernels without it, since
 * it writes without system calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ns.h"

#ifdef __x86_64__

#define ARGUMENT(n) (unsigned)(offsetof(struct seccomp_data, args) + 8 * (n))
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define UNLESS(what, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(what), 0, skip)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
#define HEAR(call) UNLESS(call, 1), ANSWER(SECCOMP_RET_USER_NOTIF)
#define HEAR_WITH(call, n, bits)                                                                   \
    UNLESS(call, 4), LOAD(ARGUMENT(n)),                                                            \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)(bits), 0, 1),                              \
        ANSWER(SECCOMP_RET_USER_NOTIF), ANSWER(SECCOMP_RET_ALLOW)

int syncs_watch(void) {
    enum { OPENING = O_TRUNC | O_DSYNC };
    struct sock_filter code[] = {
        LOAD(offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        ANSWER(SECCOMP_RET_ALLOW),
        LOAD(offsetof(struct seccomp_data, nr)),
        HEAR(SYS_fsync),
        HEAR(SYS_fdatasync),
        HEAR(SYS_sync),
        HEAR(SYS_syncfs),
        HEAR(SYS_truncate),
        HEAR(SYS_ftruncate),
        HEAR(SYS_creat),
        HEAR(SYS_openat2), /* whose flags are no argument */
        HEAR_WITH(SYS_open, 1, OPENING),
        HEAR_WITH(SYS_openat, 2, OPENING),
        HEAR_WITH(SYS_msync, 2, MS_SYNC),
        UNLESS(SYS_io_uring_setup, 1),
        ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
    const unsigned flags =
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
    return listener < 0 ? -errno : listener;
}

#else

int syncs_watch(void) {
    errno = ENOTSUP;
    return -errno;
}

#endif
