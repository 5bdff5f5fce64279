"""What is done to an experiment while it runs: a longer plan, out of its plan and a text.

The text is TDL whose times may count from the moment of the action (`now`, `+5s`) and may be left
out (then it is `at now`). With its times written out it becomes one more text that the source
includes (compiler/plan/parts/action_texts.py), and all of it is compiled as ever: the action sees
the state that all before it has left, its draws are those of the run's seed and the number of the
action, and what is planned later sees what the action has changed. What is planned may also be
held, go on and be skipped (compiler/plan/run_clock.py). Whoever carries the plan out has to follow
the longer one from the moment on; until then both are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from compiler.expand.walk import LEFT_OUT
from compiler.phrases import declared_as, moment
from compiler.pipeline import Compilation, compile_source
from compiler.plan import run_clock
from compiler.plan.format import PlanError
from compiler.plan.parts import action_texts
from compiler.plan.parts.action_texts import Firing
from compiler.plan.parts.delay_tables import DelayTable
from compiler.plan.parts.expectations import DRIVERS
from compiler.plan.parts.traces import Trace
from compiler.plan.reader import Plan
from compiler.plan.run_clock import RunClock
from compiler.sources import NO_OTHERS, RecordedFiles
from tdl import ast, quantities, values
from tdl.diagnostics import Diagnostic, Severity, Sink, TdlError
from tdl.parser import Partial, parse_partial
from tdl.preprocess.includes import NoTextError
from tdl.preprocess.unroll import NO_PARAMS
from tdl.tokens.expectwords import is_name, selects
from tdl.tokens.patterns import STRING
from tdl.tokens.words import ACTIONS, STATEMENTS
from tdl.values import ValueProblem

MOST_BYTES = 32768  # of the text of an action
MOST_KEPT = 1000  # texts: with more the bounds of the language are looked at again

_TIMES = re.compile(r"\s*(?:at|from)\s+(\S+)(?:\s+to\s+(\S+))?")
_WORD = re.compile(r"\s*(\S*)")
_LOOP = re.compile(r"\s*for\b[^#{]*\{")  # and what it repeats, where that stands on its line
_NO_CODE = re.compile(rf"(?:{STRING})|#.*")  # in which a `\` continues nothing
_BARE_TIME = re.compile(r"\s*((now|\+?[0-9]\S*)(?:\s+to\s+(\S+))?)(?=\s+[^\s#])")
_NO_ACTIONS = "|".join(sorted({*STATEMENTS} - {"at", "for", "from"}))
_NO_ACTION = re.compile(rf"\s*({_NO_ACTIONS})(?![\w.-])")
_NO_WHEN = (
    "an action happens at a moment: it cannot wait until something is seen",
    "write the `when` into the text, and run that; or act now, without the `when`",
)
_NO_DECLARATION = (
    "an action changes a running experiment: it declares and expects nothing",
    "write it into the text, and run that",
)
_DIRECTIVE = (
    "#:"  # how the run's clock is told (compiler/plan/run_clock.py): no comment of an action
)


@dataclass(frozen=True, slots=True)
class _Edit:
    """`length` characters at `col` (from 0) have become `text`."""

    col: int
    length: int
    text: str


class TimedText:
    """The text of an action with its times written out, and the way back to places in it."""

    def __init__(self, text: str, now_ns: int) -> None:
        lines = action_texts.lines_of(text)
        self._edits: list[tuple[_Edit, ...]] = []
        for line, begins in zip(lines, _beginnings(lines), strict=True):
            self._edits.append(tuple(_edits(line, now_ns)) if begins else ())
        edited = zip(lines, self._edits, strict=True)
        self.text = "".join(f"{_edited(line, edits)}\n" for line, edits in edited)

    def place(self, line: int, col: int) -> tuple[int, int]:
        """Where it stands in the text as it was given; both count from 1."""
        at, moved = col - 1, 0
        for edit in self._edits[line - 1] if line <= len(self._edits) else ():
            begin = edit.col + moved
            if at < begin:
                break
            moved += len(edit.text) - edit.length
            if at < begin + len(edit.text):  # within what was written out
                return line, edit.col + 1
        return line, at - moved + 1

    def span(self, span: ast.Span) -> ast.Span:
        line, col = self.place(span.line, span.col)
        end_line, end_col = self.place(span.end_line, span.end_col)
        return span.over(line, col, end_line, max(end_col, col + 1))


def _beginnings(lines: Iterable[str]) -> Iterator[bool]:
    """Of each line, whether a statement begins there: none goes on, and none that is no action has
    it in its block."""
    begins, deep = True, 0
    for line in lines:
        yield begins and not deep
        code = _NO_CODE.sub("", line)
        if deep or (begins and _declares(line)):
            deep = max(deep + code.count("{") - code.count("}"), 0)
        begins = not code.rstrip(" \t").endswith("\\")


def _declares(line: str) -> bool:
    """Whether a statement that is no action begins the line."""
    found = _WORD.match(line)
    assert found
    word, is_action = found[1], found[1] in ("at", "from", "for")
    return word in STATEMENTS and not is_action and not is_name(word, line, found.end())


def _edits(line: str, now_ns: int, begin: int = 0) -> Iterator[_Edit]:
    """Of the statement that begins there in the line."""
    found = _WORD.match(line, begin)
    assert found
    word = found[1]
    loop = _LOOP.match(line, begin)
    if loop is not None:
        yield from _edits(line, now_ns, loop.end())
    elif line.startswith(_DIRECTIVE):
        yield _Edit(1, 0, " ")
    elif word in ("at", "from"):
        times = _TIMES.match(line, begin)
        for group in (1, 2) if times else ():
            written = _written_out(times[group] or "", now_ns) if times else ""
            if times and written:
                yield _Edit(times.start(group), len(times[group]), written)
    elif (
        word
        and word[0] not in "#}"
        and (word not in STATEMENTS or is_name(word, line, found.end()))
    ):
        yield _Edit(found.start(1), 0, f"at {quantities.time(now_ns)} ")


def _written_out(time: str, now_ns: int) -> str:
    """'' for one that needs not be, or is none: then the parser says so."""
    if time == "now":
        return quantities.time(now_ns)
    if not time.startswith("+"):
        return ""
    try:
        return quantities.time(now_ns + values.time(time[1:]))
    except ValueProblem:
        return ""


def _edited(line: str, edits: Iterable[_Edit]) -> str:
    for edit in sorted(edits, key=lambda one: -one.col):
        line = line[: edit.col] + edit.text + line[edit.col + edit.length :]
    return line


class _Extended(RecordedFiles):
    """The files of a plan, and one text more."""

    def __init__(self, plan: Plan, name: str, text: bytes) -> None:
        super().__init__(plan)
        self._name, self._text = name, text

    def text(self, path: str) -> bytes:
        if path == self._name:
            return self._text
        try:
            return super().text(path)
        except NoTextError as error:
            raise NoTextError(error.message, NO_OTHERS) from None

    def trace(self, wanted: ast.TraceFile, sink: Sink) -> Trace | None:
        with self._placed(wanted):
            return super().trace(wanted, sink)

    def delays(self, wanted: ast.DelayFile, sink: Sink) -> DelayTable | None:
        with self._placed(wanted):
            return super().delays(wanted, sink)

    @contextmanager
    def _placed(self, wanted: ast.TraceFile | ast.DelayFile) -> Iterator[None]:
        """A file that the plan lacks is an error of the action, if that is what names it: the only
        one, since what would follow from it (TS0181, TS0911) is not so. TdlError."""
        try:
            yield
        except PlanError as error:
            if wanted.span.file != self._name:
                raise
            hint = "name it in the text, before its `quit`, and run that"
            sink = Sink()
            sink.error("TS0320", wanted.span, f"{error.what}: {error.hint}", hint)
            raise TdlError(sink.found) from None


def extend(plan: Plan, number: int, text: str, now_ns: int) -> Compilation:
    """The plan with action `number`, which is carried out at `now_ns` of the run.

    Raises TdlError with what is wrong: places in the action are those of the text as it was given,
    their file is the action's. NotNowError for a text without a statement.
    """
    clock = _clock(plan)
    timed = TimedText(text, clock.text(now_ns))
    if not any(_NO_CODE.sub("", line).strip() for line in action_texts.lines_of(text)):
        raise NotNowError("this action does nothing", "write a statement, such as `a--b leave`")
    _check_words(text, action_texts.name_of(number))
    held = clock.held_ns is not None
    return _compiled(plan, number, timed, f"#: now {now_ns}\n" if held else "", now_ns)


def text_time(plan: Plan, now_ns: int) -> int:
    """The time of the text at this moment of the run."""
    return _clock(plan).text(now_ns)


def extend_by(plan: Plan, number: int, firing: Firing, text: str, now_ns: int) -> Compilation:
    """The plan with what a `when` does, a text in which all times are written out. TdlError."""
    held = f"#: now {now_ns}\n" if is_held(plan) else ""
    name, more = action_texts.name_of(number, firing), (text + held).encode("utf-8")
    parsed = _parsed(plan, name, more)
    found = _included(plan, name, more, now_ns, doubts=False, parsed=parsed)
    _PARSED[found.plan] = parsed
    return found


def repeat(plan: Plan, number: int, text: bytes, now_ns: int) -> Compilation:
    """The plan with an action that was done before, by hand, whose text has its times written out,
    and what it says of the run's clock. TdlError."""
    return _included(plan, action_texts.name_of(number), text, now_ns)


