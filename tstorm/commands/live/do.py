"""`tstorm do RUN ACTION…`: change a running experiment."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import click

from tstorm import output
from tstorm.exit_codes import CommandError
from tstorm.options.cluster import Where, in_cluster
from tstorm.options.shared import run_argument

if TYPE_CHECKING:
    from tdl.diagnostics import Diagnostic
    from tstorm.live.steer import Done

STDIN = "-"
_ARGUMENT = "action"
JSON = click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON object.")


@click.command()
@run_argument(required=True)
@click.argument("actions", metavar="[ACTION]...", nargs=-1)
@click.option(
    "-f",
    "--file",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Take the action from FILE; `-` is standard input.",
)
@click.option(
    "--watch",
    metavar="FILE",
    type=click.Path(dir_okay=False, exists=True),
    help="Follow a link simulator's JSON until the run ends: what it says otherwise than the run"
    " has becomes one action.",
)
@in_cluster
@JSON
def command(
    run: str,
    actions: tuple[str, ...],
    file: str | None,
    watch: str | None,
    *,
    cluster: Where | None,
    as_json: bool,
) -> None:
    """Change RUN, a running experiment: any ACTION of the language.

    Without a time ACTION happens now; `now` and `+5s` count from then, other times are those of the
    experiment. Several, or the lines of a FILE, are one action: all of it is done, or none. It is
    checked against the network as it is, and what is planned for later sees what it has changed.
    The answer comes when the run has taken it, some tenths of a second before its first event,
    and up to 2 s where planned events are close.

    The run's plan and its events have it, with `do@1`, `do@2`, ... for the line's file: the result
    is judged by what was in force. `tstorm record` writes it as a TDL file, `tstorm replay` does it
    again. In virtual time, time stands still until the action is compiled: it happens some
    milliseconds after the moment at which it came, which its record has (entered_ns), and a replay
    is the same to the last byte.

    With --backend k8s RUN goes on in a cluster, from whatever machine it was begun; of a run
    directory that `tstorm run --backend k8s` fills here that need not be said.

    `--json` with no ACTION, or with a FILE.json, takes lines of JSON instead: each an object, or a
    list of them, that changes links by the names or addresses at their ends. Each line is one
    action, and each object gets a line as its answer.

    \b
    Examples:
      tstorm do runs/a "client--s1 set latency=100ms"
      tstorm do runs/a "from now to +10s s1--s2 flap 500ms"
      tstorm do runs/a "at +5s server crash 1" "at +20s server join 1"
      tstorm do runs/a -f outage.tdl --json
      echo '{"src": "client.0", "dst": "s.0", "delay_ns": 8000000}' | tstorm do runs/a --json
      tstorm do runs/a --watch links.json
      tstorm do trial-7 --backend k8s --namespace trial-7 "server crash 1"
    """
    from tstorm.live.steer import do

    if watch is not None:
        if actions or file is not None:
            raise click.UsageError("--watch stands alone.")
        _follow(run, watch, cluster, as_json=as_json)
        return
    if as_json and file is None and (lines := _json_lines(actions)) is not None:
        _lines(run, lines, cluster)
        return
    text, name = _text(actions, file)
    carry_out(lambda: do(run, text, cluster), name, text, as_json=as_json)


def _json_lines(actions: Sequence[str]) -> Iterator[str] | None:
    """Lines of JSON that are given instead of actions; None if there are none."""
    if not actions:
        return _decoded(sys.stdin.buffer)
    if tuple(actions) == (STDIN,):  # which may have TDL as well, and that begins with neither
        begin = cast(BufferedReader, sys.stdin.buffer).peek(1)[:1]
        return _decoded(sys.stdin.buffer) if begin in (b"{", b"[") else None
    if len(actions) == 1 and actions[0].endswith((".json", ".jsonl")):
        try:
            return _decoded(Path(actions[0]).open("rb"))
        except OSError as error:
            raise CommandError(f"error: reading {actions[0]}: {error.strerror}") from error
    return None


def _decoded(stream: IO[bytes]) -> Iterator[str]:
    """As they come, so that those before a bad one are answered."""
    from compiler.link_changes import MOST_LINE

    with stream:
        for line in iter(lambda: stream.readline(MOST_LINE + 1), b""):
            if len(line) > MOST_LINE:  # nothing after it is known to be a line of its own
                raise CommandError(f"error: a line has at most {MOST_LINE:,} bytes")
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError:
                raise CommandError("error: a line is no UTF-8 text") from None


def _lines(run: str, lines: Iterator[str], cluster: Where | None) -> None:
    from tstorm.command_support import errors_shown
    from tstorm.live import link_lines

    with errors_shown():
        if not link_lines.carry_out(run, lines, _say, cluster):
            raise CommandError(code=1)


def _say(line: str) -> None:
    """At once: whoever asks waits for it."""
    output.line(line)
    sys.stdout.flush()


def _follow(run: str, file: str, cluster: Where | None, *, as_json: bool) -> None:
    from tstorm.command_support import errors_shown
    from tstorm.live.answers import told_lines
    from tstorm.live.link_watch import LinkWatch
    from tstorm.loading import show

    def done(one: Done) -> None:
        for line in (json.dumps({"ok": dict(one.told)}),) if as_json else told_lines(one):
            _say(line)

    def refused(error: Exception) -> None:
        click.echo(f"{file}: {error}; nothing was changed", err=True)

    path = Path(file)

    def wrong(found: tuple[Diagnostic, ...]) -> None:
        try:
            text = path.read_bytes()
        except OSError:  # it is away again: what was wrong is told without its line
            text = b""
        show(found, file, b"", includes={path.name: text})
        click.echo("nothing was changed", err=True)

    with errors_shown():
        LinkWatch(run, path, done, wrong, refused, cluster).follow()


def carry_out(act: Callable[[], Done], name: str, text: str, *, as_json: bool) -> None:
    """Prints what comes of an action of this text, which messages call `name`."""
    from compiler.plan.format import SOURCE
    from tstorm.command_support import errors_shown
    from tstorm.live.answers import answered, told_lines
    from tstorm.loading import show

    answer = answered(act)
    if as_json:
        output.line(json.dumps(answer.record, sort_keys=True))
    else:
        with errors_shown():
            if answer.refusal is not None:
                raise answer.refusal
        show(answer.found, name, text.encode(), includes={SOURCE: answer.source})
        for line in told_lines(answer.done) if answer.done else ():
            output.line(line)
        if answer.exit_code:
            click.echo("nothing was changed", err=True)
    if answer.exit_code:
        raise CommandError(code=answer.exit_code)


def _text(actions: Sequence[str], file: str | None) -> tuple[str, str]:
    """The text of the action, and what messages call it."""
    from compiler.extension import MOST_BYTES

    if tuple(actions) == (STDIN,):
        actions, file = (), STDIN
    if (file is None) == (not actions):
        raise click.UsageError("give the action, or a file that has it (-f FILE).")
    name = _ARGUMENT if file is None else "stdin.tdl" if file == STDIN else file
    try:
        if file is None:
            data = "\n".join(actions).encode("utf-8", errors="surrogateescape")
        elif file == STDIN:
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(MOST_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise CommandError(f"error: reading {file}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise CommandError(f"error: {name} is no UTF-8 text") from None
    if len(data) > MOST_BYTES:
        raise CommandError(f"error: {name}: an action has at most {MOST_BYTES} bytes")
    if not text.strip():
        raise CommandError(f"error: {name}: there is nothing in it")
    return text, name
