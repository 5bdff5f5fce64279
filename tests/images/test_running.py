"""Services that run their images on this machine: as the image says, and as the service says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from runtime.images import ids
from tests.images import programs
from tests.images.support import available, tstorm
from tests.packing.layout import Packed, layer_of_folder, write_layout

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tools")]
NETWORK = "bridge s1\nlink server--s1 latency=1ms\nlink client--s1 latency=1ms\n"
ONE = "bridge s1\nlink a--s1 latency=1ms\nquit when a exits\n"


HOSTILE = """\
service a img=oci:app files=given:/way/file
bridge s1
link a--s1 latency=1ms
at 100ms a crash
at 200ms a join
at 400ms quit
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where experiments are, open to those that programs become."""
    tmp_path.chmod(0o755)
    return tmp_path


def ran(place: Path, text: str, *options: str, code: int = 0) -> Path:
    """The run's directory."""
    (place / "exp.tdl").write_text(text)
    out = place / f"run{len(list(place.glob('run*')))}"
    done = tstorm("run", "exp.tdl", "--out", out, *options, cwd=place)
    logs = [path.read_text() for path in sorted(out.glob("logs/*.log"))]
    assert done.returncode == code, (done.stderr, logs)
    return out


def log(run: Path, instance: str) -> list[str]:
    lines = (run / f"logs/{instance}.log").read_text().splitlines()
    return [line for line in lines if not line.startswith("[tstorm]")]


def shell(place: Path, name: str, **config: Any) -> None:
    """An image with a shell, whose users are web (33) and data (70)."""
    root = programs.busybox(place / f"{name}-root")
    (root / "volume").mkdir()
    (root / "volume/given").write_text("with the image\n")
    layer = layer_of_folder(root, {"volume": 33, "volume/given": 33})
    write_layout(place / name, Packed((layer,), config))


SHOWN = """\
id -u; id -g; pwd; echo $HOME $WORD $OTHER; hostname; ls /dev/null /dev/shm -d; cat /volume/given
echo mine > /volume/made && cat /volume/made; echo $0 $1
grep -w "$TSTORM_IPV4" /etc/hosts | head -n 1; ls /work /root/.ssh 2>/dev/null; touch /etc/x 2>&1
true
"""


@pytest.mark.ordinary
def test_image_says_how_it_is_started(place: Path) -> None:
    shell(
        place,
        "app",
        Entrypoint=["sh", "-c", SHOWN],
        Cmd=["zero", "one"],
        Env=["WORD=image", "OTHER=image"],
        User="web",
        WorkingDir="/made/deep",
        Volumes={"/volume": {}},
    )
    run = ran(place, f"service a img=oci:app env=OTHER:service expect=success\n{ONE}")
    lines = log(run, "a.0")
    assert lines[2:4] == ["/made/deep", "/home/web image service"]
    assert lines[4:9] == ["a-0", "/dev/null", "/dev/shm", "with the image", "mine"]
    assert lines[9] == "zero one"
    assert lines[10].split()[0] == "10.77.0.1"
    assert lines[0] == "33"
    if available() != ids.ONE:
        assert lines[1] == "33"
        assert lines[-1] == "touch: /etc/x: Permission denied"
    assert (run / "instances/.fs/a.0/volumes/volume/made").read_text() == "mine\n"
    manifest = json.loads((run / "manifest.json").read_text())
    assert set(manifest["images"]) == {"oci:app"}
    assert manifest["images"]["oci:app"].startswith("sha256:")


def test_service_says_it_otherwise(place: Path) -> None:
    shell(place, "app", Entrypoint=["sh", "-c"], Cmd=["false"], User="web", WorkingDir="/srv")
    run = ran(
        place,
        'service a img=oci:app entrypoint=["/bin/echo","own"] command=["word"] expect=success\n'
        'service b img=oci:app command=["id -u; pwd"] user=data cwd=/tmp expect=success\n'
        "bridge s1\nlink a--s1 latency=1ms\nlink b--s1 latency=1ms\nquit when all exit\n",
    )
    assert log(run, "a.0") == ["own word"]
    assert log(run, "b.0") == ["70", "/tmp"]