def hold(plan: Plan, number: int, now_ns: int) -> Compilation:
    """The plan whose events wait from `now_ns` of the run on. NotNowError, else as `extend`."""
    clock = _clock(plan)
    _may_wait(plan)
    if clock.held_ns is not None:
        raise NotNowError("its planned events are held already", "tstorm go lets them go on")
    return _compiled(plan, number, _NOTHING, f"#: hold {clock.text(now_ns)}\n", now_ns)


def go(plan: Plan, number: int, now_ns: int) -> Compilation:
    """The plan whose events go on. NotNowError, else as `extend`."""
    if _clock(plan).held_ns is None:
        raise NotNowError("its planned events are not held")
    return _compiled(plan, number, _NOTHING, f"#: go {now_ns}\n", now_ns)


def skip(plan: Plan, number: int, to_ns: int | None, now_ns: int) -> Compilation:
    """The plan whose events up to `to_ns` of the text happen at `now_ns` of the run; None: up to
    the next one. Held ones are held again after that. NotNowError, else as `extend`."""
    _may_wait(plan)
    clock = _clock(plan)
    held, text_ns = clock.held_ns is not None, clock.text(now_ns)
    begin = f"#: go {now_ns}\n" if held else ""
    if to_ns is None:
        free = _compiled(plan, number, _NOTHING, begin, now_ns).events if held else plan.events
        following = (one.at_ns for one in free if one.at_ns > now_ns)
        next_ns = next(following, None)
        if next_ns is None:
            raise NotNowError("nothing is planned any more")
        to_ns = text_ns + next_ns - now_ns
    if to_ns <= text_ns:
        raise NotNowError(f"{moment(to_ns)} is over: the text is at {moment(text_ns)}")
    words = f"{begin}#: skip {text_ns} {to_ns}\n" + (f"#: hold {to_ns}\n" if held else "")
    found = _compiled(plan, number, _NOTHING, words, now_ns)
    joins = [one.target for one in found.events if one.kind == "join" and one.at_ns == now_ns]
    if twice := next((one for one in joins if joins.count(one) > 1), None):
        raise NotNowError(f"{twice} joins more than once until then", "skip less at a time")
    return found


