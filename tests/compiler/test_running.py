"""What services say about how they run arrives in the plan; files are read beside the text."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from compiler.analysis.plan_diff import compare_plans
from compiler.pipeline import Compilation, compile_source, write
from compiler.plan.format import PlanError
from compiler.plan.parts.attached import Attached, encode
from compiler.plan.parts.services import SIGNALS
from compiler.plan.reader import read_plan
from compiler.plan.rules.capabilities import (
    COMPOSE,
    KUBERNETES,
    LOCAL,
    SERVICE_WORDS,
    SETTINGS,
    refusal,
)
from compiler.plan.types import Mount, PlanFile, Service, Topology
from compiler.sources import RecordedFiles, SourceFolder
from tdl.diagnostics import TdlError
from tdl.tokens import words

REST = "\nbridge s1\nlink a--s1\n"
DAY_NS = 24 * 3_600 * 10**9


def compiled(text: str, folder: Path | None = None) -> Compilation:
    if folder is None:
        return compile_source(text + REST)
    return compile_source(text + REST, sources=SourceFolder(folder))


def first(text: str, folder: Path | None = None) -> Service:
    """As it is read from the plan's bytes."""
    return compiled(text, folder).plan.topology.services[0]


def said(text: str, folder: Path | None = None) -> list[tuple[str, int, str]]:
    with pytest.raises(TdlError) as caught:
        compiled(text, folder)
    return [
        (one.code, one.span.line, f"{one.message}; {one.hint}") for one in caught.value.diagnostics
    ]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conf" / "sub").mkdir(parents=True)
    (tmp_path / "conf" / "b").write_bytes(b"b")
    (tmp_path / "conf" / "sub" / "a").write_bytes(b"a")
    (tmp_path / "conf" / "__pycache__").mkdir()
    (tmp_path / "conf" / "__pycache__" / "x.pyc").write_bytes(b"x")
    (tmp_path / "run.sh").write_bytes(b"#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o700)
    return tmp_path


def test_everything_arrives_in_the_plan() -> None:
    service = first(
        'service a exec="db -D x" user=postgres:ssl cwd=/srv/pg/ fs=private '
        'mount=/srv:/data:ro;./x:/y sysctl=net.ipv4.tcp_rmem:"1 2 3" setup="initdb \'a b\'" '
        'ready="pg_isready -h $TSTORM_IPV4" ready-timeout=2m stop=SIGINT grace=500ms '
        "expect=run keep=no"
    )
    assert (service.user, service.cwd, service.fs) == ("postgres:ssl", "/srv/pg", "private")
    assert service.mounts == (Mount("/srv", "/data", True), Mount("./x", "/y", False))
    assert service.sysctls == (("net.ipv4.tcp_rmem", "1 2 3"),)
    assert service.setup == ("initdb", "a b")
    assert service.ready == ("pg_isready", "-h", "$TSTORM_IPV4")
    assert (service.ready_timeout_ns, service.grace_ns) == (120 * 10**9, 5 * 10**8)
    assert (service.stop, service.expect, service.keep) == ("SIGINT", "run", False)


def test_what_is_not_stated_is_empty() -> None:
    service = first("service a")
    assert (service.user, service.cwd, service.fs, service.stop, service.expect) == ("",) * 5
    assert (service.files, service.mounts, service.sysctls, service.setup, service.ready) == (
        (),
    ) * 5
    assert (service.ready_timeout_ns, service.grace_ns, service.keep) == (0, 0, True)


@pytest.mark.parametrize("check", ["none", "tcp:5432"])
def test_readiness_without_a_command(check: str) -> None:
    assert first(f"service a exec=b ready={check}").ready == (check,)


def test_how_an_experiment_begins_and_ends() -> None:
    text = "service b exec=x\nservice a exec=y\nservice c\nbridge s1\n"
    text += "".join(f"link {name}--s1\n" for name in "abc")
    plain = compile_source(text).plan
    assert (plain.topology.network, plain.topology.start_when_ready) == ("dual", False)
    assert plain.topology.quit_when == ()
    said = "\nnetwork ipv6\nstart when ready\nquit when a exits\nat 5s b crash"
    plan = compile_source(text + said).plan
    assert (plan.topology.network, plan.topology.start_when_ready) == ("ipv6", True)
    assert plan.topology.quit_when == (1,)
    assert plan.end_ns == 5 * 10**9 + DAY_NS
    both = compile_source(text + "\nquit when all exit\nat 9s quit").plan
    assert (both.topology.quit_when, both.end_ns) == ((0, 1), 9 * 10**9)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("service a\nquit when a exits", "TS0136", "give it exec= or img="),
        ("service a\nquit when s1 exits", "TS0136", "is a bridge"),
        ("service a\nquit when all exit", "TS0136", "no service has a program"),
        ("service a exec=x\nquit when aa exits", "TS0136", "did you mean 'a'"),
        ("service a expect=run", "TS0137", "expect= is about the program of 'a'"),
        ("service a grace=5s", "TS0137", "leave grace= out"),
        ("service a\nnetwork ipv4\nnetwork ipv6", "TS0109", "'network' is given twice"),
        ("service a exec=x\nquit when all exit\nquit when a exits", "TS0109", "'quit when'"),
    ],
)
def test_what_cannot_be(text: str, code: str, words: str) -> None:
    ((found, _, message),) = said(text)
    assert found == code
    assert words in message


