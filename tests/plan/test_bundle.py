"""A plan in shards: the same bytes everywhere, back whole, and nothing else is taken for it."""

from __future__ import annotations

import bz2
import hashlib
import io
import os
import random
import sys
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.plan import format as form
from compiler.plan.format import REBUILT, PlanError
from compiler.plan.parts import attached
from compiler.plan.reader import decode
from compiler.plan.storage import plan_shards
from compiler.plan.storage.plan_shards import (
    PIECE_BYTES,
    SHARD_BYTES,
    pack,
    unpack,
)
from tests.cli.process import ended
from tests.plan.test_identity import ROOT, interpreter

Shards = dict[str, bytes]


def plan_of(parts: dict[str, bytes]) -> dict[str, bytes]:
    """The files of something whose header fits, whatever is in them."""
    files = {name: parts.get(name, b"") for name in form.FILES}
    header = {
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            for name, data in files.items()
        }
    }
    return {form.HEADER: form.canonical(header), **files}


def digest(files: dict[str, bytes]) -> str:
    return hashlib.sha256(files[form.HEADER]).hexdigest()


def noise(size: int, seed: int = 1) -> bytes:
    """What does not compress."""
    return random.Random(seed).randbytes(size)


SMALL = plan_of({form.SOURCE: b"seed 5\n", form.ROUTES: bytes(range(256))})
LARGE = plan_of({form.ROUTES: noise(700_000), form.SNAPSHOTS: b"x" * 3_000_000})


PINNED_SMALL = "f4dd0b809ee578a3"
PINNED_LARGE = "0988ad3a3d55308f"


@pytest.mark.parametrize("files", [SMALL, LARGE], ids=["small", "large"])
def test_back_whole(files: dict[str, bytes]) -> None:
    assert unpack(pack(files), digest(files)) == files


@pytest.mark.parametrize("files", [SMALL, LARGE], ids=["small", "large"])
def test_slim_leaves_out_what_can_be_computed(files: dict[str, bytes]) -> None:
    found = unpack(pack(files, slim=True), digest(files))
    assert found == {name: data for name, data in files.items() if name not in REBUILT}


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(form.FILES), st.binary(max_size=2000)), st.booleans())
def test_any_contents(parts: dict[str, bytes], slim: bool) -> None:
    files = plan_of(parts)
    found = unpack(pack(files, slim=slim), digest(files))
    assert {**found, **{name: files[name] for name in REBUILT}} == files
    assert slim != (form.ROUTES in found)


@pytest.mark.parametrize("at", [-1, 0, 1])
def test_sizes_around_a_piece(at: int) -> None:
    """The archive of this plan ends within 512 bytes of a piece's end; records are 10,240 bytes."""
    rest = len(attached.tar(plan_of({})))
    files = plan_of({form.SOURCE: b"a" * (PIECE_BYTES - rest + at * tarfile.RECORDSIZE)})
    assert unpack(pack(files), digest(files)) == files


def test_shards_are_named_in_order_and_small() -> None:
    shards = pack(LARGE)
    sizes = [len(data) for data in shards.values()]
    assert list(shards) == [f"plan-{number:03}" for number in range(len(shards))]
    assert len(shards) > 3
    assert set(sizes[:-1]) == {SHARD_BYTES}
    assert 0 < sizes[-1] <= SHARD_BYTES
    # kubectl apply keeps the object in an annotation, and annotations end at 262,144 bytes.
    assert SHARD_BYTES * 4 / 3 < 262_144 - 10_000


def test_too_many_shards_are_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_shards, "MAX_SHARDS", 3)
    with pytest.raises(PlanError, match=r"more than 3 shards of 180000 bytes hold.*--slim"):
        pack(LARGE)
    assert len(pack(LARGE, slim=True)) == 1
    monkeypatch.setattr(plan_shards, "MAX_SHARDS", 0)
    with pytest.raises(PlanError, match=r"split the experiment$"):
        pack(LARGE, slim=True)