class NotNowError(Exception):
    """What cannot be done to this run now, and what helps."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


_NOTHING = TimedText("", 0)


def is_held(plan: Plan) -> bool:
    return _clock(plan).held_ns is not None


def is_moved(plan: Plan) -> bool:
    """Whether events were held or skipped."""
    return not _clock(plan).is_plain


def free_ns(plan: Plan) -> int:
    """The first moment of the run that is after events were held, let go or skipped last, and after
    what was done while they were held."""
    return _clock(plan).free_ns


def _clock(plan: Plan) -> RunClock:
    return run_clock.read(plan.attached.includes)


def _may_wait(plan: Plan) -> None:
    whole = (0, plan.end_ns)
    for one in plan.expectations:
        if one.kind == DRIVERS:
            what = f"`{one.text}` begins its checks at {moment(one.to_ns)} of the run, held or not"
            raise NotNowError(what, "run it without that: checks would find faults to come")
    if any((one.from_ns, one.to_ns) not in (whole, (0, 0)) for one in plan.expectations):
        what = "its expectations name times, which would be about something else then"
        raise NotNowError(what, "run it without them")
    if plan.topology.traces:
        raise NotNowError("its links follow traces, which do not wait")


def _compiled(plan: Plan, number: int, timed: TimedText, more: str, now_ns: int) -> Compilation:
    """With the text of the action, and what it says of the run's clock at its end."""
    name = action_texts.name_of(number)
    text = (timed.text + more).encode("utf-8", errors="surrogatepass")
    sources = _Extended(plan, name, text)
    source = _including(plan, name)
    file = ast.File(())
    try:
        text_ns = _clock(plan).text(now_ns)
        file = parse_partial(source, sources, plan.params).file
        _check(file, name, text_ns)
        found = _included(plan, name, text, now_ns)
    except TdlError as error:
        meant = _of_a_running_one(plan, file, error.diagnostics)
        raise TdlError(_placed(meant, name, timed)) from None
    return replace(found, diagnostics=tuple(_placed(found.diagnostics, name, timed)))


