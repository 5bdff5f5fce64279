"""From what the user named (a plan, a run, a TDL file, `-`) to text, a compilation or a plan.

Diagnostics are printed here, once. Every failure ends as CommandError with a message that names
the file; nothing else in `tstorm` reads input files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compiler.plan.collector import collector_paused
from tdl.bounds import MAX_FILE_BYTES
from tstorm import output
from tstorm.exit_codes import CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.feasibility.command_checks import Finder
    from compiler.feasibility.warnings import Machines
    from compiler.pipeline import Compilation
    from compiler.plan.reader import Plan
    from compiler.sources import SourceFolder, Sources
    from tdl.diagnostics import Diagnostic

STDIN = "-"
MAX_SHOWN = 20  # diagnostics that a text shows unless --max-errors says otherwise
_ENOUGH = MAX_FILE_BYTES + 1
PLAN_HEADER = "plan.json"
PLAN_SOURCE = "source.tdl"
RUN_MANIFEST = "manifest.json"  # as in runtime.rundir.rundir, which reading a text need not import
RUN_PLAN = "plan"
RUN_PLANNED = "planned"


def source_name(file: str) -> str:
    """What diagnostics call `file`."""
    return "stdin.tdl" if file == STDIN else file


class _Remembered:
    """Sources that keep the included texts, to show lines of them.

    Not those of files that are not below the folder of the text that was named: whoever can write
    it could have any file shown, and others may read what a command prints (a log of CI).
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.files = sources.files
        self.trace = sources.trace
        self.delays = sources.delays
        self.translated = sources.translated
        self.mobility = sources.mobility
        self.texts: dict[str, bytes] = {}
        self._hidden: set[str] = set()

    def text(self, path: str) -> bytes:
        from compiler.sources import SourceFolder

        found = self._sources.text(path)
        if isinstance(self._sources, SourceFolder) and self._sources.is_outside(path):
            self._hidden.add(path)
        else:
            self.texts[path] = found
        return found

    def fit(self, found: Sequence[Diagnostic], file: str) -> Sequence[Diagnostic]:
        """Without words of files that are not shown."""
        return [self._fit(one, file) if one.span.file in self._hidden else one for one in found]

    def _fit(self, one: Diagnostic, file: str) -> Diagnostic:
        from tdl.codes.catalogue import CODES
        from tdl.presentation import named

        message = f"{CODES[one.code].title} (not shown: the file is not below {folder_of(file)})"
        hint = f"'tstorm check {named(source_name(file), one.span.file)}' shows lines of it"
        return replace(one, message=message, hint=hint, span=replace(one.span, note=""))


def included(plan: Plan) -> Mapping[str, bytes]:
    """The texts that a plan's source includes, by the names that events and spans have for them."""
    from compiler.sources import path_of

    return {path_of(name): data for name, data in plan.attached.includes.items()}


def folder_of(file: str) -> Path:
    """Where relative names in a text begin: beside the file, for standard input right here."""
    return Path.cwd() if file == STDIN else Path(file).absolute().parent


def read_source(file: str) -> bytes:
    """The bytes of a TDL file or of standard input, or so many that it is too large (TS0030)."""
    if file == STDIN:
        if sys.stdin is None:
            raise CommandError("error: reading standard input: it is closed")
        return sys.stdin.buffer.read(_ENOUGH)
    path = Path(file)
    try:
        with path.open("rb") as stream:
            return stream.read(_ENOUGH)
    except IsADirectoryError:
        raise CommandError(f"error: {file} {_what_else(path)}") from None
    except OSError as error:
        raise CommandError(f"error: reading {file}: {error.strerror}") from error


def _must_be_readable(file: str) -> None:
    """What cannot be read is told as ever; whoever includes it reads it."""
    from tdl.preprocess import includes

    path = Path(includes.file_of(file))
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        raise CommandError(f"error: reading {path}: {error.strerror}") from error
    if path.is_dir():
        raise CommandError(f"error: {path} {_what_else(path)}")


def is_foreign(file: str) -> bool:
    """Whether another tool has written it, by its name."""
    from tdl.preprocess import includes

    return includes.is_foreign(file) and not Path(file).is_dir()


def sources_beside(file: str) -> SourceFolder:
    """The files beside a text, those among them that are programs run confined."""
    from compiler.sources import SourceFolder

    return SourceFolder(folder_of(file), _load_topology)


def _load_topology(file: Path, choice: str) -> bytes:
    """Most experiments have none, and it takes half of `runtime`."""
    from tstorm.topologies.load_topology import load_topology

    return load_topology(file, choice)


