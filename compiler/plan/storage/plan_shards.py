"""A plan in pieces small enough to be carried by a cluster's configuration, and back again.

A bundle is a ustar archive (POSIX.1-2017, pax) of the plan's files, plan.json first, then by name,
each with mode 0644 and neither owner nor time, compressed with bzip2 and cut into shards. The
archive is compressed in pieces of 900,000 bytes, one bzip2 stream each, so that several processors
can work on it; bzip2 reads streams one after the other as one. A slim bundle leaves out what can be
computed again from the rest (compiler/plan/storage/delivery.py). The bytes depend on the plan
alone.

`cat plan-* | bunzip2 | tar x` is the plan.
"""

from __future__ import annotations

import bz2
import hashlib
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NoReturn

from compiler.plan import format as form
from compiler.plan.format import REBUILT, Place, PlanError
from compiler.plan.parts import attached

SHARD_BYTES = 180_000
MAX_SHARDS = 1000
PIECE_BYTES = 900_000  # one block of bzip2 at its highest level
_ALL = (form.HEADER, *form.FILES)  # plan.json is the first
_SLIM = tuple(name for name in _ALL if name not in REBUILT)
_NAME = "plan-{:03}"
_PARALLEL_FROM = 4  # pieces; below it threads cost more than they save


def pack(files: Mapping[str, bytes], *, slim: bool = False) -> dict[str, bytes]:
    """The shards of the plan with these files, by name, in order.

    `files` is what compiler.plan.writer.encode() returns. Raises PlanError when they are too many.
    """
    archive = attached.tar({name: files[name] for name in (_SLIM if slim else _ALL)})
    pieces = [archive[at : at + PIECE_BYTES] for at in range(0, len(archive), PIECE_BYTES)]
    data = b"".join(_compressed(pieces))
    count = -(-len(data) // SHARD_BYTES)
    if count > MAX_SHARDS:
        hint = "" if slim else "; --slim leaves out what agents can compute again"
        raise PlanError(
            form.HEADER,
            f"the plan has {len(data)} bytes when compressed, more than {MAX_SHARDS} shards of "
            f"{SHARD_BYTES} bytes hold",
            f"split the experiment{hint}",
        )
    return named([data[i * SHARD_BYTES : (i + 1) * SHARD_BYTES] for i in range(count)])


def named(shards: Sequence[bytes]) -> dict[str, bytes]:
    """Shards in their order by their names, as unpack() takes them."""
    return {_NAME.format(number): data for number, data in enumerate(shards)}


def _compressed(pieces: Sequence[bytes]) -> list[bytes]:
    """One bzip2 stream for each piece."""
    if len(pieces) < _PARALLEL_FROM:
        return [bz2.compress(piece) for piece in pieces]
    from concurrent.futures import ThreadPoolExecutor  # slow to import, for large plans only

    with ThreadPoolExecutor() as pool:  # bz2 works without the interpreter's lock
        return list(pool.map(bz2.compress, pieces))


def unpack(shards: Mapping[str, bytes], digest: str) -> dict[str, bytes]:
    """The files of the plan with this digest (SHA-256 of its plan.json) out of its shards.

    Without those of REBUILT if the bundle is slim. Raises PlanError unless every shard is there and
    every file is, byte for byte, what the digest stands for; whether that is a plan that this
    release can use is for the reader to judge. Never takes more memory than the plan says it needs.
    """
    pieces = _decompressed(b"".join(_in_order(shards)))
    archive = b"".join(islice(pieces, 2))  # more than the largest header
    header = _header(archive, digest)
    contents = _contents(header)
    sizes = {name: size for name, (size, _) in contents.items()}
    most = _archive_size(sizes)
    archive += b"".join(islice(pieces, max(0, -(-most // PIECE_BYTES) - 2)))
    if next(pieces, None) is not None or len(archive) > most:
        _fail("it holds more than the plan")
    names = _ALL if archive.startswith(REBUILT[0].encode() + b"\0", _after(sizes)) else _SLIM
    files = _members(archive, {name: sizes[name] for name in names})
    for name, data in files.items():
        if hashlib.sha256(data).hexdigest() != contents[name][1]:
            _fail(f"{name} is not the plan's: its SHA-256 is another")
    return files


def _fail(what: str) -> NoReturn:
    raise PlanError("bundle", what, "render and apply the manifests again")


def _in_order(shards: Mapping[str, bytes]) -> list[bytes]:
    names = [_NAME.format(number) for number in range(len(shards))]
    for name in names:
        if name not in shards:
            strange = sorted(shards.keys() - set(names))
            _fail(f"{name} is missing" + (f" beside {strange[-1]!r:.60}" if strange else ""))
    if not names:
        _fail("it has no shards")
    for name in names[:-1]:
        if len(shards[name]) != SHARD_BYTES:
            _fail(f"{name} has {len(shards[name])} bytes instead of {SHARD_BYTES}")
    return [shards[name] for name in names]


def _decompressed(data: bytes) -> Iterator[bytes]:
    """The pieces, one at a time: all have PIECE_BYTES but the last."""
    size = PIECE_BYTES
    while data:
        if size != PIECE_BYTES:
            _fail("it is not cut as tstorm cuts it")
        stream = bz2.BZ2Decompressor()
        try:
            piece = stream.decompress(data, PIECE_BYTES + 1)
        except OSError:
            _fail("it was damaged: bzip2 cannot read it")
        if len(piece) > PIECE_BYTES:
            _fail("it is not cut as tstorm cuts it")
        if not stream.eof:
            _fail("it is truncated")
        size = len(piece)
        yield piece
        data = stream.unused_data


def _header(archive: bytes, digest: str) -> bytes:
    """plan.json, the first file. Nothing after it is looked at before it is known to be right."""
    try:
        member = tarfile.TarInfo.frombuf(archive[: tarfile.BLOCKSIZE], "ascii", "strict")
    except (tarfile.HeaderError, ValueError):
        _fail("it is not an archive")
    if member.name != form.HEADER or not 0 < member.size <= form.MAX_HEADER_BYTES:
        _fail(f"it does not begin with {form.HEADER}")
    header = archive[tarfile.BLOCKSIZE : tarfile.BLOCKSIZE + member.size]
    found = hashlib.sha256(header).hexdigest()
    if found != digest:
        _fail(f"it holds the plan {found:.12} instead of {digest:.12}")
    return header


def _contents(header: bytes) -> dict[str, tuple[int, str]]:
    """Size and SHA-256 of every file, from plan.json."""
    place = Place(form.HEADER, 1)
    value = form.parse(header, form.HEADER, 1)
    entries = value.get("files") if type(value) is dict else None
    found = {form.HEADER: (len(header), hashlib.sha256(header).hexdigest())}
    for name, entry in zip(form.FILES, place.fields(entries, *form.FILES), strict=True):
        digest, size = place.fields(entry, "sha256", "size")
        found[name] = (
            place.integer(size, f"size of {name}", 0, form.MAX_FILE_BYTES),
            place.text(digest, "sha256"),
        )
    return {name: found[name] for name in _ALL}


def _padded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _after(sizes: Mapping[str, int]) -> int:
    """Where the first file that a slim bundle leaves out begins in a whole one."""
    before = [size for name, size in sizes.items() if name < REBUILT[0] or name == form.HEADER]
    return sum(tarfile.BLOCKSIZE + _padded(size, tarfile.BLOCKSIZE) for size in before)


def _archive_size(sizes: Mapping[str, int]) -> int:
    """Of the archive of files of these sizes: a block of head each, two blocks of end, records."""
    block = tarfile.BLOCKSIZE
    blocks = sum(block + _padded(size, block) for size in sizes.values())
    return _padded(blocks + 2 * block, tarfile.RECORDSIZE)


def _members(archive: bytes, sizes: Mapping[str, int]) -> dict[str, bytes]:
    """The files of these sizes; everything else in the archive must be as _archive() makes it."""
    files = {}
    at = 0
    for name, size in sizes.items():
        at += tarfile.BLOCKSIZE
        files[name] = archive[at : at + size]
        at += _padded(size, tarfile.BLOCKSIZE)
    if attached.tar(files) != archive:
        _fail("it is truncated, or its archive is not as tstorm writes it")
    return files