def _including(plan: Plan, name: str) -> bytes:
    return plan.source.rstrip(b"\n") + f'\ninclude "{name}"\n'.encode()


# What the texts of plans say that are made of one firing after the other: each has all that was in
# the one before.
_PARSED: WeakKeyDictionary[Plan, Partial] = WeakKeyDictionary()


def _parsed(plan: Plan, name: str, text: bytes) -> Partial:
    """What the text of the plan says with one more, in which there is no variable. Where the rest
    was parsed already, that is what this one says behind it."""
    sources = _Extended(plan, name, text)
    before = _PARSED.get(plan)
    if before is None or before.translations or len(before.includes) >= MOST_KEPT:
        return parse_partial(_including(plan, name), sources, plan.params)
    own = parsed_alone(plan, name, text)
    if own.failed or own.diagnostics or before.diagnostics:
        return parse_partial(_including(plan, name), sources, plan.params)
    statements = (*before.file.statements, *own.file.statements)
    includes = {**before.includes, **own.includes}
    return replace(before, file=replace(before.file, statements=statements), includes=includes)


def parsed_alone(plan: Plan, name: str, text: bytes) -> Partial:
    """What one more text says by itself, in which there is no variable."""
    return parse_partial(f'include "{name}"\n', _Extended(plan, name, text), NO_PARAMS)


def _included(
    plan: Plan,
    name: str,
    text: bytes,
    now_ns: int,
    *,
    doubts: bool = True,
    parsed: Partial | None = None,
) -> Compilation:
    """TdlError, with places in the text as it is."""
    sources, source = _Extended(plan, name, text), _including(plan, name)
    try:
        found = compile_source(
            source,
            seed=plan.seed,
            sources=sources,
            params=plan.params,
            doubts=doubts,
            parsed=parsed,
        )
    except TdlError as error:
        raise TdlError(_news(error.diagnostics, name)) from None
    if found.topology == plan.topology:
        found = replace(found, before=plan)
    _check_same(plan, found, name, now_ns)
    return found


def _news(found: Iterable[Diagnostic], name: str) -> Iterator[Diagnostic]:
    """Errors, and what this action is warned of: what others were is no reason against it."""
    return (one for one in found if one.severity is Severity.ERROR or one.span.file == name)


def _placed(found: Iterable[Diagnostic], name: str, timed: TimedText) -> Iterator[Diagnostic]:
    for one in found:
        own = one.span.file == name
        yield replace(one, span=timed.span(one.span)) if own else one


def _of_a_running_one(
    plan: Plan, file: ast.File, found: Iterable[Diagnostic]
) -> Iterator[Diagnostic]:
    """Joins that find nobody absent are told that nobody comes to a running experiment: elsewhere a
    join raises the number of instances, or the number can be raised."""
    known = {service.name for service in plan.topology.services}
    joins = {
        span: (one.selector.name.text, one.action.count)
        for one in file.statements
        if isinstance(one, ast.Dynamic) and isinstance(one.action, ast.Join)
        if action_texts.number_of(one.span.file)
        if isinstance(one.selector, ast.Element) and one.selector.name.text in known
        for span in (one.span, one.selector.span)  # TS0203 is about the latter
    }
    for one in found:
        if one.code in ("TS0203", "TS0302", "TS0303") and one.span in joins:
            yield _no_more(plan, one, *joins[one.span])
        else:
            yield one


def _no_more(plan: Plan, found: Diagnostic, name: str, asked: ast.Count | None) -> Diagnostic:
    """A run has a place for who is there at some moment of its plan: those that are to come have to
    begin and leave. A `join` of the text for later would find nobody absent any more."""
    services, nodes = plan.topology.services, plan.topology.nodes
    own = {n.name for n in nodes if n.is_instance and services[n.service].name == name}
    message, count = found.message, len(own)
    joins = [one for one in plan.events if one.kind == "join" and one.target in own]
    placed = len({one.target for one in joins})
    more = asked.value if asked is not None and asked.unit is ast.Unit.NUMBER else 1
    if found.code == "TS0302" and placed == count:
        there = "1 instance, which is joined" if count == 1 else f"{count} instances, all joined"
        message = f"{name!r} has {there}, and a running experiment gets no more of them"
    needed = re.search(r"replicas=(\d+)", found.hint or "") if found.code != "TS0302" else None
    most = int(needed[1]) if needed else max(count, placed + more)
    first = {one.target: one.line for one in joins if one.at_ns == 0}
    begin, instead = len(first), " (instead of its joins then)" if any(first.values()) else ""
    leave = f"for i in {begin}..{most - 1} {{ at 0s {name}.$i leave }}"
    if begin == most - 1:
        leave = f"at 0s {name}.{begin} leave"
    hint = (
        f"declare `service {declared_as(name)} replicas={most}` in the text, with"
        f" `at 0s {name} join {most}`{instead} and `{leave}`: {begin} begin, as now; run that"
    )
    return replace(found, message=message, hint=hint)