@pytest.mark.ordinary
def test_rejoin_finds_what_was_written(place: Path) -> None:
    shell(
        place,
        "app",
        Cmd=["sh", "-c", "cat /volume/n /etc/n; echo x >>/volume/n; echo y >>/etc/n; sleep 600"],
        Volumes={"/volume": {}},
    )
    run = ran(
        place,
        'service a img=oci:app ready="test -s /etc/n"\nbridge s1\nlink a--s1 latency=1ms\n'
        "start when ready\nat 100ms a crash\nat 200ms a join\nat 1s quit\n",
    )
    assert log(run, "a.0")[-2:] == ["x", "y"]


@pytest.mark.ordinary
@pytest.mark.parametrize("there", [False, True])
def test_links_of_an_image_lead_nowhere_else(place: Path, there: bool) -> None:
    """What a run puts into an instance goes through paths that the image has made links. `there`:
    the image has what they lead to."""
    outside = place / "outside"
    outside.mkdir()
    (outside / "hosts").write_text("mine\n")
    root = programs.busybox(place / "app-root")
    shutil.rmtree(root / "etc")
    shutil.rmtree(root / "run")
    for name in ("etc", "run", "way"):
        (root / name).symlink_to(outside)
    if there:
        (root / str(outside).lstrip("/")).mkdir(parents=True)
    words = "echo began in $PWD; ln -s / $TSTORM_RUN_DIR/volumes 2>&-; sleep 600"
    config = {"Cmd": ["sh", "-c", words], "WorkingDir": "/way/work", "Volumes": {"/way/volume": {}}}
    write_layout(place / "app", Packed((layer_of_folder(root),), config))
    (place / "given").write_text("given\n")
    (place / "exp.tdl").write_text(HOSTILE)
    done = tstorm("run", "exp.tdl", "--out", place / "run", cwd=place)
    assert "Traceback" not in done.stderr
    assert ("cannot find /etc/hosts" in done.stderr) is not there
    if there:
        assert log(place / "run", "a.0") == ["began in /way/work"] * 2
    assert [path.name for path in outside.iterdir()] == ["hosts"]
    assert (outside / "hosts").read_text() == "mine\n"
    assert not list((place / "cache/images/unpacked").glob("*/root/way/*/*"))


DEVICES = """\
ls /dev; echo x >/dev/null && echo to null; echo out >>/dev/stdout; head -c 3 /dev/zero | wc -c
touch /dev/shm/a && echo shm; mknod /made b 8 0 2>/dev/null
cat /made >/dev/null 2>&1 || echo no disk
"""


@pytest.mark.ordinary
def test_devices_are_those_of_a_container(place: Path) -> None:
    root = programs.busybox(place / "app-root")
    (root / "dev/secret").write_text("of the image")
    config = {"Cmd": ["sh", "-c", DEVICES]}
    write_layout(place / "app", Packed((layer_of_folder(root),), config))
    lines = log(ran(place, f"service a img=oci:app expect=success\n{ONE}"), "a.0")
    shown = lines[: lines.index("to null")]
    wanted = {"fd", "full", "null", "ptmx", "pts", "random", "shm", "stdin", "stderr", "stdout"}
    assert wanted <= set(shown)
    assert set(shown) <= wanted | {"mqueue", "tty", "urandom", "zero"}
    assert lines[len(shown) :] == ["to null", "out", "3", "shm", "no disk"]


def test_exec_wins_unless_images_are_asked_for(place: Path) -> None:
    shell(place, "app", Cmd=["echo", "image"])
    text = f'service a img=oci:app exec="echo program" expect=success\n{ONE}'
    assert log(ran(place, text), "a.0") == ["program"]
    run = ran(place, text, "--images")
    assert log(run, "a.0") == ["image"]
    assert log(ran(place, text, "--programs"), "a.0") == ["program"]


def test_instances_do_not_see_what_others_write(place: Path) -> None:
    shell(place, "app", Cmd=["sh", "-c", "ls /etc/mine; touch /etc/mine && echo made"])
    run = ran(place, f"service a img=oci:app replicas=2 expect=success\n{ONE}")
    for instance in ("a.0", "a.1"):
        assert log(run, instance) == ["ls: /etc/mine: No such file or directory", "made"]
    assert not list((place / "cache/images/unpacked").glob("*/root/etc/mine"))