def read_experiment(file: str, tdl: str | None = None, more: Sequence[str] = ()) -> bytes:
    """The text of an experiment: of a TDL file, or one that includes the file of another tool, with
    those of the same tool that are merged over it (`more`), and then a TDL file beside it."""
    if not is_foreign(file):
        if tdl is not None or more:
            option = "--tdl" if tdl is not None else "--file"
            message = f"{file} is no Compose file: a TDL file has include for others"
            raise click.BadParameter(message, param_hint=f"'{option}'")
        return read_source(file)
    for one in (file, *more, *([] if tdl is None else [tdl])):
        _must_be_readable(one)
    lines = [_including(file, (file, *more))]
    if tdl is not None:
        lines.append(_including(file, (tdl,)))
    return "".join(lines).encode()


def _including(file: str, names: Sequence[str]) -> str:
    """An `include` of files, by their paths from the folder of `file`."""
    from tdl.formatter import quoted

    folder = folder_of(file)
    paths = (os.path.relpath(Path(name).absolute(), folder) for name in names)
    return " ".join(("include", *(quoted(path).replace("$", "\\$") for path in paths))) + "\n"


def _what_else(directory: Path) -> str:
    """What a directory is that was given for a TDL file."""
    from tstorm.campaign.points import is_campaign

    plan = recorded_plan(str(directory))
    if is_campaign(directory):
        return "is a campaign\nhint: name one of its runs; tstorm inspect shows them all"
    if plan is None:
        return f"is a directory without {PLAN_HEADER}: neither a plan nor a TDL file"
    kind = "plan" if plan == directory else "run"
    return f"is a {kind}, not a TDL file; its source is {plan / PLAN_SOURCE}"


def show(
    found: Sequence[Diagnostic],
    file: str,
    raw: bytes,
    form: str = "text",
    most: int | None = None,
    includes: Mapping[str, bytes] | None = None,
) -> None:
    """Prints diagnostics: text on stderr, JSON and SARIF on stdout.

    At most so many, 0 for all; None: what is usual, which for programs is all of them. `includes`
    are the texts that `raw` includes.
    """
    from tdl import presentation

    text = raw.decode("utf-8", errors="replace")
    name = source_name(file)
    if form != "text":
        render = {"json": presentation.render_json, "sarif": presentation.render_sarif}[form]
        click.echo(render(presentation.first(found, most or 0), name, text), nl=False)
    elif found:
        coloured = output.colour(sys.stderr)
        shown = presentation.first(found, MAX_SHOWN if most is None else most)
        said = presentation.render_text(shown, name, text, includes=includes or {}, colour=coloured)
        more = presentation.rest(found, shown)
        with output.kept_going(sys.stderr):  # whoever reads them or not, a run goes on
            click.echo(said, nl=False, err=True)
            if more:
                click.echo(f"\nand {more}; 'tstorm check --max-errors 0' shows all", err=True)


def _judged(found: Sequence[Diagnostic], strict: bool) -> Sequence[Diagnostic]:
    """The diagnostics with the severity that they have on this command line."""
    from tdl.diagnostics import Severity

    return [replace(one, severity=Severity.ERROR) for one in found] if strict else found


def compile_text(
    raw: bytes,
    file: str,
    seed: int | None,
    *,
    strict: bool = False,
    form: str = "text",
    machines: Machines | None = None,
    most: int | None = None,
    recorded: Plan | None = None,
    params: Mapping[str, str] | None = None,
    told: set[Diagnostic] | None = None,
    warn: bool = True,
) -> Compilation:
    """Compiles and prints what there is to say. Errors (and with `strict`, warnings) end it.

    Warnings in `told` were printed before and are not again; those that are come into it. Not
    `warn`: none is.
    Files that the text names are beside `file`, or those of the `recorded` plan that it is from;
    its parameters have the values of that plan, unless `params` has others.
    """
    from compiler.feasibility.warnings import ANY
    from compiler.pipeline import UnknownParamError, compile_source
    from compiler.sources import RecordedFiles
    from tdl.diagnostics import TdlError

    sources = _Remembered(sources_beside(file) if recorded is None else RecordedFiles(recorded))
    try:
        with plan_errors_shown(), collector_paused():
            compilation = compile_source(
                raw,
                filename=source_name(file),
                seed=seed,
                machines=machines or ANY,
                sources=sources,
                params={**(recorded.params if recorded else {}), **(params or {})},
            )
    except UnknownParamError as unknown:
        raise _no_param(unknown.name, unknown.known, file) from None
    except TdlError as error:
        said = sources.fit(_judged(error.diagnostics, strict), file)
        show(said, file, raw, form, most, sources.texts)
        raise CommandError from None
    told = set() if told is None else told
    news = [one for one in compilation.diagnostics if one not in told]
    told.update(news)
    if warn:
        show(sources.fit(_judged(news, strict), file), file, raw, form, most, sources.texts)
    if strict and compilation.diagnostics:
        from tdl.presentation import summary

        raise CommandError(f"error: {summary(compilation.diagnostics)}, and --strict is on")
    return compilation


