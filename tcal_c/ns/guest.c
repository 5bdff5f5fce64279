/* guest: PID 1 of a kernel that runs in virtual time (user-mode Linux), and its end.
 *
 *   guest BOOT RUN START …     directories, named by descriptors of the process on the host that is
 *                        the kernel: its command line, which every program can read, is the same in
 *                        all runs. What follows is what the kernel adds to it.
 *
 * The file `boot` in BOOT says what to do, as program_parse takes it. How that ended is written to
 * `status` there, and the machine is switched off. RUN is the run directory, START the one in which
 * the run was asked for; each has one path here whatever it is called on the host: no program can
 * tell two runs of one experiment apart. The runtime keeps what is its own in STATE_HERE.
 *
 * The root file system is the host's. What differs from host to host, or would end there, is
 * hidden: /proc, /sys, /dev and /run are this kernel's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "ns.h"

enum { BOOT_BYTES = 256 * 1024, OPEN_FILES = 512 * 1024 };

static const char BOOT_HERE[] = "/run/tstorm/boot";
static const char RUN_HERE[] = "/run/tstorm/run";
static const char START_HERE[] = "/run/tstorm/start";
static const char STATE_HERE[] = "/run/tstorm/state";
static const char LOG[] = "/run/tstorm/run/driver.log";
static const char LINE[] = "/dev/ttyS0";

static char text[BOOT_BYTES];
static struct program to_start;

struct mounted {
    const char *kind;
    const char *where;
    unsigned long flags;
    const char *options;
    bool make; /* the directory, which is on a file system of this kernel's own */
};

static const struct mounted MOUNTS[] = {
    {"proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, false},
    {"sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, false},
    {"cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, false},
    {"devtmpfs", "/dev", MS_NOSUID, "mode=755", false},
    {"devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "ptmxmode=666,mode=620,gid=5", true},
    {"tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777", true},
    {"mqueue", "/dev/mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, true},
    {"tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755", false},
};

/* The kernel's own limit is too low for the driver of 1,000 instances. */
static void allow_open_files(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_max = OPEN_FILES;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0) {
        say("cannot allow %d open files", OPEN_FILES);
    }
}

static bool mount_all(void) {
    for (size_t i = 0; i < sizeof MOUNTS / sizeof *MOUNTS; i++) {
        const struct mounted *one = &MOUNTS[i];
        if (one->make) {
            mkdir(one->where, 0755);
        }
        if (mount(one->kind, one->where, one->kind, one->flags, one->options) < 0) {
            say("cannot mount %s", one->where);
            return false;
        }
    }
    static const char *const LINKS[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"}};
    for (size_t i = 0; i < sizeof LINKS / sizeof *LINKS; i++) {
        if (symlink(LINKS[i][0], LINKS[i][1]) < 0) {
            say("cannot make %s", LINKS[i][1]);
            return false;
        }
    }
    return true;
}

/* `number` is a descriptor of the kernel's own process, by which the host finds the directory. */
static bool mount_host(const char *number, const char *here) {
    char there[64];
    long value;
    if (parse_number(number, &value) < 0) {
        errno = EINVAL;
        return false;
    }
    snprintf(there, sizeof there, "/proc/self/fd/%ld", value);
    mkdir("/run/tstorm", 0755); /* programs may be any user's */
    mkdir(here, 0700);
    if (mount("host", here, "hostfs", MS_NOSUID | MS_NODEV, there) < 0) {
        say("cannot mount a directory of the host on %s", here);
        return false;
    }
    return true;
}

/* Returns a descriptor of BOOT, which nothing sees any more. */
static int read_boot(const char *number) {
    if (!mount_host(number, BOOT_HERE)) {
        return -1;
    }
    int directory = open(BOOT_HERE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int file = directory < 0 ? -1 : openat(directory, "boot", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text);
    if (file >= 0) {
        close(file);
    }
    if (length == sizeof text) {
        errno = E2BIG; /* there may be more */
        length = -1;
    }
    if (length < 0 || program_parse(&to_start, text, (size_t)length) < 0) {
        say("cannot read what to do");
        return -1;
    }
    umount2(BOOT_HERE, MNT_DETACH);
    rmdir(BOOT_HERE);
    return directory;
}

/* Bytes go both ways as they are, from the very first on. */
static bool make_raw(void) {
    struct termios settings;
    int device = open(LINE, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (device < 0 || tcgetattr(device, &settings) < 0) {
        say("cannot open the line %s", LINE);
        return false;
    }
    cfmakeraw(&settings);
    bool done = tcsetattr(device, TCSANOW, &settings) == 0;
    /* Not closed: the last close would put the settings back. */
    return done;
}

/* With --cpu (docs/virtual.md): what a system call costs the machine by itself, which is no
 * program's work. The kernel takes as many samples as it wants and refuses the next one. */
static void measure_turns(void) {
    static const char TURN[] = {'t', 'u', 'r', 'n'};
    int books = open("/proc/tstorm_cpu", O_WRONLY | O_CLOEXEC);
    if (books < 0) {
        return;
    }
    while (write(books, TURN, sizeof TURN) == (ssize_t)sizeof TURN) {
    }
    close(books);
}

static int start_and_wait(int log) {
    pid_t program =
        program_start(&to_start, &(struct identity){0}, log, &(struct hearing){.socket = -1});
    if (program < 0) {
        say("cannot start %s", to_start.argv[0]);
        return EXIT_REFUSED;
    }
    for (;;) {
        int status;
        pid_t ended = wait(&status);
        if (ended == program) {
            return exit_status(status);
        }
        if (ended < 0 && errno != EINTR) {
            return EXIT_REFUSED;
        }
    }
}

static int carry_out(const char *run, const char *start) {
    mkdir(STATE_HERE, 0700);
    if (!mount_host(run, RUN_HERE) || !mount_host(start, START_HERE) || !make_raw()) {
        return EXIT_REFUSED;
    }
    int log = open(LOG, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (log < 0) {
        say("cannot open %s", LOG);
        return EXIT_REFUSED;
    }
    dup2(log, STDERR_FILENO);
    return start_and_wait(log);
}

static void leave_status(int directory, int status) {
    int file = openat(directory, "status", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) {
        dprintf(file, "%d\n", status);
        close(file);
    }
}

int cmd_guest(int argc, char **argv) {
    errno = 0;
    if (getpid() != 1 || argc < 4) {
        say("guest: this is PID 1 of a kernel for virtual time and nothing else");
        return EXIT_REFUSED;
    }
    sethostname("tstorm", strlen("tstorm"));
    umask(022);
    allow_open_files();
    prctl(PR_SET_TIMERSLACK, 1); /* in time, whatever --scatter does to instances (instance.c) */
    int directory = mount_all() ? read_boot(argv[1]) : -1;
    measure_turns();
    if (directory >= 0) {
        leave_status(directory, carry_out(argv[2], argv[3]));
    }
    sync();
    reboot(RB_POWER_OFF);
    return EXIT_REFUSED;
}