def test_files_are_copied_under_their_names(folder: Path) -> None:
    service = first("service a exec=b files=conf/;run.sh;run.sh:bin/", folder)
    assert service.files == (
        PlanFile("bin/run.sh", 0o755, digest(b"#!/bin/sh\n")),
        PlanFile("conf/b", 0o644, digest(b"b")),
        PlanFile("conf/sub/a", 0o644, digest(b"a")),
        PlanFile("run.sh", 0o755, digest(b"#!/bin/sh\n")),
    )
    plan = compiled("service a exec=b files=conf/;run.sh", folder).plan
    assert sorted(plan.attached.contents.values()) == [b"#!/bin/sh\n", b"a", b"b"]


def test_absolute_names_and_places(folder: Path) -> None:
    outside = folder / "conf"
    text = f"service a img=x files={folder}/run.sh;{outside}:/etc/app;../{folder.name}/conf/b"
    assert [file.path for file in first(text, folder).files] == [
        "/etc/app/b",
        "/etc/app/sub/a",
        "b",
        "run.sh",
    ]
    for text in ("files=run.sh:/etc/run.sh", "cwd=/etc files=run.sh"):
        ((code, _, message),) = said(f"service a exec=x {text}", folder)
        assert (code, "add fs=private" in message) == ("TS0125", True)
        assert "'/etc/run.sh'" in message
    assert first("service a exec=x fs=private files=run.sh:/etc/run.sh", folder).files


def test_files_that_cannot_be_read_are_errors_at_their_place(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "conf" / "link").symlink_to("sub")
    (folder / "empty").mkdir()
    text = "service a \\\n exec=x files=rnu.sh \nservice b exec=x files=pipe\n"
    text += "service c exec=x files=conf/\nservice d exec=x files=empty\n"
    text += "".join(f"link {name}--s1\n" for name in "bcd")
    found = said(text, folder)
    assert [(code, line) for code, line, _ in found] == [
        ("TS0133", 2),
        ("TS0133", 3),
        ("TS0133", 4),
        ("TS0133", 5),
    ]
    assert "did you mean 'run.sh'?" in found[0][2]
    assert "mount=" in found[1][2]
    assert "is a link to a folder" in found[2][2]
    assert "no file in the folder 'empty'" in found[3][2]
    assert [code for code, _, _ in said("service a exec=x files=x")] == ["TS0133"]


def test_two_files_in_one_place(folder: Path) -> None:
    ((code, line, message),) = said("service a exec=x files=run.sh:conf/b;conf", folder)
    assert (code, line) == ("TS0135", 1)
    assert "'conf/b'" in message


def test_too_much_to_copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.sources.MAX_ATTACHED_BYTES", 10)
    ((code, _, message),) = said("service a exec=x files=conf/;run.sh", folder)
    assert code == "TS0134"
    assert "mount=" in message