def test_ordinary_tools_read_it(tmp_path: Path) -> None:
    for name, data in pack(LARGE).items():
        (tmp_path / name).write_bytes(data)
    data = b"".join(path.read_bytes() for path in sorted(tmp_path.iterdir()))
    with tarfile.open(fileobj=io.BytesIO(bz2.decompress(data))) as archive:
        members = archive.getmembers()
        assert [member.name for member in members] == [form.HEADER, *form.FILES]
        for member in members:
            assert (member.mode, member.uid, member.gid, member.mtime) == (0o644, 0, 0, 0)
            assert (member.uname, member.gname, member.isfile()) == ("", "", True)
            file = archive.extractfile(member)
            assert file is not None
            assert file.read() == LARGE[member.name]


def test_the_bytes_are_pinned() -> None:
    """bzip2's encoder has made the same bytes since 1.0: docs/dependencies.md counts on it."""
    found = {name: hashlib.sha256(data).hexdigest()[:16] for name, data in pack(SMALL).items()}
    assert found == {"plan-000": PINNED_SMALL}
    everything = hashlib.sha256(b"".join(pack(LARGE).values())).hexdigest()
    assert everything[:16] == PINNED_LARGE


PROGRAM = """
import hashlib
from compiler.plan.storage.plan_shards import pack
files = {"plan.json": b"{}\\n", "expectations.json": b"[]\\n", "figures.json": b"[]\\n",
         "files.tar": bytes(10240),
         "routes.bin": bytes(range(256)) * 20_000, "snapshots.jsonl": b"[]\\n" * 9,
         "source.tdl": b"seed 1\\n", "timeline.jsonl": b"", "topology.json": b"{}\\n"}
print(hashlib.sha256(b"".join(pack(files).values())).hexdigest())
"""


