"""What programs of a whole run find around them, as this user and as an ordinary one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from runtime.backend.local.filesystem import image_root, privatefs, scripts
from runtime.backend.local.filesystem.image_root import ImageRoot
from runtime.backend.local.filesystem.instance_filesystem import CommonFacts, Furnisher
from runtime.backend.local.filesystem.privatefs import Layers, RootEntry
from runtime.rundir.held_directory import HeldDirectory
from tests.intime import Attempt, exactly
from tests.runtime.support import Compile, NoUserError, User, somebody, written
from tests.trials.scene import end
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

PLACE = "bridge s1\nlink server--s1 latency=1\n"
UNTIL_IT_ENDS = "quit when server exits\nat 60s quit\n"


def test_names_resolve_to_ipv4_first(plan_of: Compile, user: User) -> None:
    if not Path("/etc/gai.conf").exists():
        pytest.skip("this machine has no /etc/gai.conf to mount over")
    ask = "import socket\nfor name in 'server.1', 'localhost':\n"
    ask += " print(*(found[4][0] for found in socket.getaddrinfo(name, 1, type=1)))\n"
    (user.home / "names.py").write_text(ask)
    words = f"python3 {user.home}/names.py"
    plan = plan_of(f'service server img=x replicas=2 exec="{words}"\n{PLACE}{UNTIL_IT_ENDS}')
    assert user.run(plan)["outcome"] == "completed"
    said = (user.home / "out/logs/server.0.log").read_text().split()
    assert said[:2] == ["10.77.0.2", "fd77:7473::2"]
    assert said[2] == "127.0.0.1"


def test_the_runs_variables_are_put_into_words(plan_of: Compile, user: User) -> None:
    exec_ = "echo $TSTORM_IPV4 ${TSTORM_INSTANCE} $HOME"
    plan = plan_of(f'service server img=x replicas=2 exec="{exec_}"\n{PLACE}{UNTIL_IT_ENDS}')
    assert user.run(plan)["outcome"] == "completed"
    assert (user.home / "out/logs/server.1.log").read_text() == "10.77.0.2 server.1 $HOME\n"


def started(plan_of: Compile, user: User, words: str, exec_: str) -> str:
    """What the program of one instance says, in a run that is completed."""
    plan = plan_of(f'service server img=x {words} exec="{exec_}"\n{PLACE}{UNTIL_IT_ENDS}')
    result = user.run(plan)
    assert result["outcome"] == "completed", result
    return (user.home / "out/logs/server.0.log").read_text()


def test_a_program_is_its_user(plan_of: Compile, user: User) -> None:
    """Where one number is all there is, it has another name."""
    exec_ = (
        "sh -c 'id -u; id -g; id -un; echo $USER; stat -c %u . tmp; echo >made; stat -c %u made'"
    )
    said = started(plan_of, user, "user=nobody", exec_).split()
    assert said == ["65534", "65534", "nobody", "nobody", "65534", "65534", "65534"]
    shutil.rmtree(user.home / "out")


def test_sysctls_and_the_machines_are_seen(plan_of: Compile, user: User) -> None:
    said = started(
        plan_of,
        user,
        "sysctl=net.ipv4.tcp_keepalive_time:77",
        "sysctl -n net.ipv4.tcp_keepalive_time",
    )
    assert said == "77\n"
    manifest = json.loads((user.home / "out/manifest.json").read_text())
    assert "net.ipv4.tcp_congestion_control" in manifest["machine"]["network"]


def test_a_file_system_of_its_own(plan_of: Compile, user: User) -> None:
    mark = f"tstorm-test-{os.getpid()}"
    exec_ = (
        f"sh -c 'for d in /tmp /run /var/lib /var/log /etc; do echo $TSTORM_INSTANCE >$d/{mark} &&"
        f" cat $d/{mark}; done; pwd; echo here >kept; ls $TSTORM_RUN_DIR/plan/plan.json'"
    )
    said = started(plan_of, user, "fs=private replicas=2", exec_).split()
    home = user.home / "out/instances/server.0"
    assert said == ["server.0"] * 5 + [str(home), f"{user.home}/out/plan/plan.json"]
    assert (home / "kept").read_text() == "here\n"
    for folder in ("/tmp", "/run", "/var/lib", "/var/log", "/etc"):
        assert not Path(folder, mark).exists()
    uppers = user.home / "out/instances/.fs/server.1/upper"
    assert (uppers / "etc" / mark).read_text() == "server.1\n"
    shutil.rmtree(user.home / "out")


def test_an_instance_keeps_its_files_over_a_rejoin(plan_of: Compile, user: User) -> None:
    mark = f"tstorm-test-{os.getpid()}"
    exec_ = (
        f"sh -c 'cat /etc/{mark}; echo $TSTORM_INSTANCE >/etc/{mark}; touch /run/{mark}; ls /run;"
        " echo 10.9.9.9 mine >>/etc/hosts'"
    )
    plan = plan_of(
        f'service server img=x fs=private exec="{exec_}"\n{PLACE}'
        "at 0s server join\nat 400ms server crash\nat 600ms server join\nat 1200ms quit\n"
    )
    assert user.run(plan)["outcome"] == "completed"
    said = (user.home / "out/logs/server.0.log").read_text()
    assert said.count("server.0") == 1
    hosts = (user.home / "out/instances/.fs/server.0/hosts").read_text()
    assert hosts.endswith("s1\n" + "10.9.9.9 mine\n" * 2)
    assert said.count(mark) == 3  # no such file, and /run twice: it is as after a boot


def test_a_rejoin_follows_no_link_that_a_program_made(plan_of: Compile, user: User) -> None:
    """Instead of /run and /tmp, which begin anew, or are ours."""
    outside = user.home / "outside"
    (outside / "inner").mkdir(parents=True)
    for path in (outside, outside / "inner"):
        path.chmod(0o751)
    moves = " ".join(f"mv {d} {d}.old; ln -s {outside} {d};" for d in ("/run", "/tmp"))
    exec_ = f"sh -c 'test -L /run || test -L /tmp || {{ {moves} }}; echo began; sleep 60'"
    plan = plan_of(
        f'service server img=x fs=private exec="{exec_}"\n{PLACE}'
        "at 0s server join\nat 500ms server crash\nat 700ms server join\nat 1200ms quit\n"
    )
    assert user.run(plan)["outcome"] == "completed"
    assert [path.stat().st_mode & 0o7777 for path in (outside, outside / "inner")] == [0o751] * 2
    assert written(user.home / "out/logs/server.0.log") == "began\nbegan\n"


@pytest.mark.parametrize("fs", ["", "fs=private"])
def test_files_are_placed_before_the_first_start_only(workspace: Path, user: User, fs: str) -> None:
    (workspace / "conf").mkdir()
    (workspace / "conf/inner.txt").write_text("inner\n")
    (workspace / "program.sh").write_text(
        "#!/bin/sh\ncat conf/inner.txt; echo more >>conf/inner.txt\n"
    )
    (workspace / "program.sh").chmod(0o755)
    more = "files=conf/;program.sh"
    if fs:
        more += ";conf/inner.txt:/etc/tstorm-test/copy user=nobody cwd=/srv/work"
    text = f"service server img=x {fs} {more} exec=\"sh -c 'pwd; ./program.sh'\"\n{PLACE}"
    text += "at 0s server join\nat 400ms server crash\nat 500ms server join\nat 1200ms quit\n"
    (workspace / "exp.tdl").write_text(text)
    process = user.tstorm("run", str(workspace / "exp.tdl"), "--quiet", "--out", "out")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    home = "/srv/work" if fs else str(user.home / "out/instances/server.0")
    lines = (user.home / "out/logs/server.0.log").read_text().splitlines()
    said = [line for line in lines if not line.startswith("[tstorm]")]
    assert said == [home, "inner", home, "inner", "more"]


def test_an_image_that_is_not_run_changes_nothing_on_the_machine(
    workspace: Path, user: User
) -> None:
    """Its files, user and setup are meant for the image."""
    place = user.home / "machine"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    (place / "app.conf").write_text("the machine's\n")
    (place / "app.conf").chmod(0o666)
    (workspace / "app.conf").write_text("the image's\n")
    more = f'user=nobody-here mount=app.conf:/nowhere/here setup="touch {place}/setup"'
    for files in (f"files=app.conf:{place}/app.conf", f"files=app.conf cwd={place}"):
        words = f"{files} {more}"
        text = f"service server img=example.org/x {words}\n{PLACE}at 500ms quit\n"
        (workspace / "exp.tdl").write_text(text)
        process = user.tstorm(
            *("run", str(workspace / "exp.tdl"), "--programs", "--quiet", "--out", "out")
        )
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
        assert [path.name for path in place.iterdir()] == ["app.conf"]
        assert (place / "app.conf").read_text() == "the machine's\n"
        shutil.rmtree(user.home / "out")


def test_a_mount_is_seen_and_can_be_read_only(workspace: Path, user: User) -> None:
    (workspace / "data").mkdir(mode=0o777)
    (workspace / "data").chmod(0o777)
    (workspace / "data/file").write_text("text\n")
    words = "cat /mnt/deep/file; echo >/mnt/deep/other; echo done >/srv/data/other"
    text = f"service server img=x fs=private mount=data:/mnt/deep:ro;{workspace}/data:/srv/data"
    text += f" exec=\"sh -c '{words}'\"\n{PLACE}at 800ms quit\n"
    (workspace / "exp.tdl").write_text(text)
    process = user.tstorm("run", str(workspace / "exp.tdl"), "--quiet", "--out", "out")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    said = (user.home / "out/logs/server.0.log").read_text()
    assert said.startswith("text\n")
    assert "Read-only" in said
    assert (workspace / "data/other").read_text() == "done\n"


def test_a_user_that_is_not_there_is_named(plan_of: Compile, user: User) -> None:
    plan = plan_of(f'service server img=x user=nobody-here exec="true"\n{PLACE}at 100ms quit\n')
    result = user.run(plan)
    assert result["outcome"] == "failed"
    assert "user=nobody-here of service server" in result["message"]


def test_a_directory_that_is_not_there_is_named(plan_of: Compile, user: User) -> None:
    plan = plan_of(f'service server img=x cwd=/nowhere/here exec="true"\n{PLACE}at 100ms quit\n')
    result = user.run(plan)
    assert result["outcome"] == "failed"
    assert "instance server.0: cannot find /nowhere/here" in result["message"]
    assert not Path("/nowhere").exists()


@pytest.mark.parametrize(("network", "family"), [("ipv4", 0), ("ipv6", 1)])
def test_a_network_of_one_family(plan_of: Compile, user: User, network: str, family: int) -> None:
    exec_ = "sh -c 'ip -br addr show eth0; grep -c server.0 /etc/hosts; echo 4=$TSTORM_IPV4.'"
    plan = plan_of(
        f'network {network}\nservice server img=x exec="{exec_}"\n{PLACE}{UNTIL_IT_ENDS}'
    )
    assert user.run(plan)["outcome"] == "completed"
    said = (user.home / "out/logs/server.0.log").read_text()
    assert ("10.77.0.1" in said) is (family == 0)
    assert ("fd77" in said) is (family == 1)
    assert "\n1\n" in said


@pytest.fixture
def ranged(workspace: Path) -> Iterator[User]:
    """An ordinary user with a range of numbers, whatever /etc/subuid says: in a mount namespace."""
    if os.geteuid() != 0:
        pytest.skip("only root can give somebody a range of numbers")
    if not shutil.which("newuidmap"):
        pytest.skip("newuidmap is not installed (Debian: uidmap)")
    try:
        found = somebody("ordinary", workspace)
    except NoUserError as error:
        pytest.skip(str(error))
    table = workspace / "subuid"
    table.write_text("65534:300000:65536\n")
    table.chmod(0o644)
    words = 'for n in subuid subgid; do mount --bind "$0" /etc/$n || exit 9; done; exec "$@"'
    mounted = ["unshare", "-m", "--propagation", "private", "sh", "-c", words, str(table)]
    setpriv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    ranged = replace(found, prefix=[*mounted, *setpriv])
    yield ranged
    end(ranged)


@pytest.mark.ordinary
def test_an_ordinary_user_with_a_range_has_many_numbers(plan_of: Compile, ranged: User) -> None:
    for name in ("subuid", "subgid"):
        assert Path("/etc", name).exists(), f"touch /etc/{name}"
    exec_ = "sh -c 'id -u; mkdir data; chmod 700 data; touch data/file; stat -c %u:%g data/file'"
    assert started(plan_of, ranged, "user=1:2", exec_).split() == ["1", "1:2"]
    found = (ranged.home / "out/instances/server.0/data/file").stat()
    assert (found.st_uid, found.st_gid) == (65534, 65534)  # given back
    shutil.rmtree(ranged.home / "out")
    said = started(plan_of, ranged, "", "setpriv --reuid=7 --regid=8 --clear-groups id -u")
    assert said == "7\n"


@pytest.mark.ordinary
@pytest.mark.parametrize("refused", ["newuidmap", "newgidmap"])
def test_where_a_map_is_refused_one_number_is_left(
    plan_of: Compile, ranged: User, refused: str
) -> None:
    words = 'mount --bind /bin/false "$0" || exit 9; exec "$@"'
    hidden = ["sh", "-c", words, str(shutil.which(refused))]
    at = ranged.prefix.index("setpriv")
    limited = replace(ranged, prefix=[*ranged.prefix[:at], *hidden, *ranged.prefix[at:]])
    said = started(plan_of, limited, "", "sh -c 'id -u; cat /proc/self/uid_map'")
    assert said.split() == ["0", "0", "65534", "1"]  # one number


@pytest.mark.ordinary
def test_destroy_gives_files_back_after_a_kill(plan_of: Compile, ranged: User) -> None:
    exec_ = "sh -c 'touch file; chmod 700 .; echo made; sleep 60'"
    plan = plan_of(f'service server img=x user=9 exec="{exec_}"\n{PLACE}at 60s quit\n')
    process = ranged.begin(plan)
    log = ranged.home / "out/logs/server.0.log"
    wait_until(lambda: log.read_text() == "made\n", "the file")
    home = ranged.home / "out/instances/server.0"
    assert (home / "file").stat().st_uid == 300008
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    destroyed = ranged.tstorm("destroy", "--all")
    out, err = destroyed.communicate(timeout=60)
    assert destroyed.returncode == 0, out + err
    assert (home / "file").stat().st_uid == 65534


def test_one_number_is_the_reason_beside_the_failure(plan_of: Compile, user: User) -> None:
    if user.name == "self":
        pytest.skip("root has all numbers")
    exec_ = "setpriv --reuid=7 --regid=7 --clear-groups true"
    plan = plan_of(f'service server img=x exec="{exec_}"\n{PLACE}{UNTIL_IT_ENDS}')
    process = user.start("run", str(plan), str(user.home / "out"), "{}")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "this run has one user number only" in out


@pytest.mark.parametrize("change", ["none", "changed", "gone"])
def test_a_replay_runs_the_scripts_that_the_run_ran(
    workspace: Path, user: User, change: str
) -> None:
    place = user.home / "exp"
    (place / "bin").mkdir(parents=True)
    place.chmod(0o777)
    script = place / "bin/say.sh"
    script.write_text("#!/bin/sh\necho first; cat $(dirname $0)/beside\n")
    script.chmod(0o755)
    (place / "bin/beside").write_text("beside\n")
    (place / "exp.tdl").write_text(
        f'service server img=x exec="./bin/say.sh"\n{PLACE}{UNTIL_IT_ENDS}'
    )
    (user.home / "elsewhere").mkdir(mode=0o777)

    def tstorm(*words: str) -> str:
        process = user.tstorm(*words, "--quiet", "--out", str(user.home / words[0]))
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
        return (user.home / words[0] / "logs/server.0.log").read_text()

    assert tstorm("run", str(place / "exp.tdl")) == "first\nbeside\n"
    kept = user.home / "run/programs/bin/say.sh"
    assert kept.read_text() == script.read_text()
    assert kept.stat().st_mode & 0o777 == 0o755
    if change == "changed":
        script.write_text("#!/bin/sh\necho second\n")
    elif change == "gone":
        script.unlink()
    said = tstorm("replay", str(user.home / "run"))
    assert said.startswith("first\n")
    assert ("No such file" in said) is (change != "none")  # what was beside it is not kept
    assert (user.home / "replay/programs/bin/say.sh").read_text() == kept.read_text()


def test_volumes_whose_paths_are_alike_are_two(tmp_path: Path) -> None:
    for path in ("data-a", "data/a"):
        (tmp_path / "image" / path).mkdir(parents=True)
        (tmp_path / "image" / path / "file").write_text(path)
    image = ImageRoot(str(tmp_path / "image"), ("x",), (), volumes=("/data-a", "/data/a"))
    for _life in range(2):
        done = image_root.volume_operations(image, tmp_path / "own")
        assert [(Path(one[1]) / "file").read_text() for one in done] == ["data-a", "data/a"]


@pytest.mark.parametrize("one_id", [True, False])
def test_who_has_one_user_number_owns_what_daemons_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_id: bool
) -> None:
    """As instances with user= in virtual time have: others' folders are nobody's for them."""
    monkeypatch.setattr(privatefs, "in_user_namespace", lambda: False)
    whole = Layers((RootEntry("overlay", "/var"),), None, ())
    owner = (os.getuid(), os.getgid())
    privatefs.of_machine(whole, tmp_path, owner, one_id=one_id)
    made = tmp_path / "upper/var/log"
    assert made.exists() is one_id
    inside = [path for path in Path("/var/log").iterdir() if path.is_dir() and one_id]
    for path in (made / one.name for one in inside):
        assert ((status := path.stat()).st_uid, status.st_gid) == owner


@pytest.mark.parametrize("in_memory", [True, False])
def test_private_files_in_memory_are_news_where_a_disk_was_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    monkeypatch.setattr(privatefs, "layers", lambda _place, memory: Layers((), memory, ("/opt",)))
    said: list[str] = []
    facts = CommonFacts(tmp_path, tmp_path, {}, tmp_path, one_id=False, in_memory=in_memory)
    text = f"service server img=x fs=private\n{PLACE}at 1s quit\n"
    service = compile_source(text).plan.topology.services[0]
    Furnisher(facts, said.append)._needed_layers(service, None)
    told = ["memory, and gone after the run" in word for word in said]
    assert told == ([False] if in_memory else [True, False])


def test_two_spellings_of_a_program_are_one_script(tmp_path: Path) -> None:
    for name in ("run", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin/say.sh").write_text("#!/bin/sh\n")
    words = ["./bin/say.sh", "bin//say.sh", "bin/say.sh"]
    assert scripts.keep(HeldDirectory.hold(tmp_path / "run"), words, str(tmp_path)) == {}
    assert (tmp_path / "run/programs/bin/say.sh").read_text() == "#!/bin/sh\n"


def test_a_program_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "pipe")
    keeping = threading.Thread(
        target=scripts.keep,
        args=(HeldDirectory.hold(tmp_path / "run"), ["./pipe"], str(tmp_path)),
        daemon=True,
    )
    keeping.start()
    keeping.join(10)
    assert not keeping.is_alive()
    assert list((tmp_path / "run").rglob("pipe")) == []


def test_what_is_not_kept_leaves_no_private_files(plan_of: Compile, user: User) -> None:
    exec_ = "sh -c 'echo x >/etc/tstorm-test; echo done'"
    plan = plan_of(
        f'service server img=x fs=private keep=no exec="{exec_}"\n'
        f'service other img=x fs=private exec="{exec_}"\n{PLACE}'
        "link other--s1 latency=1\nat 800ms quit\n"
    )
    assert user.run(plan)["outcome"] == "completed"
    instances = user.home / "out/instances"
    assert sorted(path.name for path in instances.iterdir()) == [".fs", "other.0"]
    assert [path.name for path in (instances / ".fs").iterdir()] == ["other.0"]
    removed = subprocess.run(
        [*user.prefix, "rm", "-r", str(user.home / "out")], capture_output=True, check=False
    )
    assert removed.returncode == 0, removed.stderr


def test_the_same_surroundings_in_virtual_time(plan_of: Compile, user: User) -> None:
    mark = f"tstorm-test-{os.getpid()}"
    # In real time /etc is root's; the guest has one owner of files.
    exec_ = (
        f"sh -c 'id -u; cat /var/tmp/{mark}; echo kept >/var/tmp/{mark}; echo x >/tmp/{mark};"
        " stat -c %u . tmp; sysctl -n net.ipv4.tcp_keepalive_time; sleep 60'"
    )
    plan = plan_of(
        "service server img=x fs=private user=nobody sysctl=net.ipv4.tcp_keepalive_time:77"
        f' exec="{exec_}"\n{PLACE}'
        "at 0s server join\nat 400ms server crash\nat 600ms server join\nat 900ms server pause\n"
        "at 1s quit\n"
    )

    def trial(attempt: Attempt) -> None:
        run = attempt.saw(user.home / attempt.name("out"))
        assert user.run(plan, run.name, **attempt.options)["outcome"] == "completed"
        lines = (run / "logs/server.0.log").read_text().splitlines()
        said = [line for line in lines if not line.startswith(("[tstorm]", "cat:"))]
        once = ["65534", "65534", "65534", "77"]
        assert said == [*once, "65534", "kept", *once[1:]]

    exactly(trial)
    assert not Path("/var/tmp", mark).exists()
    assert not Path("/tmp", mark).exists()