def test_the_plan_has_the_files_when_the_folder_is_gone(folder: Path, tmp_path: Path) -> None:
    made = compiled("service a exec=x files=conf/;run.sh", folder)
    target = tmp_path / "x.plan"
    write(made, target)
    plan = read_plan(target)
    again = compile_source(plan.source, seed=7, sources=RecordedFiles(plan)).plan
    assert again.topology.services == plan.topology.services
    assert again.raw("files.tar") == plan.raw("files.tar")


def test_the_digest_depends_on_what_files_hold(folder: Path) -> None:
    text = "service a exec=x files=run.sh"
    before = compiled(text, folder).plan.digest
    assert compiled(text, folder).plan.digest == before
    (folder / "run.sh").write_bytes(b"another")
    assert compiled(text, folder).plan.digest != before


def test_files_tar_says_what_it_holds() -> None:
    data = encode([b"one", b"two", b"one"], {"lib/ü.tdl": b"seed 1\n"})
    found = Attached(data)
    assert found.contents == {digest(b"one"): b"one", digest(b"two"): b"two"}
    assert found.includes == {"lib/ü.tdl": b"seed 1\n"}
    assert len(encode([], {})) == 10_240


@pytest.mark.parametrize("at", [0, 5, 130, 512, 10_239])
def test_a_changed_files_tar_is_refused(at: int) -> None:
    data = bytearray(encode([b"one"], {}))
    data[at] ^= 1
    with pytest.raises(PlanError, match=r"^files.tar: "):
        Attached(bytes(data))


def test_a_files_tar_of_other_files_is_refused() -> None:
    service = first("service a")
    with pytest.raises(PlanError, match="belongs to no service"):
        Attached(encode([b"one"], {})).check(Topology((service,), (), (), "", "delay"))


def test_the_language_and_the_plan_know_the_same_signals() -> None:
    assert words.SIGNALS == SIGNALS


def test_what_nobody_carries_out_is_refused_by_name() -> None:
    plain = compiled("service a exec=x").plan
    assert [refusal(plain, way) for way in (LOCAL, KUBERNETES, COMPOSE)] == [""] * 3
    rows = [(row.word, row.lacking) for row in SERVICE_WORDS]
    rows += [(row.word, row.lacking) for row in SETTINGS]
    plan = compiled(
        "bridge s\nlink a--s\nlink b--s\n"
        "service a exec=x user=b cwd=/x fs=private mount=/a:/b sysctl=net.core.somaxconn:9 setup=x "
        "ready=tcp:1 ready-timeout=1s stop=SIGINT grace=1s expect=any keep=no alias=z publish=80\n"
        "service b exec=x after=a\nnetwork ipv4\nstart when ready\nquit when a exits"
    ).plan
    for way in (LOCAL, KUBERNETES, COMPOSE):
        for word, lacking in rows:
            if not word.startswith(("files=", "network ipv6")):
                assert (word in refusal(plan, way)) == (way in lacking)


def test_plans_differ_in_how_services_run(folder: Path) -> None:
    one = compiled("service a exec=x files=run.sh ready=tcp:1", folder).plan
    (folder / "run.sh").write_bytes(b"another")
    two = compiled("service a exec=x files=run.sh ready=tcp:2\nnetwork ipv4", folder).plan
    found = compare_plans(one, two).topology
    assert [(d.kind, d.name, d.field) for d in found] == [
        ("experiment", "", "network"),
        ("service", "a", "files"),
        ("service", "a", "ready"),
    ]
    assert found[1].b == [["run.sh", 0o755, digest(b"another")]]


@pytest.mark.parametrize("place", ["files=run.sh:/etc/run.sh", "cwd=/etc files=run.sh"])
def test_no_file_is_put_among_the_machines_own(folder: Path, place: str) -> None:
    """Where a program of the machine runs in place of the image."""
    plan = compiled(f"service a img=x exec=y {place}", folder).plan
    assert "files= outside of" in refusal(plan, LOCAL)
    assert "files= outside of" not in refusal(plan, KUBERNETES)
    for more in ("fs=private", ""):
        program = "exec=y " if more else ""
        plan = compiled(f"service a img=x {program}{place} {more}", folder).plan
        assert refusal(plan, LOCAL) == ""
