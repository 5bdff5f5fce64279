#!/bin/bash
# virtual_time.sh FOLDER COMMAND [ARG...]: runs a command in QEMU, with a clock that counts instructions.
#
# What is measured in there does not depend on how fast or busy this machine is: the processor makes
# 500 million instructions in each second of its own time, and time without work passes at once. So
# timers are exact, and the same run gives nearly the same figures. Root only (the machine sees this file
# system through 9p). Needs qemu-system-x86, busybox-static, cpio, kmod, and FOLDER: an unpacked Debian
# kernel, made by
#     apt-get download linux-image-6.1.0-NN-amd64 && dpkg -x linux-image-*.deb FOLDER
# The command's output comes at the end, its exit status is ours. Nothing but FOLDER stays.
set -euo pipefail

[ $# -ge 2 ] || { echo "usage: $0 FOLDER COMMAND [ARG...]" >&2; exit 2; }
for need in qemu-system-x86_64 busybox cpio depmod; do
    command -v "$need" >/dev/null || { echo "$0: '$need' is missing" >&2; exit 69; }
done
[ "$(id -u)" = 0 ] || { echo "$0: needs root" >&2; exit 69; }
kernel=$(realpath "$1")
shift
version=$(ls "$kernel/lib/modules")
[ -e "$kernel/boot/vmlinuz-$version" ] || { echo "$0: no kernel in $kernel" >&2; exit 69; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What the kernel needs to see a file system by 9p, in the order in which modules need each other.
BOOT="virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci
    netfs fscache 9pnet 9pnet_virtio 9p"
MODULES="veth bridge tun dummy ifb sch_htb sch_netem sch_tbf sch_ingress cls_u32 cls_matchall
    act_mirred act_gact tcp_bbr"

depmod -b "$kernel" "$version"
mkdir -p "$work/initrd/bin" "$work/initrd/proc" "$work/initrd/sys" "$work/initrd/dev" "$work/initrd/new"
cp "$(command -v busybox)" "$work/initrd/bin/busybox"
for module in $BOOT; do
    find "$kernel/lib/modules" -name "$module.ko" -exec cp {} "$work/initrd/" \;
done
cat >"$work/initrd/init" <<INIT
#!/bin/busybox sh
b=/bin/busybox
\$b mount -t proc proc /proc; \$b mount -t sysfs sys /sys; \$b mount -t devtmpfs dev /dev
for module in $(echo $BOOT); do \$b insmod /\$module.ko; done
\$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,rw root /new
for kind in proc sys dev; do \$b mount --move /\$kind /new/\$kind; done
exec \$b switch_root /new $work/guest
INIT
cat >"$work/guest" <<GUEST
#!/bin/bash
export PATH=$(printf %q "$PATH"):/usr/sbin:/sbin HOME=/root LANG=C.UTF-8
mount -t tmpfs run /run; mkdir -p /run/netns /run/tmp /dev/shm; mount -t tmpfs shm /dev/shm
export TMPDIR=/run/tmp TSTORM_TEST_NETEM=1
modprobe -a -d $(printf %q "$kernel") $(echo $MODULES)
ip link set lo up
cd $(printf %q "$PWD")
$(printf '%q ' "$@") </dev/null >$work/out 2>&1
echo \$? >$work/status
sync; echo o >/proc/sysrq-trigger; sleep 10
GUEST
chmod +x "$work/initrd/init" "$work/guest"
(cd "$work/initrd" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initrd.gz"
qemu-system-x86_64 -accel tcg,thread=single -icount shift=1,sleep=off,align=off -cpu max -smp 1 -m 2G \
    -nographic -no-reboot -net none -kernel "$kernel/boot/vmlinuz-$version" -initrd "$work/initrd.gz" \
    -append "console=ttyS0 quiet panic=-1" \
    -fsdev "local,id=root,path=/,security_model=none,multidevs=remap" \
    -device virtio-9p-pci,fsdev=root,mount_tag=root </dev/null >"$work/console" 2>&1 || true
cat "$work/out" 2>/dev/null || true
if [ ! -s "$work/status" ]; then
    echo "$0: the machine ended without ending the command; its console said:" >&2
    tail -n 20 "$work/console" >&2
    exit 70
fi
exit "$(cat "$work/status")"
