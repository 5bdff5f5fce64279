/* Confinement of a program that nobody here has written: it sees a few directories that it cannot
 * write, and has no network, no privilege, no children, and little memory and time.
 *
 * Input: those directories and files, on the machine's own paths. Its mount namespace gets an empty
 * root with nothing else in it: no /proc, no /dev, no /etc. Everything the program may still ask of
 * the kernel is what a calculation needs; a call that makes processes, sockets, namespaces or keys
 * fails with EPERM (seccomp(2)). Whatever of this is refused ends it before the program starts.
 */
#include <errno.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ns.h"

/* The new root is mounted here, since it is always there and nothing below it is ever shown. */
#define PLACE "/proc"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0
#endif

enum { X32 = 0x40000000 }; /* the other numbers of the same calls (x86-64) */

/* --- what it sees --- */

static bool make_parents(char *path) {
    for (char *at = path + sizeof PLACE; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        *at = '/';
        if (!made) {
            return false;
        }
    }
    return true;
}

static bool make_target(const char *path, mode_t mode) {
    if (S_ISDIR(mode)) {
        return mkdir(path, 0755) == 0 || errno == EEXIST;
    }
    return mknod(path, S_IFREG | 0444, 0) == 0;
}

static bool make_link(const char *source, const char *path) {
    char target[PATH_MAX];
    ssize_t length = readlink(source, target, sizeof target - 1);
    if (length < 0) {
        return false;
    }
    target[length] = '\0';
    return symlink(target, path) == 0;
}

static bool show(const char *source) {
    char path[PATH_MAX];
    struct stat status;
    int length = snprintf(path, sizeof path, "%s%s", PLACE, source);
    if (*source != '/' || length >= (int)sizeof path || lstat(source, &status) < 0 ||
        !make_parents(path)) {
        return false;
    }
    if (S_ISLNK(status.st_mode)) {
        return make_link(source, path);
    }
    return make_target(path, status.st_mode) &&
           mount(source, path, NULL, MS_BIND | MS_REC, NULL) == 0;
}

static bool make_read_only(void) {
    struct mount_attr attributes = {.attr_set =
                                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    return syscall(SYS_mount_setattr, AT_FDCWD, PLACE, AT_RECURSIVE, &attributes,
                   sizeof attributes) == 0;
}

bool confine_view(char **shown, size_t count) {
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755") < 0) {
        say("cannot mount an empty root");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!show(shown[i])) {
            say("cannot show %s", shown[i]);
            return false;
        }
    }
    if (!make_read_only()) {
        say("cannot make what it sees read-only");
        return false;
    }
    if (chdir(PLACE) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0) {
        say("cannot change the root");
        return false;
    }
    return true;
}

/* --- what it may do --- */

static const int FORBIDDEN[] = {
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
    SYS_clone,
    SYS_unshare,
    SYS_setns,
    SYS_socket,
    SYS_socketpair,
    SYS_io_uring_setup,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_open,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_fsopen,
    SYS_open_tree,
    SYS_move_mount,
    SYS_mount_setattr,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_memfd_create,
    SYS_shmget,
    SYS_semget,
    SYS_msgget,
    SYS_mq_open,
    SYS_inotify_init1,
    SYS_fanotify_init,
    SYS_timer_create,
};
enum { FORBIDDEN_COUNT = sizeof FORBIDDEN / sizeof *FORBIDDEN };

/* ENOSYS for clone3, so that a C library asks by clone. */
static bool forbid_calls(void) {
    enum { BEFORE = 6, SIZE = BEFORE + 2 * FORBIDDEN_COUNT + 3 };
    const unsigned number = offsetof(struct seccomp_data, nr);
    const unsigned architecture = offsetof(struct seccomp_data, arch);
    struct sock_filter code[SIZE] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, architecture),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    size_t used = BEFORE;
    for (size_t i = 0; i < FORBIDDEN_COUNT; i++) {
        code[used++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)FORBIDDEN[i], 0, 1);
        code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
    code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {.len = (unsigned short)used, .filter = code};
    if (ARCHITECTURE == 0) {
        errno = ENOTSUP;
        return false;
    }
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* Root of the machine stays its user, since others could not read its files; but it is one without
 * privileges, and no program gives them back. */
static bool drop_privileges(void) {
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++) {
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) {
            return false;
        }
    }
    return prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) == 0 &&
           syscall(SYS_capset, &header, none) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static bool limit(int resource, rlim_t most) {
    struct rlimit both = {.rlim_cur = most, .rlim_max = most};
    return setrlimit((__rlimit_resource_t)resource, &both) == 0;
}

bool confine_self(const struct confinement *confined) {
    enum { FILES = 64 };
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) < 0) {
        say("cannot close what it inherits");
        return false;
    }
    if (!limit(RLIMIT_AS, (rlim_t)confined->memory_mib << 20) ||
        !limit(RLIMIT_CPU, (rlim_t)confined->cpu_seconds) || !limit(RLIMIT_FSIZE, 0) ||
        !limit(RLIMIT_CORE, 0) || !limit(RLIMIT_NOFILE, FILES) || !limit(RLIMIT_MSGQUEUE, 0)) {
        say("cannot limit its memory and time");
        return false;
    }
    if (!drop_privileges()) {
        say("cannot drop its privileges");
        return false;
    }
    if (!forbid_calls()) {
        say("cannot forbid it system calls (seccomp)");
        return false;
    }
    return true;
}
