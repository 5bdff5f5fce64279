"""Where the files that a source names come from. The compiler itself looks at no file system.

`files=` of a service names files and folders, `include` texts, `trace=` what a link follows and
`dist=` what its jitter is drawn from; `Sources` gives what they hold.
`Folder` reads them beside the TDL file, `Recorded` takes them from the plan of an earlier
compilation, `NOWHERE` has none. What is wrong with a name goes to the sink, at its place.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from compiler import delay_files, trace_files
from compiler.mobility.tracks import BadMotion, Tracks, sample
from compiler.plan.format import MAX_ATTACHED_BYTES, PlanError
from compiler.plan.parts import delay_tables, motion, traces
from compiler.plan.parts.delay_tables import DelayTable
from compiler.plan.parts.motion import Motion
from compiler.plan.reader import Plan
from compiler.trace_files import MOST_BYTES, BadTrace
from tdl import ast
from tdl.bounds import MAX_FILE_BYTES
from tdl.diagnostics import Sink
from tdl.preprocess.includes import NO_TEXTS, NoTextError, Reader, described
from tdl.preprocess.translated import Translation, Variable
from tdl.suggest import did_you_mean

T = TypeVar("T")
MAX_FILES = 10_000  # of one service
_PASSED_OVER = "__pycache__"  # what running a Python program leaves behind
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not be waited for
EXECUTABLE, PLAIN = 0o755, 0o644
NO_OTHERS = "an experiment that has begun has the files that its text names, and no others"


@dataclass(frozen=True, slots=True)
class Content:
    """A file that a service gets: where, and what it holds."""

    path: str
    mode: int  # EXECUTABLE or PLAIN
    data: bytes
    span: ast.Span


Moving = tuple[list[str], Motion]  # names of nodes, and where they are
# What a program describes (tdl.preprocess.includes.described), from its file. NoTextError
LoadProgram = Callable[[Path, str], bytes]


class Sources(Protocol):
    def files(self, service: ast.ServiceStatement, sink: Sink) -> list[Content]:
        """What `files=` of a service stands for, in any order."""

    def text(self, path: str) -> bytes:
        """An included text, as tdl.preprocess.includes.Texts has it. Raises NoTextError."""

    def translated(
        self, paths: Sequence[str], variable: Variable, read: Reader, sink: Sink
    ) -> Translation | None:
        """What files of another tool say, as tdl.preprocess.includes.Texts has it."""

    def trace(self, wanted: ast.TraceFile, sink: Sink) -> traces.Trace | None:
        """What a link is to follow; None after a report."""

    def delays(self, wanted: ast.DelayFile, sink: Sink) -> DelayTable | None:
        """What a jitter is drawn from; None after a report."""

    def mobility(self, wanted: ast.Mobility, sink: Sink) -> Moving | None:
        """Where nodes are, and what links have by distance; None after a report."""


class _Nowhere:
    def files(self, service: ast.ServiceStatement, sink: Sink) -> list[Content]:
        for item in service.files:
            _no_folder("TS0133", item, sink)
        return []

    def text(self, path: str) -> bytes:
        return NO_TEXTS.text(path)

    def translated(
        self, paths: Sequence[str], variable: Variable, read: Reader, sink: Sink
    ) -> Translation | None:
        return NO_TEXTS.translated(paths, variable, read, sink)

    def trace(self, wanted: ast.TraceFile, sink: Sink) -> traces.Trace | None:
        _no_folder("TS0171", wanted, sink)
        return None

    def delays(self, wanted: ast.DelayFile, sink: Sink) -> DelayTable | None:
        _no_folder("TS0178", wanted, sink)
        return None

    def mobility(self, wanted: ast.Mobility, sink: Sink) -> Moving | None:
        _no_folder("TS0190", wanted, sink)
        return None


_Named = ast.FileItem | ast.TraceFile | ast.DelayFile | ast.Mobility


def _no_folder(code: str, named: _Named, sink: Sink) -> None:
    message = f"{named.source!r} cannot be read: this text has no folder"
    sink.error(code, named.span, message, "give a TDL file, beside which the files are")


NOWHERE: Sources = _Nowhere()


class RecordedFiles:
    """The files that a plan has already, by service."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def files(self, service: ast.ServiceStatement, sink: Sink) -> list[Content]:  # noqa: ARG002
        """Raises PlanError if the plan's text names files and the plan has none."""
        found = [one for one in self._plan.topology.services if one.name == service.name.text]
        if not found or bool(service.files) != bool(found[0].files):
            raise PlanError(self._plan.source_name, f"service {service.name.text} is another")
        contents = self._plan.attached.contents
        return [
            Content(file.path, file.mode, contents[file.digest], service.span)
            for file in found[0].files
        ]

    def text(self, path: str) -> bytes:
        known = self._plan.attached.includes.get(member(path))
        if known is None:
            raise NoTextError(f"the plan has no {path!r}", "compile the source again")
        return known

    def translated(
        self, paths: Sequence[str], variable: Variable, read: Reader, sink: Sink
    ) -> Translation | None:
        """The plan has the values of variables, and not the files that they were from."""
        from tdl.formats.readers import translate

        return translate(paths, variable, read, self.text, sink)

    def trace(self, wanted: ast.TraceFile, sink: Sink) -> traces.Trace | None:  # noqa: ARG002
        """Raises PlanError if the plan has none of this name."""
        for one in self._plan.topology.traces:
            if one.name == wanted.source:
                return traces.decode(self._plan.attached.traces[one.digest])
        raise self._lacks(wanted.source)

    def delays(self, wanted: ast.DelayFile, sink: Sink) -> DelayTable | None:  # noqa: ARG002
        """Raises PlanError if the plan has none of this name."""
        for one in self._plan.topology.delays:
            if one.name == wanted.source:
                return delay_tables.decode(self._plan.attached.delays[one.digest])
        raise self._lacks(wanted.source)

    def mobility(self, wanted: ast.Mobility, sink: Sink) -> Moving | None:  # noqa: ARG002
        """Raises PlanError if the plan has no such movement."""
        for one in self._plan.topology.mobility:
            if one.name == wanted.source:
                names = [self._plan.topology.nodes[node].name for node in one.nodes]
                return names, motion.decode(self._plan.attached.motions[one.digest])
        raise self._lacks(wanted.source)

    def _lacks(self, source: str) -> PlanError:
        """Of a file: the text of a plan names it, or an action on a run does."""
        return PlanError(self._plan.source_name, f"the plan has no {source!r}", NO_OTHERS)


