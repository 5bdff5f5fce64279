/* Faults of the disk of an instance (docs/tdl.md, "Disks"): what programs ask of files in its own
 * directory takes longer, finds no room, or fails.
 *
 * Input: calls that are heard (syncs.c), each of which waits until it is answered. Output: answers:
 * the call is carried out now or in a while, or has an error. Who else hears syncs, and writes that
 * are synced when they return, is asked after us, about what is carried out. Nothing here looks at
 * a clock: in virtual time that would take time, and a call is to take exactly as long as it is
 * said.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/limits.h"
#include "ns.h"

enum what { SYNCS, WRITES, READS }; /* a call does */
enum fault { FAULT_NONE, FAULT_SLOW, FAULT_FULL, FAULT_ERROR };

/* Where the file, the place in it and the number of bytes are among a call's arguments. */
enum { NO_FILE = -1, NAMED = -2, MAPPED = -3, AT_POSITION = -1, AT_START = -2 };
struct form {
    int call;
    enum what what;
    int file; /* a descriptor; else what the file is found by */
    int at;
    int size;
    bool by_pointer; /* `at` is where the place is, 0: at the file's position */
    bool vector;     /* `size` is how many parts there are, before which is where they are */
};

static const struct form FORMS[] = {
    {SYS_fsync, SYNCS, 0, 0, 0, false, false},
    {SYS_fdatasync, SYNCS, 0, 0, 0, false, false},
    {SYS_sync_file_range, SYNCS, 0, 0, 0, false, false},
    {SYS_sync, SYNCS, NO_FILE, 0, 0, false, false},
    {SYS_syncfs, SYNCS, 0, 0, 0, false, false},
    {SYS_msync, SYNCS, MAPPED, 0, 0, false, false},
    {SYS_write, WRITES, 0, AT_POSITION, 2, false, false},
    {SYS_pwrite64, WRITES, 0, 3, 2, false, false},
    {SYS_writev, WRITES, 0, AT_POSITION, 2, false, true},
    {SYS_pwritev, WRITES, 0, 3, 2, false, true},
    {SYS_pwritev2, WRITES, 0, 3, 2, false, true},
    {SYS_sendfile, WRITES, 0, AT_POSITION, 3, false, false},
    {SYS_copy_file_range, WRITES, 2, 3, 4, true, false},
    {SYS_splice, WRITES, 2, 3, 4, true, false},
    {SYS_ftruncate, WRITES, 0, AT_START, 1, false, false},
    {SYS_truncate, WRITES, NAMED, AT_START, 1, false, false},
    {SYS_fallocate, WRITES, 0, 2, 3, false, false},
    {SYS_read, READS, 0, AT_POSITION, 2, false, false},
    {SYS_pread64, READS, 0, 3, 2, false, false},
    {SYS_readv, READS, 0, AT_POSITION, 2, false, true},
    {SYS_preadv, READS, 0, 3, 2, false, true},
    {SYS_preadv2, READS, 0, 3, 2, false, true},
};
enum { FORM_COUNT = sizeof FORMS / sizeof *FORMS, PARTS = 1024 };

/* Without what syncs.c hears anyway. In the order of FORMS, so that writes come before reads. */
static const int MORE[] = {SYS_sync_file_range, SYS_write,     SYS_pwrite64, SYS_writev,
                           SYS_pwritev,         SYS_pwritev2,  SYS_sendfile, SYS_splice,
                           SYS_copy_file_range, SYS_fallocate, SYS_read,     SYS_pread64,
                           SYS_readv,           SYS_preadv,    SYS_preadv2};
enum { MORE_COUNT = sizeof MORE / sizeof *MORE, MORE_READS = 5 };

/* One program or command that is heard, and all that it starts. It is freed when they have ended
 * and none of its calls waits. What is watched (epoll) begins with its kind. */
enum kind { LISTENER, RELAY, TIMER };
struct heard {
    enum kind listener_kind;
    enum kind relay_kind;
    int listener; /* -1: all have ended */
    int relay;
    size_t waiting; /* calls */
};