def _no_param(name: str, known: Sequence[str], file: str) -> click.BadParameter:
    from tdl.suggest import did_you_mean

    hint = did_you_mean(name, known) or f"it has {', '.join(known[:10])}" if known else ""
    hint = hint or f"write `param {name} = VALUE` in it"
    message = f"{source_name(file)} has no parameter '{name}': {hint}"
    return click.BadParameter(message, param_hint="'--param'")


def show_in_cluster(plan: Plan, source: str, *, refuse: bool = False) -> None:
    """Prints what comes back late on Kubernetes (TS0922), as errors that end it with `refuse`, and
    which figures are not measured there.

    `source` is what the user called the plan.
    """
    from compiler.feasibility import rejoins
    from runtime.expectations import kept_files, measured_figures

    for why in (measured_figures.not_in_cluster(plan), kept_files.not_in_cluster(plan)):
        if why:
            output.note(f"note: {why}")
    recorded = recorded_plan(source)
    file = source if recorded is None else str(recorded / plan.source_name)
    found = _judged(rejoins.of_plan(plan), refuse)
    show(found, file, plan.source, includes=included(plan))
    if refuse and found:
        from tdl.presentation import summary

        raise CommandError(f"error: {summary(found)}")


def format_source(file: str, raw: bytes) -> str:
    """The canonical form of a TDL text. Ends with its diagnostics if it has a syntax error."""
    from tdl.diagnostics import TdlError
    from tdl.text_layout import format_text

    try:
        return format_text(raw)
    except TdlError as error:
        show(error.diagnostics, file, raw)
        raise CommandError from None


def write_plan(
    compilation: Compilation, directory: Path, beside: Mapping[str, bytes] | None = None
) -> str:
    """Writes the plan, whole or not at all; returns its digest. `beside`: rendered manifests."""
    from compiler.pipeline import write

    with plan_errors_shown():
        return write(compilation, directory, beside)


@dataclass(frozen=True, slots=True)
class PlanToRun:
    plan: Plan
    name: str  # what a run of it is called after
    source_name: str  # what messages call its text


@contextmanager
def plan_errors_shown(source: str = "") -> Iterator[None]:
    """Turns a PlanError inside into the command's end. `source`: what the user called the plan."""
    from compiler.plan.format import PlanError

    try:
        yield
    except PlanError as error:
        text = str(error)
        known = not source or text.startswith(f"{source.rstrip(os.sep)}{os.sep}")
        said = output.visible(text if known else f"{source}: {text}")
        raise CommandError(f"error: {said}") from error


def recorded_plan(source: str) -> Path | None:
    """The plan directory that `source` is or, as a run directory, contains; None for a text."""
    directory = Path(source)
    if is_run(source):
        return directory / RUN_PLAN
    with _reading(source):
        return directory if (directory / PLAN_HEADER).is_file() else None


def _plan_before(source: str) -> Path | None:
    """With which a run began; nobody has done anything to it by hand."""
    recorded = recorded_plan(source)
    planned = Path(source) / RUN_PLANNED
    return planned if recorded and is_run(source) and planned.is_dir() else recorded


def is_run(source: str) -> bool:
    """Whether `source` is the directory of a run."""
    with _reading(source), suppress(FileNotFoundError, NotADirectoryError):
        (Path(source) / RUN_MANIFEST).lstat()
        return True
    return False