def member(path: str) -> str:
    """What a plan calls an included text (docs/plan.md): `..` may not stand in archives."""
    parts = (part.replace("%", "%25") for part in path.split("/"))
    return "/".join("%2E%2E" if part == ".." else part for part in parts)


def path_of(name: str) -> str:
    """The path of an included text from what a plan calls it."""
    parts = (".." if part == "%2E%2E" else part.replace("%25", "%") for part in name.split("/"))
    return "/".join(parts)


class _NotOnDiskError(ValueError):
    """A pipe, a device, or what a kernel makes up."""


class SourceFolder:
    """Files of the machine; relative names begin in the folder of the TDL file."""

    def __init__(self, folder: Path, load: LoadProgram | None = None) -> None:
        self._folder = folder
        self._load = load
        self._left = MAX_ATTACHED_BYTES

    def text(self, path: str) -> bytes:
        file, choice = described(path)
        if file != path:
            return self._described(file, choice)
        place = self._folder / path
        try:
            with os.fdopen(os.open(place, _OPEN), "rb") as stream:
                if _can_be_read(stream.fileno()):
                    return stream.read(MAX_FILE_BYTES + 1)
            raise NoTextError(f"{path!r} is not a file")
        except FileNotFoundError:
            raise NoTextError(f"there is no file {path!r}", self._near(place)) from None
        except (OSError, ValueError) as error:
            raise NoTextError(_unread(path, error)) from None

    def _described(self, file: str, choice: str) -> bytes:
        if self.is_outside(file):
            hint = "put it beside the text, or below: no program from elsewhere is run"
            raise NoTextError(f"{file!r} is a program outside of this folder", hint)
        if self._load is None:
            raise NoTextError(f"{file!r} is a program, and nothing runs it here")
        return self._load(self._folder / file, choice)

    def translated(
        self, paths: Sequence[str], variable: Variable, read: Reader, sink: Sink
    ) -> Translation | None:
        from tdl.formats.readers import translate

        called = self._folder.resolve().name
        return translate(paths, variable, read, self.text, sink, called)

    def is_outside(self, path: str) -> bool:
        """Whether an included text is not below the folder, links followed."""
        return not (self._folder / path).resolve().is_relative_to(self._folder.resolve())

    def trace(self, wanted: ast.TraceFile, sink: Sink) -> traces.Trace | None:
        return self._parsed(wanted.source, wanted.span, trace_files.parse, "TS0171", sink)

    def delays(self, wanted: ast.DelayFile, sink: Sink) -> DelayTable | None:
        return self._parsed(wanted.source, wanted.span, delay_files.parse, "TS0178", sink)

    def mobility(self, wanted: ast.Mobility, sink: Sink) -> Moving | None:
        from compiler.mobility import distance_tables, motion_formats  # slow: six formats

        def sampled(data: bytes) -> tuple[Tracks, Motion]:
            tracks = motion_formats.tracks_of(data, wanted)
            return tracks, sample(tracks, wanted.every_ns)

        moves = self._parsed(
            wanted.source,
            wanted.place,
            sampled,
            "TS0190",
            sink,
            motion_formats.MOST_BYTES,
        )
        tables = [
            None if name is None else self._parsed(name, wanted.span, parse, "TS0190", sink)
            for name, parse in (
                (wanted.rate_file, distance_tables.rates),
                (wanted.loss_file, distance_tables.losses),
            )
        ]
        if moves is None or any(
            table is None and name is not None
            for table, name in zip(tables, (wanted.rate_file, wanted.loss_file), strict=True)
        ):
            return None
        tracks, found = moves
        for code, what, hint in tracks.warnings:
            sink.warning(code, wanted.place, f"{wanted.source!r}: {what}", hint)
        both: Any = {"rates": tables[0] or (), "losses": tables[1] or ()}
        return tracks.names, replace(found, **both)

    def _parsed(
        self,
        name: str,
        span: ast.Span,
        parse: Callable[[bytes], T],
        unread: str,
        sink: Sink,
        most: int = MOST_BYTES,
    ) -> T | None:
        """`unread`: the code where it cannot be read."""
        path = self._folder / name
        try:
            return parse(_steady(path, most))
        except FileNotFoundError:
            sink.error(unread, span, f"there is no file {name!r}", self._near(path))
        except IsADirectoryError:
            sink.error(unread, span, f"{name!r} is a folder", "name a file in it")
        except BadTrace as bad:
            place = f"line {bad.line} of {name!r}" if bad.line else repr(name)
            if isinstance(bad, BadMotion) and bad.column:
                place = f"line {bad.line}, column {bad.column} of {name!r}"
            sink.error(bad.code or unread, span, f"{place} {bad.why}", bad.hint or None)
        except _NotOnDiskError as error:
            hint = "copy what it gives to a file, and name that"
            sink.error(unread, span, _unread(name, error), hint)
        except (OSError, ValueError) as error:
            sink.error(unread, span, _unread(name, error), "name a file that can be read")
        return None

    def files(self, service: ast.ServiceStatement, sink: Sink) -> list[Content]:
        return [one for item in service.files for one in self._item(item, sink)]

    def _item(self, item: ast.FileItem, sink: Sink) -> list[Content]:
        path = self._folder / item.source
        try:
            if path.is_dir():
                return self._tree(item, path, sink)
            one = self._read(item, path, _target(item), sink)
            return [] if one is None else [one]
        except FileNotFoundError:
            sink.error("TS0133", item.span, f"there is no file {item.source!r}", self._near(path))
        except (OSError, ValueError) as error:
            sink.error("TS0133", item.span, _unread(item.source, error))
        return []

    def _near(self, path: Path) -> str:
        """What may have been meant."""
        try:
            names = sorted(one.name for one in path.parent.iterdir())[:MAX_FILES]
        except OSError:
            return f"there is no folder {path.parent}"
        return did_you_mean(path.name, names) or f"names begin in {self._folder}"

    def _tree(self, item: ast.FileItem, path: Path, sink: Sink) -> list[Content]:
        found: list[Content] = []
        target = _target(item)
        for name in _names(path):
            if len(found) == MAX_FILES:
                message = f"{item.source!r} holds more than {MAX_FILES:,} files"
                sink.error("TS0133", item.span, message, "name a smaller folder")
                break
            one = self._read(item, path / name, f"{target}/{name}", sink)
            if one is None:
                return []
            found.append(one)
        if not found:
            message = f"there is no file in the folder {item.source!r}"
            sink.error("TS0133", item.span, message, "leave it out, or put something in")
        return found

    def _read(self, item: ast.FileItem, path: Path, target: str, sink: Sink) -> Content | None:
        with os.fdopen(os.open(path, _OPEN), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not _can_be_read(stream.fileno()):
                hint = "only files and folders can be copied; mount= gives an instance others"
                sink.error("TS0133", item.span, f"{path} is not a file", hint)
                return None
            data = stream.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            message = f"all files together have more than {MAX_ATTACHED_BYTES >> 20} MiB"
            hint = "mount=HOST:PATH:ro gives instances what is too large to copy"
            sink.error("TS0134", item.span, message, hint)
            self._left = 0
            return None
        mode = EXECUTABLE if status.st_mode & stat.S_IXUSR else PLAIN
        return Content(target, mode, data, item.span)


def _unread(name: str, error: OSError | ValueError) -> str:
    return f"{name!r} cannot be read: {getattr(error, 'strerror', None) or error}"


def _steady(path: Path, most: int = MOST_BYTES) -> bytes:
    """Its bytes, of a file that nobody writes meanwhile."""
    with os.fdopen(os.open(path, _OPEN), "rb") as stream:
        before = os.fstat(stream.fileno())
        if stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError
        if not _can_be_read(stream.fileno()):
            raise _NotOnDiskError("it is no file on a disk")
        if before.st_size > most:
            why = f"has {before.st_size:,} bytes, more than {most >> 20} MiB"
            code = "TS0176" if most == MOST_BYTES else "TS0192"
            raise BadTrace(0, why, "cut it, or leave out what no run reaches", code)
        data = stream.read(most + 1)
        after = os.fstat(stream.fileno())
    if len(data) != before.st_size or after.st_mtime_ns != before.st_mtime_ns:
        raise BadTrace(0, "was changed while it was read", "try again", "")
    return data


def _can_be_read(file: int) -> bool:
    """Whether it is a file on a disk: pipes wait for somebody, and so do files that the kernel
    makes up, some of which give what they have once only (/proc/kmsg)."""
    place = Path(f"/proc/self/fd/{file}").readlink()
    is_made_up = any(place.is_relative_to(one) for one in ("/proc", "/sys"))
    return stat.S_ISREG(os.fstat(file).st_mode) and not is_made_up


def _names(folder: Path) -> Iterator[str]:
    """Of all files below a folder, relative to it, sorted. OSError where one cannot be listed."""

    def refuse(error: OSError) -> None:
        raise error

    names: list[str] = []
    for base, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if name != _PASSED_OVER]
        links = [name for name in folders if (Path(base) / name).is_symlink()]
        if links:
            raise ValueError(f"{Path(base) / links[0]} is a link to a folder")
        names += [(Path(base) / name).relative_to(folder).as_posix() for name in files]
    return iter(sorted(names))


def _target(item: ast.FileItem) -> str:
    """Where it goes: beside the program, under its own name, unless something else is said."""
    parts = [part for part in item.source.split("/") if part not in ("", ".")]
    if not item.target:
        outside = item.source.startswith("/") or ".." in parts
        return parts[-1] if outside else "/".join(parts)
    if item.target.endswith("/") and not item.source.endswith("/"):
        return f"{item.target}{parts[-1]}"
    return item.target.rstrip("/")