struct waiting {
    enum kind kind;
    struct heard *whose;
    struct seccomp_notif call;
    int timer;
};

struct faults {
    int watch; /* epoll(7) of all who are heard, and of calls that wait */
    bool allowed;
    bool reads; /* are heard */
    size_t root_length;
    char root[PATH_MAX];
    enum fault fault;
    uint64_t amount; /* of slow in ns, of error in billionths */
    uint64_t seed;
    uint64_t number; /* of calls that might have failed since */
};

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/* As draw_happens of the engine (docs/pktd.md, "Draws"). */
bool faults_fails(uint64_t seed, uint64_t number, uint64_t share_ppb) {
    const uint64_t golden = 0x9E3779B97F4A7C15ull;
    uint64_t bits = mix(mix(seed + golden) + (number + 1) * golden);
    return (uint64_t)((u128)bits * PPB >> 64) < share_ppb;
}

struct faults *faults_make(void) {
    struct faults *self = calloc(1, sizeof *self);
    if (self) {
        self->watch = epoll_create1(EPOLL_CLOEXEC);
        if (self->watch < 0) {
            free(self);
            return NULL;
        }
    }
    return self;
}

int faults_allow(struct faults *self, const char *text) {
    const char *root = strchr(text, ' ');
    errno = EINVAL;
    if (!root || root[1] != '/' || strlen(root + 1) >= sizeof self->root) {
        return -EINVAL;
    }
    self->reads = strncmp(text, "reads ", 6) == 0;
    if (!self->reads && strncmp(text, "writes ", 7) != 0) {
        return -EINVAL;
    }
    self->root_length = strlen(root + 1);
    memcpy(self->root, root + 1, self->root_length + 1);
    self->allowed = true;
    return 0;
}

int faults_set(struct faults *self, const char *text) {
    uint64_t amount = 0;
    uint64_t seed = 0;
    char end;
    enum fault fault = FAULT_NONE;
    if (strcmp(text, "full") == 0) {
        fault = FAULT_FULL;
    } else if (sscanf(text, "slow %" SCNu64 "%c", &amount, &end) == 1) {
        fault = FAULT_SLOW;
    } else if (sscanf(text, "error %" SCNu64 " %" SCNu64 "%c", &amount, &seed, &end) == 2) {
        fault = FAULT_ERROR;
    } else if (strcmp(text, "ok") != 0) {
        errno = EINVAL;
        return -EINVAL;
    }
    if (fault != FAULT_ERROR || self->fault != fault || self->seed != seed) {
        self->number = 0;
    }
    self->fault = fault;
    self->amount = amount;
    self->seed = seed;
    return 0;
}

bool faults_are_allowed(const struct faults *self) {
    return self->allowed;
}

struct hearing faults_hearing(const struct faults *self, int socket) {
    size_t count = self->reads ? MORE_COUNT : MORE_COUNT - MORE_READS;
    return (struct hearing){.socket = socket, .more = MORE, .count = count};
}

int faults_descriptor(const struct faults *self) {
    return self->watch;
}

static int watch(const struct faults *self, int descriptor, enum kind *whose) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = whose};
    return epoll_ctl(self->watch, EPOLL_CTL_ADD, descriptor, &event) < 0 ? -errno : 0;
}

static void shut(int *descriptor) {
    if (*descriptor >= 0) {
        close(*descriptor);
        *descriptor = -1;
    }
}

static struct heard *heard_by_listener(enum kind *whose) {
    return (struct heard *)(void *)((char *)whose - offsetof(struct heard, listener_kind));
}

static struct heard *heard_by_relay(enum kind *whose) {
    return (struct heard *)(void *)((char *)whose - offsetof(struct heard, relay_kind));
}

static void free_if_over(struct heard *one) {
    if (one->listener < 0 && one->waiting == 0) {
        shut(&one->relay);
        free(one);
    }
}