def _check_words(text: str, name: str) -> None:
    """Of what can be no action by hand, before the language says what else is wrong with it: its
    times may be `now` and `+5s`, which the language does not know there."""
    sink = Sink()
    lines = action_texts.lines_of(text)
    for number, (line, begins) in enumerate(zip(lines, _beginnings(lines), strict=True), 1):
        if not begins:
            continue
        begin = 0
        while loop := _LOOP.match(line, begin):
            begin = loop.end()
        timed, bare = _TIMES.match(line, begin), _BARE_TIME.match(line, begin)
        if bare and _names(line, bare):
            bare = None
        time = timed or bare
        found = _NO_ACTION.match(line, time.end() if time else begin)
        if found and not is_name(found[1], line, found.end()):
            if found[1] == "when":
                sink.error("TS0320", _span(number, found, name), *_NO_WHEN)
            elif time or found[1] == "expect":
                sink.error("TS0320", _span(number, found, name), *_NO_DECLARATION)
        elif bare:
            word = "from" if bare[3] else "at"
            message, hint = f"a time without its `{word}`", f"write `{word} {bare[1]} …`"
            sink.error("TS0009", _span(number, bare, name), message, hint)
    if sink.failed:
        raise TdlError(sink.found)


def _names(line: str, time: re.Match[str]) -> bool:
    """Whether what looks like a time is the name of a service: `now leave`, but not `now heal`."""
    action = _WORD.match(line, time.end(2))
    of_all = action is not None and ACTIONS.get(action[1]) in ("SOLO", "PARTITION")
    return time[2] == "now" and not of_all and selects(line, time.end(2))


def _span(line: int, found: re.Match[str], name: str) -> ast.Span:
    """Of its first group."""
    return ast.Span(line, found.start(1) + 1, line, found.end(1) + 1, name)


def _check(file: ast.File, name: str, now_ns: int) -> None:
    """That the action only does something, and nothing in the past."""
    sink = Sink()
    for statement in file.statements:
        span = statement.span
        if span.file != name:
            continue
        if isinstance(statement, ast.When):
            sink.error("TS0320", span, *_NO_WHEN)
        elif not isinstance(statement, ast.Dynamic):
            sink.error("TS0320", span, *_NO_DECLARATION)
        elif statement.start_ns < now_ns:
            message = f"{moment(statement.start_ns)} is over: it is {moment(now_ns)} now"
            sink.error("TS0321", span, message, "write `at now`, or `at +5s`: from now on")
    if sink.failed:
        raise TdlError(sink.found)


def _check_same(plan: Plan, found: Compilation, name: str, now_ns: int) -> None:
    """That all before it stays as it was, and that nothing of the action is left out."""
    sink, span = Sink(), ast.Span(1, 1, 1, 2, name)
    missed = [one for one in found.diagnostics if one.code == "TS0904" and one.span.file == name]
    for one in missed:
        message = one.message.replace(LEFT_OUT, "would come after that: all of it is refused")
        sink.error(one.code, one.span, message, one.hint)
    if found.topology != plan.topology:
        message = "this takes instances, traces or delays that the plan of the run does not have"
        sink.error("TS0320", span, message, "declare them in the text (`replicas=`), and run that")
    elif not missed and _until(plan, now_ns) != _until(found.plan, now_ns):
        message = "with this, what has happened already would have been something else"
        sink.error("TS0320", span, message, "name what it is about")
    if sink.failed:
        raise TdlError(sink.found)


def _until(plan: Plan, now_ns: int) -> list[object]:
    return [event for event in plan.events if event.at_ns < now_ns]


def warnings(found: Compilation, number: int) -> list[Diagnostic]:
    """About this action."""
    name = action_texts.name_of(number)
    return [one for one in found.diagnostics if one.span.file == name]