@contextmanager
def _reading(source: str) -> Iterator[None]:
    """A missing file is none; an error is a directory that may not be entered."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"error: reading {source}: {error.strerror}") from error


def load_plan(source: str, seed: int | None, params: Mapping[str, str] | None = None) -> Plan:
    """The plan of a plan directory, a run or a TDL text.

    Another seed than its own, or another value of a parameter, compiles it again.
    """
    directory = recorded_plan(source)
    if directory is None:
        return compile_text(read_experiment(source), source, seed, params=params).plan
    from compiler.plan.reader import read_plan

    with plan_errors_shown(source):
        plan = read_plan(directory, lazy=True)
        if seed in (None, plan.seed) and not _changes(plan, params):
            return plan
        name = str(directory / plan.source_name)
        seed = plan.seed if seed is None else seed
        return compile_text(plan.source, name, seed, recorded=plan, params=params).plan


def _changes(plan: Plan, params: Mapping[str, str] | None) -> bool:
    """Whether these values are not those that the plan has."""
    return any(plan.params.get(name) != value for name, value in (params or {}).items())


def experiment_name(source: str) -> str:
    """What results of `source` are named after: a file or plan without its ending, or a run."""
    from tdl.preprocess import includes

    file = includes.file_of(source_name(source))
    return Path(os.path.abspath(file)).stem  # noqa: PTH100 (folds `..`)


def plan_to_run(
    source: str,
    seed: int | None,
    *,
    budget_bps: int | None = None,
    pace: int | None = None,
    find: Finder | None = None,
    params: Mapping[str, str] | None = None,
    told: set[Diagnostic] | None = None,
    warn: bool = True,
    again: bool = False,
    tdl: str | None = None,
    more: Sequence[str] = (),
    reseeds: Mapping[str, int] | None = None,
) -> PlanToRun:
    """The plan of `source`, read and checked whole, or compiled.

    With a seed or values of parameters, what was recorded is compiled again from its source.
    `budget_bps`, `pace` and `find` (who knows the programs of this machine) are for the warnings of
    compiling; a plan that is not compiled has none to give. `told`, `warn`: see compile_text; `tdl`
    and `more`: see read_experiment. `again`: what a run was told by its `when` is to be found out
    again, so that it begins with the same plan. `reseeds`: moments in ns from which on other seeds
    draw, if any are asked for (compiler.draws.with_reseeds).
    """
    recorded = _plan_before(source) if again else recorded_plan(source)
    plan = None
    if recorded is None:
        file, raw = source_name(source), read_experiment(source, tdl, more)
    else:
        from compiler.plan.reader import read_plan

        if tdl is not None or more:
            raise click.UsageError(f"{source} is compiled already: --tdl and --file are for files.")
        if seed is None and budget_bps is not None:
            message = f"{source} is compiled already; 'tstorm check --budget' its source"
            raise click.BadParameter(message, param_hint="'--budget'")
        with plan_errors_shown():
            plan = read_plan(recorded)
            file, raw = str(recorded / plan.source_name), plan.source
        if seed is None and not _changes(plan, params) and not reseeds:
            return PlanToRun(plan, recorded.resolve().name.removesuffix(".plan"), file)
        seed = plan.seed if seed is None else seed
    from compiler.feasibility.warnings import Machines

    machines = Machines(budget_bps=budget_bps, pace=pace or 1, find=find)
    told = set() if told is None else told
    compilation = compile_text(
        raw, file, seed, machines=machines, recorded=plan, params=params, told=told, warn=warn
    )
    if reseeds:
        from compiler.draws import with_reseeds

        before = compilation
        raw = with_reseeds(raw, {int(at_ns): one for at_ns, one in reseeds.items()})
        compilation = compile_text(
            raw, file, seed, machines=machines, recorded=plan, params=params, told=told, warn=warn
        )
        _check_branch(before.plan, compilation.plan)
    return PlanToRun(compilation.plan, experiment_name(source), file)


def _check_branch(plan: Plan, branch: Plan) -> None:
    """What is made before the start is the same. RunError."""
    from runtime.errors import RunError

    joining = [{one.target for one in two.events if one.kind == "join"} for two in (plan, branch)]
    others = sorted(joining[0] ^ joining[1])
    if plan.topology != branch.topology or others:
        names = f" ({', '.join(others[:3])})" if others else ""
        raise RunError(
            f"with these draws other instances join{names}: they are made before the start, which "
            "would not be the same",
            "use another seed for --reseed, or have all of them there at first",
        )


def translated(file: str, more: Sequence[str], params: Mapping[str, str]) -> str:
    """What files of another tool say, as the text of a TDL file; ends with what is wrong there."""
    from tdl.diagnostics import Severity
    from tdl.formats import as_tdl
    from tdl.parser import parse_partial
    from tdl.presentation import NOTHING

    raw = read_experiment(file, more=more)
    sources = _Remembered(sources_beside(file))
    partial = parse_partial(raw, sources, params)
    unknown = next((name for name in params if name not in partial.params), None)
    if unknown is not None and not partial.failed:
        raise _no_param(unknown, tuple(partial.params), file)
    show(sources.fit(partial.diagnostics, file), file, raw, includes=sources.texts or NOTHING)
    if any(one.severity is Severity.ERROR for one in partial.diagnostics):
        raise CommandError
    return "".join(as_tdl.text(found) for found in partial.translations)
