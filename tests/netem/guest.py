"""PID 1 of the machine that vm.py boots: prepares it, runs the command, notes its status, halts.

Argument: vm.py's folder, as a path of this machine's host. Reads task.json from it, writes stdout,
stderr and status (or failure, when the machine could not be prepared). Only the standard library.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

SHARED = Path("/run/netem-vm")  # vm.py's folder, by a mount that our own /run does not hide
TEMPORARY = Path("/run/tmp")
# Not the host's, whose /tmp is seen here: user 0 is another one there.
OWN = {
    "TMPDIR": TEMPORARY,
    "XDG_STATE_HOME": Path("/run/state"),
    "XDG_RUNTIME_DIR": Path("/run/xdg"),
}
MODULES = (
    *("veth", "bridge", "tun", "dummy", "ifb", "8021q"),
    *("sch_htb", "sch_netem", "sch_tbf", "sch_prio", "sch_ingress", "sch_fq", "sch_fq_codel"),
    *("cls_u32", "cls_basic", "cls_matchall", "cls_flower", "cls_fw", "cls_bpf"),
    *("act_mirred", "act_gact", "act_skbedit", "act_police", "tcp_bbr", "af_packet_diag"),
)
_MS_NOSUID, _MS_REMOUNT, _MS_BIND = 0x2, 0x20, 0x1000
_POWER_OFF = 0x4321FEDC  # LINUX_REBOOT_CMD_POWER_OFF, reboot(2)


def mount(kind: str, target: Path | str, *options: str) -> None:
    Path(target).mkdir(parents=True, exist_ok=True)
    run("mount", "-t", kind, *options, "none", str(target))


def ignore_setuid() -> None:
    """What is root's on the host may be nobody's in here, and mount(8) would run as that."""
    if ctypes.CDLL(None).mount(None, b"/", None, _MS_REMOUNT | _MS_BIND | _MS_NOSUID, None) != 0:
        raise RuntimeError("mounting / with nosuid failed")


def run(*argv: str) -> None:
    """Runs a program to its end; its own words are the error."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")


def prepare(folder: str) -> None:
    """Mounts, devices, modules and the loopback, as a machine's init makes them."""
    ignore_setuid()
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    mount("tmpfs", "/run", "-o", "mode=0755")
    mount("hostfs", SHARED, "-o", folder)
    for path in (Path("/run/netns"), Path("/run/lock")):
        path.mkdir()
    for path in OWN.values():
        path.mkdir(mode=0o700)
    TEMPORARY.chmod(0o1777)
    # /dev is there: the kernel mounts it before it starts init.
    mount("tmpfs", "/dev/shm", "-o", "mode=1777")
    mount("devpts", "/dev/pts", "-o", "mode=0620,ptmxmode=0666")
    for name, number in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        link = Path("/dev") / name
        if not link.is_symlink():
            link.symlink_to(f"/proc/self/fd{number}")
    run("modprobe", "-a", "-d", str(SHARED), *MODULES)
    run("ip", "link", "set", "lo", "up")


def carry_out(task: dict[str, object]) -> int:
    """The command's exit status, 128+N if signal N ended it, 126 or 127 as shells have them."""
    environment, argv = task["environment"], task["command"]
    assert isinstance(environment, dict) and isinstance(argv, list)
    with (SHARED / "stdout").open("ab") as out, (SHARED / "stderr").open("ab") as err:
        try:
            process = subprocess.Popen(
                argv,
                cwd=str(task["folder"]),
                env={**environment, **{name: str(path) for name, path in OWN.items()}},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            err.write(f"netem-vm: starting {argv[0]}: {error.strerror}\n".encode())
            return 127 if isinstance(error, FileNotFoundError) else 126
        return reap(process.pid)


def reap(command: int) -> int:
    """Collects whatever ends, orphans included, until the command has."""
    while True:
        pid, status = os.wait()
        if pid == command:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code


def main() -> None:
    try:
        os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        prepare(sys.argv[1])
        task = json.loads((SHARED / "task.json").read_text())
        (SHARED / "status").write_text(str(carry_out(task)))
    except BaseException:
        folder = SHARED if SHARED.exists() else Path(sys.argv[1])
        (folder / "failure").write_text(traceback.format_exc())
    finally:
        os.sync()
        ctypes.CDLL(None).reboot(_POWER_OFF)


if __name__ == "__main__":
    main()
