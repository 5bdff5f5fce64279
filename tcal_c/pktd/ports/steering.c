/* The file is in sysfs, and sysfs shows the devices of the network namespace in which it was
 * mounted. So it is mounted there, in no place of the file system, for as long as the file is open
 * (fsopen(2), fsmount(2), Linux 5.2). The kernel lets nobody but root of the machine write it.
 */
#include "steering.h"

#include "common/netlink/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/mount.h>
#include <linux/sockios.h>

/* sysfs as this thread's network namespace has it: a descriptor or -errno. */
static int mount_sysfs(void) {
    int sysfs = (int)syscall(SYS_fsopen, "sysfs", FSOPEN_CLOEXEC);
    if (sysfs < 0) {
        return -errno;
    }
    int mount = -1;
    if (syscall(SYS_fsconfig, sysfs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
        unsigned attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
        mount = (int)syscall(SYS_fsmount, sysfs, FSMOUNT_CLOEXEC, attributes);
    }
    int error = mount < 0 ? -errno : 0;
    close(sysfs);
    return error ? error : mount;
}

/* In the TAP's own namespace. A TAP may have got another name there. */
static int open_inside(const struct port *port) {
    char name[IF_NAMESIZE];
    char path[64 + IF_NAMESIZE];
    if (!if_indextoname((unsigned)port->index, name)) {
        return -errno;
    }
    int mount = mount_sysfs();
    if (mount < 0) {
        return mount;
    }
    snprintf(path, sizeof path, "devices/virtual/net/%s/queues/rx-0/rps_cpus", name);
    int fd = openat(mount, path, O_RDWR | O_CLOEXEC);
    int result = fd < 0 ? -errno : fd;
    close(mount);
    return result;
}

static int open_file(const struct port *port) {
    int netns = ioctl(port->fd, SIOCGSKNS);
    if (netns < 0) {
        return -errno;
    }
    int home = netns_enter(netns);
    close(netns);
    if (home < 0) {
        return home;
    }
    int result = open_inside(port);
    netns_return(home);
    return result;
}

int port_steer(struct port *port, const char *mask) {
    if (port->kind != PORT_TAP) {
        return -EOPNOTSUPP;
    }
    if (port->rps < 0) {
        int fd = open_file(port);
        if (fd < 0) {
            return fd;
        }
        port->rps = fd;
    }
    return pwrite(port->rps, mask, strlen(mask), 0) < 0 ? -errno : 0;
}
