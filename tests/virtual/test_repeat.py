"""Two guests with one seed are the same to the last byte, whatever the host does meanwhile."""

import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.virtual.guests import PROGRAMS, compiled, guest

pytestmark = pytest.mark.virtual

RANDOM = """
head -c 1000000 /dev/urandom | sha256sum; head -c 100 /dev/random | sha256sum
cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/random/uuid
python3 -c 'import os, uuid; print(os.urandom(8), uuid.uuid4(), hash("x"), id(object()))'
cat /proc/tstorm; cat /proc/self/maps; dmesg | grep crng
"""
FILES = """
cd {folder}/files; umask 022; trap 'echo failed in line $LINENO' ERR
show() {{ stat -c '%n %i %f %h %s %b %X %Y %Z' "$@"; }}
same() {{ test "$(stat -c %i "$1")" = "$2"; }}
echo one >a; mkdir dir; ln -s a link; mkfifo pipe; mkdir dir/below; show a dir link pipe .
sleep 1; echo two >>a; show a; number=$(stat -c %i a); mv a b; same b $number
echo new >a; ! same a $number; ln b c; same c $number; rm b; same c $number
rm c; echo x >c; ! same c $number
number=$(stat -c %i dir/below); mv dir moved; same moved/below $number
touch -d '2030-01-02 03:04:05.123456789' dated; cp -p dated copy; show dated copy
test copy -ef copy; ! test copy -ef dated; truncate -s 9999 c; show c
python3 - <<'P'
import mmap, os
with open("mapped", "w+b") as file:
    file.truncate(8192)
    with mmap.mmap(file.fileno(), 8192) as memory:
        memory[5000] = 65
print(os.stat("mapped").st_mtime_ns, open("mapped", "rb").read()[5000])
for entry in os.scandir("."):
    assert entry.inode() == entry.stat(follow_symlinks=False).st_ino, entry
P
for i in $(seq 300); do : >n$i; done; ls -U | tr '\\n' ' '; rm n2*; ls -Ui | sha256sum
show .; df .; chmod 600 a; show a; cat unread
rm -r moved; ls -lRU --full-time .
""".replace("'''", '"""')


def probe(kernel: list[str], script: str, folder: Path, *words: str) -> str:
    """What a script says in a guest; folder/files is empty before."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "unread").write_text("as before\n")
    for path in (folder / "files" / "unread", folder / "files"):
        os.utime(path, (1, 1))
    (folder / "script").write_text(script.format(folder=folder))
    since = f"tstorm_since={folder.stat().st_ctime_ns}"
    with guest([*kernel, *words, since, "umid=guest"], f"bash {folder}/script", folder) as it:
        return it.end()


def test_randomness_is_the_seeds(kernel: list[str], tmp_path: Path) -> None:
    script = RANDOM.replace("{", "{{").replace("}", "}}")
    found = [
        probe(kernel, script, tmp_path / "a", f"tstorm_seed={seed}")
        for seed in ("01", "01", "02", "0100", "00" * 31 + "01")
    ]
    assert found[0] == found[1]
    assert "random: seed" in found[0]
    assert "host addresses: fixed" in found[0]
    draws = {text.splitlines()[0] for text in found}
    assert len(draws) == 3, "zeros at the end of a seed say nothing"


def test_other_randomness_without_a_seed(kernel: list[str], tmp_path: Path) -> None:
    first, second = (probe(kernel, RANDOM, tmp_path / "a").splitlines()[0] for _ in range(2))
    assert first != second


def test_a_seed_that_is_none_is_refused(kernel: list[str], tmp_path: Path) -> None:
    for seed in ("", "1", "xy", "00" * 33):
        with guest([*kernel, f"tstorm_seed={seed}"], "true", tmp_path) as it:
            assert it.process.wait(60) == 1
        assert "1 to 32 bytes in hexadecimal" in (tmp_path / "console").read_text()


def test_cycle_counter_is_virtual_time(kernel: list[str], tmp_path: Path) -> None:
    program = compiled("cycles", tmp_path, "-static")
    found = [
        probe(kernel, f"{program}; {program}; cat /proc/tstorm", tmp_path / "a", "tstorm_seed=01")
        for _ in range(2)
    ]
    assert found[0] == found[1]
    first, advanced, agreed, *_ = found[0].splitlines()
    start, _, processor = map(int, first.split())
    assert start < 10**10, "nanoseconds since the guest started"
    assert (processor, advanced, agreed) == (0, "1", "1")
    assert "cycle counter: virtual" in found[0]


def test_a_fault_is_still_a_fault(kernel: list[str], tmp_path: Path) -> None:
    """A general protection fault that is not the cycle counter's."""
    script = r"""python3 -X faulthandler -c '
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=7); code.write(b"\xf4")
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()' 2>&1 | head -1"""
    script = script.replace("{", "{{").replace("}", "}}")
    assert "Segmentation fault" in probe(kernel, script, tmp_path / "a", "tstorm_seed=01")


def test_files_of_the_host_are_the_same(kernel: list[str], tmp_path: Path) -> None:
    first = probe(kernel, FILES, tmp_path / "a", "tstorm_seed=01")
    assert "failed" not in first, first
    assert "1073741824" in first, "space does not depend on the host's"
    left = (tmp_path / "a" / "files" / "c").stat().st_mtime
    assert 946_684_800 <= left < 946_684_900, "on the host, too"
    assert probe(kernel, FILES, tmp_path / "a", "tstorm_seed=02") == first


def test_host_does_not_show(kernel: list[str], tmp_path: Path) -> None:
    """Limits, environment, creation mask, load and process numbers of the host."""
    program = compiled("cycles", tmp_path, "-static")
    script = f"mount -t sysfs sys /sys; python3 {PROGRAMS}/probe.py {program}"
    first = probe(kernel, script, tmp_path / "a", "tstorm_seed=01")
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
    limit, mask = resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0o077)
    os.environ["TSTORM_TEST_NOISE"] = "x" * 5000
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limit[1]))
    try:
        second = probe(kernel, script, tmp_path / "a", "tstorm_seed=01")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        os.umask(mask)
        del os.environ["TSTORM_TEST_NOISE"]
        for one in busy:
            one.kill()
            one.wait()
    assert second.splitlines() == first.splitlines()
    assert len(first.splitlines()) > 100


def test_scatter_finds_a_race(kernel: list[str], tmp_path: Path) -> None:
    program = compiled("race", tmp_path, "-static")

    def lost(seed: int, *words: str) -> str:
        return probe(
            kernel, f"{program} /run/count", tmp_path / "a", f"tstorm_seed={seed:02}", *words
        )

    seeds = range(1, 7)
    assert {lost(seed) for seed in seeds} == {"400 of 400\n"}
    found = [lost(seed, "tstorm_scatter=100000") for seed in seeds]
    assert set(found) != {"400 of 400\n"}
    assert [lost(seed, "tstorm_scatter=100000") for seed in seeds] == found