def test_replay_runs_what_was_recorded(place: Path) -> None:
    shell(place, "app", Cmd=["echo", "first"])
    run = ran(place, f"service a img=oci:app expect=success\n{ONE}")
    (place / "app").rename(place / "before")
    (place / "app-root").rename(place / "before-root")
    shell(place, "app", Cmd=["echo", "second"])
    done = tstorm("replay", run, "--check", "--out", place / "again", cwd=place)
    assert done.returncode == 0, done.stderr
    assert log(place / "again", "a.0") == ["first"]
    assert log(ran(place, (place / "exp.tdl").read_text()), "a.0") == ["second"]


def test_setup_and_check_run_in_the_image(place: Path) -> None:
    shell(place, "app", Cmd=["sleep", "600"], User="web")
    ready = 'ready="test -e /bin/busybox" setup="touch /tmp/set-up"'
    run = ran(
        place,
        f"service a img=oci:app {ready}\n"
        'service b img=oci:app command=["sh","-c","exit 0"]\n'
        "bridge s1\nlink a--s1 latency=1ms\nlink b--s1 latency=1ms\n"
        "start when ready\nquit when b exits\n",
    )
    assert (run / "summary.json").exists()


def test_go_program_alone_in_its_image(place: Path) -> None:
    work = place / "work"
    work.mkdir()
    write_layout(place / "go", programs.static_go(place / "go-root", work))
    run = ran(place, f"service a img=oci:go expect=success\n{ONE}")
    assert log(run, "a.0") == ["go 0 /made/here"]


@pytest.mark.ordinary
def test_redis_with_a_user_and_a_health_check(place: Path) -> None:
    write_layout(place / "redis", programs.redis(place / "redis-root"))
    run = ran(
        place,
        "service server img=oci:redis expect=run\n"
        'service client img=oci:redis entrypoint=["sh","-c"] '
        'command=["redis-cli -h server set a 1 && redis-cli -h server get a; exec redis-cli -h '
        'server save"] ready=none expect=success\n'
        f"{NETWORK}start when ready\nat 50ms client join\nquit when client exits\n",
    )
    assert log(run, "client.0") == ["OK", "1", "OK"]
    assert (run / "instances/.fs/server.0/volumes/data/dump.rdb").stat().st_size > 0


@pytest.mark.ordinary
def test_nginx_changes_its_user(place: Path) -> None:
    if available() == ids.ONE:
        pytest.skip("this user has one user id: nginx' worker needs a second")
    write_layout(place / "nginx", programs.nginx(place / "nginx-root"))
    run = ran(
        place,
        "service server img=oci:nginx ready=tcp:80 expect=run\n"
        "service client img=oci:nginx entrypoint=['wget'] command=['-qO-','http://server/'] "
        f"expect=success\n{NETWORK}start when ready\nat 50ms client join\nquit when client exits\n",
    )
    assert log(run, "client.0") == ["served by nginx"]


@pytest.mark.ordinary
def test_postgres_drops_root_in_its_entrypoint(place: Path) -> None:
    if available() == ids.ONE:
        pytest.skip("this user has one user id: PostgreSQL's entrypoint begins as root")
    write_layout(place / "pg", programs.postgres(place / "pg-root"))
    run = ran(
        place,
        'service server img=oci:pg ready="pg_isready -q -h 127.0.0.1" expect=run\n'
        'service client img=oci:pg user=postgres entrypoint=["psql","-h","server","-Atc"] '
        f'command=["select 6*7"] expect=success\n{NETWORK}'
        "start when ready\nat 50ms client join\nquit when client exits\n",
    )
    assert log(run, "client.0") == ["42"]
    assert (run / "instances/.fs/server.0/volumes/var-lib-postgresql-data/PG_VERSION").exists()
    assert any("shut down" in line for line in log(run, "server.0"))


@pytest.mark.ordinary
@pytest.mark.virtual
def test_images_run_in_virtual_time_and_alike(place: Path) -> None:
    write_layout(place / "redis", programs.redis(place / "redis-root"))
    text = (
        "service server img=oci:redis expect=run\n"
        "service client img=oci:redis entrypoint=['redis-cli','-h','server'] command=['incr','n'] "
        f"ready=none expect=success\n{NETWORK}start when ready\nat 50ms client join\n"
        "quit when client exits\n"
    )
    run = ran(place, text, "--time", "virtual")
    assert log(run, "client.0") == ["(integer) 1"] or log(run, "client.0") == ["1"]
    done = tstorm("replay", run, "--check", "--out", place / "again", cwd=place)
    assert done.returncode == 0, done.stderr