int faults_hear(struct faults *self, int listener, int relay) {
    struct heard *one = malloc(sizeof *one);
    if (!one) {
        close(listener);
        shut(&relay);
        return -ENOMEM;
    }
    *one = (struct heard){LISTENER, RELAY, listener, relay, 0};
    if (watch(self, listener, &one->listener_kind) < 0 ||
        (relay >= 0 && watch(self, relay, &one->relay_kind) < 0)) {
        int reason = errno;
        shut(&one->listener);
        free_if_over(one);
        errno = reason;
        return -reason;
    }
    return 0;
}

/* --- what a call is about --- */

static const struct form *form_of(const struct seccomp_notif *call) {
    for (size_t i = 0; i < FORM_COUNT; i++) {
        if (FORMS[i].call == call->data.nr) {
            return &FORMS[i];
        }
    }
    return NULL;
}

static bool is_below(const struct faults *self, const char *path) {
    return strncmp(path, self->root, self->root_length) == 0 &&
           (path[self->root_length] == '/' || path[self->root_length] == '\0');
}

/* What a link of /proc shows, and what it is: only files and directories are on a disk. */
static bool is_ours(const struct faults *self, const char *link, struct stat *found) {
    char path[PATH_MAX];
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) {
        return false;
    }
    path[length] = '\0';
    return is_below(self, path) && stat(link, found) == 0 &&
           (S_ISREG(found->st_mode) || S_ISDIR(found->st_mode));
}

static bool is_named_ours(const struct faults *self, const struct seccomp_notif *call,
                          struct stat *found) {
    char name[PATH_MAX];
    char path[PATH_MAX + 64];
    struct iovec here = {.iov_base = name, .iov_len = sizeof name - 1};
    struct iovec there = {.iov_base = (void *)(size_t)call->data.args[0],
                          .iov_len = sizeof name - 1};
    const uint64_t page = 4096 - call->data.args[0] % 4096; /* what follows may not be there */
    ssize_t length = process_vm_readv((pid_t)call->pid, &here, 1, &there, 1, 0);
    if (length < 0) {
        there.iov_len = here.iov_len = (size_t)(page < sizeof name ? page : sizeof name - 1);
        length = process_vm_readv((pid_t)call->pid, &here, 1, &there, 1, 0);
    }
    if (length <= 0) {
        return false;
    }
    name[length] = '\0';
    snprintf(path, sizeof path, "/proc/%u/%s/%s", call->pid, name[0] == '/' ? "root" : "cwd", name);
    int file = open(path, O_PATH | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    bool ours = file >= 0 && is_ours(self, path, found);
    shut(&file);
    return ours;
}

/* Whether a part of memory that is to be synced shows one of our files. */
static bool is_mapped_ours(const struct faults *self, const struct seccomp_notif *call) {
    char path[64];
    char *line = NULL;
    size_t room = 0;
    bool ours = false;
    snprintf(path, sizeof path, "/proc/%u/maps", call->pid);
    FILE *maps = fopen(path, "re");
    while (maps && !ours && getline(&line, &room, maps) > 0) {
        uint64_t begin;
        uint64_t end;
        int name = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &begin, &end, &name) == 2 &&
            name > 0) {
            ours = begin < call->data.args[0] + call->data.args[1] && call->data.args[0] < end &&
                   is_below(self, line + name);
        }
    }
    free(line);
    if (maps) {
        fclose(maps);
    }
    return ours;
}

static bool concerns_us(const struct faults *self, const struct form *form,
                        const struct seccomp_notif *call, struct stat *found) {
    char link[64];
    switch (form->file) {
    case NO_FILE:
        return true;
    case NAMED:
        return is_named_ours(self, call, found);
    case MAPPED:
        return is_mapped_ours(self, call);
    default:
        snprintf(link, sizeof link, "/proc/%u/fd/%d", call->pid, (int)call->data.args[form->file]);
        return is_ours(self, link, found);
    }
}

/* --- whether the kernel refuses it anyway --- */