@cache
def packed_by(python: str, **surroundings: str) -> str:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **surroundings}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = ended([python, "-W", "error", "-c", PROGRAM], env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_python_versions_agree(version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"python{version} is not installed here")
    here = packed_by(sys.executable, PYTHONHASHSEED="1", TZ="Asia/Tokyo")
    assert packed_by(python, PYTHONHASHSEED="2", TZ="UTC", USER="somebody") == here


def without(name: str) -> Callable[[Shards], Shards]:
    return lambda shards: {key: data for key, data in shards.items() if key != name}


def changed(name: str, change: Callable[[bytes], bytes]) -> Callable[[Shards], Shards]:
    return lambda shards: {**shards, name: change(shards[name])}


def last(shards: Shards) -> str:
    return max(shards)


def flipped(data: bytes) -> bytes:
    return data[:100] + bytes([data[100] ^ 1]) + data[101:]


DAMAGE: dict[str, tuple[Callable[[Shards], Shards], str]] = {
    "nothing": (lambda _: {}, "it has no shards"),
    "the first is missing": (without("plan-000"), "plan-000 is missing"),
    "one in the middle is missing": (without("plan-001"), "plan-001 is missing"),
    "the last is missing": (lambda s: without(last(s))(s), "truncated"),
    "a strange one": (lambda s: {**without("plan-001")(s), "x": b""}, "plan-001 is missing beside"),
    "one more": (lambda s: {**s, f"plan-{len(s):03}": b"BZh9"}, "instead of 180000"),
    "a short one": (changed("plan-001", lambda d: d[:-1]), "plan-001 has 179999 bytes instead"),
    "the last is cut": (lambda s: changed(last(s), lambda d: d[:-1])(s), "truncated"),
    "the last is longer": (lambda s: changed(last(s), lambda d: d + b"!")(s), "not cut as"),
    "a bit was flipped": (changed("plan-000", flipped), "bzip2 cannot read it"),
    "two were exchanged": (
        lambda s: {**s, "plan-000": s["plan-001"], "plan-001": s["plan-000"]},
        "bzip2 cannot read it",
    ),
    "not bzip2": (changed("plan-000", lambda d: b"#" * len(d)), "bzip2 cannot read it"),
    "another plan": (lambda _: pack(SMALL), "it holds the plan"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named(name: str) -> None:
    damage, reason = DAMAGE[name]
    with pytest.raises(PlanError, match=reason) as caught:
        unpack(damage(pack(LARGE)), digest(LARGE))
    assert "render and apply the manifests again" in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_change_passes_as_the_plan(data: st.DataObject) -> None:
    """Either it is noticed or it changes nothing (bzip2 ends with bits without meaning)."""
    (shard,) = pack(SMALL).values()
    at = data.draw(st.integers(0, len(shard) - 1))
    cut = data.draw(st.integers(0, 8))
    instead = data.draw(st.binary(max_size=8))
    changed = {"plan-000": shard[:at] + instead + shard[at + cut :]}
    try:
        found = unpack(changed, digest(SMALL))
    except PlanError as error:
        assert error.what
    else:
        assert found == SMALL


def recompressed(archive: bytes, cut: int = PIECE_BYTES) -> Shards:
    data = b"".join(bz2.compress(archive[i : i + cut]) for i in range(0, len(archive), cut))
    return {f"plan-{i:03}": data[i * SHARD_BYTES : (i + 1) * SHARD_BYTES] for i in range(1)}


def archive_of(files: dict[str, bytes], **fields: object) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            for field, value in fields.items():
                setattr(member, field, value)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


EDITED = {**SMALL, form.SOURCE: b"seed 6\n"}
ORDERED = {name: SMALL[name] for name in (form.HEADER, *form.FILES)}
FORGERIES = {
    "edited": (archive_of({n: EDITED[n] for n in ORDERED}), "source.tdl is not the plan's"),
    "its size too": (archive_of({**ORDERED, form.SOURCE: b"seed 66\n"}), "not as tstorm writes it"),
    "another owner": (archive_of(ORDERED, uid=1), "not as tstorm writes it"),
    "another mode": (archive_of(ORDERED, mode=0o755), "not as tstorm writes it"),
    "a link": (archive_of(ORDERED, type=tarfile.SYMTYPE), "not as tstorm writes it"),
    "order": (archive_of(dict(reversed(ORDERED.items()))), "does not begin with plan.json"),
    "one more file": (archive_of({**ORDERED, "z": b"z" * 20_000}), "holds more than the plan"),
    "one too few": (archive_of(dict(list(ORDERED.items())[:-1])), "not as tstorm writes it"),
    "a path": (archive_of({"../plan.json": SMALL[form.HEADER]}), "does not begin with plan.json"),
    "no archive": (b"\xff" * 20_000, "not an archive"),
    "empty": (b"", "not an archive"),
    "only zeros": (bytes(10_240), "not an archive"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_named(name: str) -> None:
    archive, reason = FORGERIES[name]
    with pytest.raises(PlanError, match=reason):
        unpack(recompressed(archive) if archive else {"plan-000": bz2.compress(b"")}, digest(SMALL))


def test_another_cut_is_refused() -> None:
    with pytest.raises(PlanError, match="not cut as tstorm cuts it"):
        unpack(recompressed(archive_of(ORDERED), 5000), digest(SMALL))


def test_a_bomb_does_not_go_off() -> None:
    """A header that promises little, and gigabytes of zeros behind it."""
    piece = archive_of(ORDERED)
    piece += bytes(PIECE_BYTES - len(piece))
    data = bz2.compress(piece) + bz2.compress(bytes(PIECE_BYTES)) * 3000
    assert len(data) < SHARD_BYTES
    with pytest.raises(PlanError, match="holds more than the plan"):
        unpack({"plan-000": data}, digest(SMALL))
    single = bz2.compress(bytes(200_000_000))
    with pytest.raises(PlanError, match="not cut as tstorm cuts it"):
        unpack({"plan-000": single}, digest(SMALL))


def test_a_real_plan_is_readable_afterwards() -> None:
    from compiler.pipeline import compile_source

    source = (ROOT / "examples" / "listing1.tdl").read_bytes()
    files = dict(compile_source(source).files)
    plan = decode(unpack(pack(files), digest(files)), lazy=False)
    assert plan.digest == digest(files)
    assert {name: plan.raw(name) for name in files} == files


@pytest.mark.parametrize("name", ["churn", "listing1", "partition"])
def test_a_slim_bundle_is_made_whole_again(name: str) -> None:
    from compiler.pipeline import compile_source
    from compiler.plan.storage.delivery import complete

    files = dict(compile_source((ROOT / "examples" / f"{name}.tdl").read_bytes()).files)
    assert complete(unpack(pack(files, slim=True), digest(files))) == files
