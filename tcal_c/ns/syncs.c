/* Tells who started a program what it asks of its disk, before that is done (docs/tdl.md, "Power"
 * and "Disks").
 *
 * By seccomp(2), so that a program that knows nothing of it, and one without a C library, is heard
 * as well, with all that it starts. Heard are calls that sync (fsync, fdatasync, sync, syncfs,
 * msync with MS_SYNC), that truncate, and that open a file to truncate it; and what is asked for
 * beside these. Whoever reads the descriptor lets each go on, or fail. io_uring
 * is refused as on kernels without it, since it writes without system calls. A 32-bit call (`int
 * $0x80`, a 32-bit program) has other numbers and arguments: its program is killed (SIGSYS), which
 * nobody takes for a disk that works; x32 answers ENOSYS, as on kernels without it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
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
#define REFUSE(call) UNLESS(call, 1), ANSWER(SECCOMP_RET_ERRNO | ENOSYS)
#define HEAR_WITH(call, n, bits)                                                                   \
    UNLESS(call, 4), LOAD(ARGUMENT(n)),                                                            \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)(bits), 0, 1),                              \
        ANSWER(SECCOMP_RET_USER_NOTIF), ANSWER(SECCOMP_RET_ALLOW)

enum { X32 = 0x40000000 }; /* the bit of its numbers (__X32_SYSCALL_BIT) */
static const struct sock_filter CALL_OF_THIS_PROCESSOR[] = {
    LOAD(offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
    LOAD(offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1),
    ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
};
static const struct sock_filter USUAL[] = {
    HEAR(SYS_fsync),
    HEAR(SYS_fdatasync),
    HEAR(SYS_sync),
    HEAR(SYS_syncfs),
    HEAR(SYS_truncate),
    HEAR(SYS_ftruncate),
    HEAR(SYS_creat),
    HEAR(SYS_openat2), /* whose flags are no argument */
    HEAR_WITH(SYS_open, 1, O_TRUNC),
    HEAR_WITH(SYS_openat, 2, O_TRUNC),
    HEAR_WITH(SYS_msync, 2, MS_SYNC),
    REFUSE(SYS_io_uring_setup),
};
static const struct sock_filter REST[] = {ANSWER(SECCOMP_RET_ALLOW)};
/* Asynchronous I/O writes in its own time, too: where single calls may fail, it is not there. */
static const struct sock_filter OF_FAULTS[] = {REFUSE(SYS_io_setup)};

struct code {
    struct sock_filter filter[256];
    size_t length;
};

static void add(struct code *code, const struct sock_filter *part, size_t length) {
    memcpy(code->filter + code->length, part, length * sizeof *part);
    code->length += length;
}

#define ADD(code, part) add(code, part, sizeof(part) / sizeof *(part))

int syncs_watch(const int *more, size_t count) {
    struct code code = {.length = 0};
    ADD(&code, CALL_OF_THIS_PROCESSOR);
    for (size_t i = 0; i < count; i++) {
        const struct sock_filter part[] = {HEAR(more[i])};
        ADD(&code, part);
    }
    if (count > 0) {
        ADD(&code, OF_FAULTS);
    }
    ADD(&code, USUAL);
    ADD(&code, REST);
    struct sock_fprog program = {.len = (unsigned short)code.length, .filter = code.filter};
    const unsigned flags =
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return listener < 0 ? -errno : listener;
}

#else

int syncs_watch(const int *more, size_t count) {
    (void)more;
    (void)count;
    errno = ENOTSUP;
    return -errno;
}

#endif