/* An open file's position and flags. False: it is none, or the caller is gone. */
static bool status_of(const struct seccomp_notif *call, int file, uint64_t *reached,
                      unsigned *flags) {
    char path[64];
    char text[128] = "";
    snprintf(path, sizeof path, "/proc/%u/fdinfo/%d", call->pid, file);
    int info = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = info < 0 ? -1 : read(info, text, sizeof text - 1);
    shut(&info);
    return length > 0 && sscanf(text, "pos: %" SCNu64 " flags: %o", reached, flags) == 2;
}

static bool opened_for(const struct seccomp_notif *call, int file, int how) {
    uint64_t reached;
    unsigned flags = 0;
    return status_of(call, file, &reached, &flags) && !(flags & O_PATH) &&
           ((flags & O_ACCMODE) == O_RDWR || (flags & O_ACCMODE) == (unsigned)how);
}

static bool copies(const struct form *form) {
    return form->call == SYS_sendfile || form->call == SYS_copy_file_range ||
           form->call == SYS_splice;
}

/* False: what a program wants to write does not begin in its memory. */
static bool is_there(const struct seccomp_notif *call, uint64_t where) {
    char byte;
    struct iovec here = {.iov_base = &byte, .iov_len = 1};
    struct iovec there = {.iov_base = (void *)(size_t)where, .iov_len = 1};
    return process_vm_readv((pid_t)call->pid, &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

/* How many bytes parts of memory have; 0: none, or the kernel refuses them. */
static uint64_t sum_of_parts(const struct seccomp_notif *call, bool writes, uint64_t where,
                             uint64_t count) {
    static struct iovec parts[PARTS];
    uint64_t size = 0;
    if (count > PARTS) {
        return 0;
    }
    struct iovec here = {.iov_base = parts, .iov_len = count * sizeof *parts};
    struct iovec there = {.iov_base = (void *)(size_t)where, .iov_len = here.iov_len};
    if (process_vm_readv((pid_t)call->pid, &here, 1, &there, 1, 0) != (ssize_t)here.iov_len) {
        return errno == EFAULT || count == 0 ? 0 : 1; /* nobody may look: it has some */
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t length = parts[i].iov_len;
        if (length > INT64_MAX || (writes && size == 0 && length > 0 &&
                                   !is_there(call, (uint64_t)(size_t)parts[i].iov_base))) {
            return 0;
        }
        size += length;
    }
    return size;
}

/* How many bytes a call reads or writes; 0: none, or the kernel refuses it. */
static uint64_t size_of(const struct form *form, const struct seccomp_notif *call) {
    const uint64_t *arguments = (const uint64_t *)call->data.args;
    const uint64_t size = arguments[form->size];
    const bool has_memory = form->call == SYS_write || form->call == SYS_pwrite64;
    if (form->vector) {
        return sum_of_parts(call, form->what == WRITES, arguments[form->size - 1], size);
    }
    if (size > INT64_MAX ||
        (has_memory && size > 0 && !is_there(call, arguments[form->size - 1]))) {
        return 0;
    }
    return size;
}

/* False: a descriptor is not open for it, or it is wrong in another way, or there is nothing to do:
 * the kernel says so at once, whatever the disk has. */
static bool asks_the_disk(const struct form *form, const struct seccomp_notif *call) {
    const uint64_t *arguments = (const uint64_t *)call->data.args;
    const bool by_version_2 = form->call == SYS_pwritev2 || form->call == SYS_preadv2;
    if (form->what == SYNCS || form->file < 0) {
        return true;
    }
    if (!opened_for(call, (int)arguments[form->file], form->what == READS ? O_RDONLY : O_WRONLY)) {
        return false;
    }
    if (copies(form)) {
        const int from = form->call == SYS_sendfile ? 1 : 0;
        return size_of(form, call) > 0 && opened_for(call, (int)arguments[from], O_RDONLY);
    }
    if (form->at >= 0 && arguments[form->at] > INT64_MAX &&
        !(by_version_2 && arguments[form->at] == UINT64_MAX)) {
        return false;
    }
    return form->at == AT_START ? arguments[form->size] <= INT64_MAX : size_of(form, call) > 0;
}

/* --- whether it needs room --- */

/* Of the file's position, and of whether it is only appended to. */
static uint64_t position(const struct seccomp_notif *call, int file, const struct stat *found,
                         uint64_t at) {
    uint64_t reached = 0;
    unsigned flags = 0;
    if (!status_of(call, file, &reached, &flags)) {
        return 0;
    }
    return flags & O_APPEND ? (uint64_t)found->st_size : at == UINT64_MAX ? reached : at;
}

enum { APPENDS = 0x10 }; /* RWF_APPEND of pwritev2(2) */

static bool needs_room(const struct form *form, const struct seccomp_notif *call,
                       const struct stat *found) {
    const uint64_t *arguments = (const uint64_t *)call->data.args;
    const uint64_t size = size_of(form, call);
    uint64_t at = form->at < 0 ? UINT64_MAX : arguments[form->at];
    if (form->at == AT_START) {
        return size > (uint64_t)found->st_size;
    }
    if (form->call == SYS_fallocate) {
        const unsigned freeing = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE;
        return !(arguments[1] & freeing) && at + size > (uint64_t)found->st_size;
    }
    if (form->by_pointer) {
        uint64_t place = UINT64_MAX;
        struct iovec here = {.iov_base = &place, .iov_len = sizeof place};
        struct iovec there = {.iov_base = (void *)(size_t)at, .iov_len = sizeof place};
        if (at && process_vm_readv((pid_t)call->pid, &here, 1, &there, 1, 0) < 0) {
            return false; /* the call fails as well */
        }
        at = place;
    }
    at = form->call == SYS_pwritev2 && arguments[5] & APPENDS
             ? (uint64_t)found->st_size
             : position(call, (int)arguments[form->file], found, at);
    return size > 0 && at + size > (uint64_t)found->st_size;
}

/* --- answers --- */

static void answer(const struct heard *whose, uint64_t id, int error) {
    struct seccomp_notif_resp response = {
        .id = id, .error = -error, .flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    if (whose->listener >= 0) {
        ioctl(whose->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
    } /* or it was killed meanwhile */
}

static bool is_read_or_write(const struct seccomp_notif *call) {
    for (size_t i = 0; i < MORE_COUNT; i++) {
        if (MORE[i] == call->data.nr) {
            return true;
        }
    }
    return false;
}

/* A write to one of our files that is synced when it returns. What comes from another file
 * (sendfile and its like) is not told: nobody could say what it writes. */
static bool writes_through(const struct faults *self, const struct seccomp_notif *call) {
    enum { WITH_A_SYNC = 0x2 | 0x4 }; /* RWF_DSYNC, RWF_SYNC of pwritev2(2) */
    const int file = (int)call->data.args[0];
    const int number = call->data.nr;
    char link[64];
    struct stat found;
    uint64_t reached;
    unsigned flags = 0;
    if (number != SYS_write && number != SYS_pwrite64 && number != SYS_writev &&
        number != SYS_pwritev && number != SYS_pwritev2) {
        return false;
    }
    if (number != SYS_pwritev2 || !(call->data.args[5] & WITH_A_SYNC)) {
        if (!status_of(call, file, &reached, &flags) || !(flags & O_DSYNC)) {
            return false;
        }
    }
    snprintf(link, sizeof link, "/proc/%u/fd/%d", call->pid, file);
    return is_ours(self, link, &found) && S_ISREG(found.st_mode);
}

/* With credentials of the caller, whose number is another one for who reads it (unix(7)). */
static bool pass_on(const struct heard *whose, const struct seccomp_notif *call) {
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr header;
    } room;
    const struct ucred caller = {.pid = (pid_t)call->pid, .uid = geteuid(), .gid = getegid()};
    struct iovec part = {.iov_base = (void *)(size_t)call, .iov_len = sizeof *call};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room.bytes};
    memset(&room, 0, sizeof room);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_CREDENTIALS;
    header->cmsg_len = CMSG_LEN(sizeof caller);
    memcpy(CMSG_DATA(header), &caller, sizeof caller);
    return sendmsg(whose->relay, &message, MSG_NOSIGNAL) >= 0; /* false: it was killed meanwhile */
}

static void carry_out(const struct faults *self, const struct heard *whose,
                      const struct seccomp_notif *call) {
    bool heard_elsewhere =
        whose->relay >= 0 && (!is_read_or_write(call) || writes_through(self, call));
    if (!heard_elsewhere || !pass_on(whose, call)) {
        answer(whose, call->id, 0);
    }
}

/* False: it cannot wait. */
static bool wait_for(const struct faults *self, struct heard *whose,
                     const struct seccomp_notif *call) {
    const uint64_t second = 1000000000u;
    const struct itimerspec length = {.it_value = {.tv_sec = (time_t)(self->amount / second),
                                                   .tv_nsec = (long)(self->amount % second)}};
    struct waiting *one = malloc(sizeof *one);
    if (!one) {
        return false;
    }
    *one = (struct waiting){.kind = TIMER, .whose = whose, .call = *call};
    one->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (one->timer >= 0 && timerfd_settime(one->timer, 0, &length, NULL) == 0 &&
        watch(self, one->timer, &one->kind) == 0) {
        whose->waiting++;
        return true;
    }
    shut(&one->timer);
    free(one);
    return false;
}

static void end_wait(const struct faults *self, struct waiting *one) {
    struct heard *whose = one->whose;
    shut(&one->timer);
    carry_out(self, whose, &one->call);
    free(one);
    whose->waiting--;
    free_if_over(whose);
}

static void judge(struct faults *self, struct heard *whose, const struct seccomp_notif *call) {
    const struct form *form = self->fault == FAULT_NONE ? NULL : form_of(call);
    struct stat found = {.st_size = 0};
    if (!form || !concerns_us(self, form, call, &found) ||
        (form->what != SYNCS && !S_ISREG(found.st_mode)) || !asks_the_disk(form, call)) {
        carry_out(self, whose, call);
    } else if (self->fault == FAULT_SLOW) {
        if (form->what == READS || !wait_for(self, whose, call)) {
            carry_out(self, whose, call);
        }
    } else if (self->fault == FAULT_FULL) {
        if (form->what == WRITES && needs_room(form, call, &found)) {
            answer(whose, call->id, ENOSPC);
        } else {
            carry_out(self, whose, call);
        }
    } else if (form->call != SYS_sync && /* which cannot fail */
               faults_fails(self->seed, self->number++, self->amount)) {
        answer(whose, call->id, EIO);
    } else {
        carry_out(self, whose, call);
    }
}

static void hear(struct faults *self, struct heard *whose, uint32_t events) {
    struct seccomp_notif call;
    memset(&call, 0, sizeof call); /* the kernel asks for that */
    if (events & EPOLLIN) {
        if (ioctl(whose->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0) {
            judge(self, whose, &call);
        }
    } else if (events & EPOLLHUP) { /* all who were heard have ended */
        shut(&whose->listener);
    }
}

static void take_answer(struct heard *whose) {
    struct seccomp_notif_resp response;
    ssize_t length = recv(whose->relay, &response, sizeof response, 0);
    if (length == (ssize_t)sizeof response) {
        answer(whose, response.id, 0);
    } else if (length == 0) {
        shut(&whose->relay);
    }
}

/* One at a time: what is next may be of somebody whose last call this was. */
void faults_go_on(struct faults *self) {
    struct epoll_event event;
    if (epoll_wait(self->watch, &event, 1, 0) != 1) {
        return;
    }
    enum kind *kind = event.data.ptr;
    if (*kind == TIMER) {
        end_wait(self, (struct waiting *)(void *)kind);
        return;
    }
    struct heard *whose = *kind == RELAY ? heard_by_relay(kind) : heard_by_listener(kind);
    if (*kind == RELAY) {
        take_answer(whose);
    } else {
        hear(self, whose, event.events);
    }
    free_if_over(whose);
}
