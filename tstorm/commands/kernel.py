"""`tstorm kernel`: the kernel for virtual time: make, show, remove, import."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tstorm import output
from tstorm.command_support import errors_shown
from tstorm.options.shared import table_or_json

if TYPE_CHECKING:
    from runtime.virtual.kernel.kernel_build import Steps
    from runtime.virtual.kernel.kernel_cache import Kernel

_CLEAR = "\r\x1b[K"  # the line on which progress is shown


@click.group()
def command() -> None:
    """The kernel for virtual time (`tstorm run --time virtual`): make it, show it, remove it.

    It is user-mode Linux, an ordinary program, with a small configuration and changes of ours. It
    is built from a source of Linux 6.6 or newer and kept in ~/.cache/tstorm.

    \b
    Examples:
      tstorm kernel build
      tstorm kernel build --source linux-6.12.tar.xz
      tstorm kernel status
    """


def _steps() -> Steps:
    """Steps as lines on stderr; on a terminal progress within one, too."""
    from runtime.virtual.kernel.kernel_build import Steps

    terminal = sys.stderr.isatty()

    def step(text: str) -> None:
        if terminal:
            click.echo(_CLEAR, err=True, nl=False)
        output.note(text)

    def progress(text: str) -> None:
        if terminal:
            click.echo(f"{_CLEAR}{output.visible(text)}", err=True, nl=False)

    return Steps(step, progress)


def _why_not(kernel: Path) -> str:
    """Why no guest starts with it here, '' if one does."""
    from runtime.system import compiled_programs
    from runtime.virtual import guest

    return guest.why_not(kernel, compiled_programs.find("tstorm-ns"))


def _summary(kernel: Kernel) -> str:
    facts = kernel.facts
    return f"Linux {facts.version}, {facts.size_bytes / 1e6:.1f} MB, SHA-256 {facts.digest[:16]}…"


@command.command()
@click.option(
    "--source",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="A kernel.org archive, an unpacked source tree, or a Debian package of the source.  "
    "[default: Debian's linux-source, if it is installed or apt knows it]",
)
def build(source: Path | None) -> None:
    """Build the kernel and print where it is. Takes about four minutes on two processors.

    Without --source it takes the newest source that is installed as /usr/src/linux-source-*, else
    downloads the newest package linux-source-* that apt knows (150 MB); root is not needed. A
    kernel that is there already is not built again. A source tree is copied and never changed.

    \b
    Examples:
      tstorm kernel build
      tstorm kernel build --source ~/Downloads/linux-6.12.57.tar.xz
      tstorm kernel build --source ~/src/linux
    """
    with errors_shown():
        from runtime.virtual.kernel.kernel_build import build as build_kernel

        kernel = build_kernel(source, _steps())
        reason = _why_not(kernel.path)
    output.note(_summary(kernel))
    if reason:
        output.note(f"warning: it does not start here: {reason} (tstorm doctor)")
    output.path(kernel.path)


@command.command()
@table_or_json
def status(form: str) -> None:
    """Show the kernels that are kept, and which one a run takes. Ends with 3 if there is none.

    \b
    Examples:
      tstorm kernel status
      tstorm kernel status --format json | jq -r '.kernels[] | select(.used).path'
    """
    with errors_shown():
        from runtime.virtual.kernel import kernel_cache

        kernels, used = kernel_cache.kernels(), kernel_cache.find()
        rows = [_row(kernel, used) for kernel in kernels]
        if form == "json":
            output.emit_json({"folder": str(kernel_cache.root()), "kernels": rows})
        elif rows:
            _show(rows)
        if used is None:
            raise kernel_cache.lacking()


def _row(kernel: Kernel, used: Kernel | None) -> dict[str, Any]:
    which = {"path": str(kernel.path), "stale": not kernel.current, "used": kernel == used}
    return {**asdict(kernel.facts), **which}


def _show(rows: list[dict[str, Any]]) -> None:
    head = ("VERSION", "USE", "SIZE", "SECCOMP", "SHA-256", "SOURCE", "BUILT")
    output.emit_table(
        head,
        (
            (
                row["version"],
                "used" if row["used"] else "stale" if row["stale"] else "-",
                f"{row['size_bytes'] / 1e6:.1f} MB",
                "yes" if row["seccomp"] else "no",
                row["digest"][:16],
                row["source"],
                row["built"],
            )
            for row in rows
        ),
    )
    if any(row["stale"] for row in rows):
        output.note("stale: of another release of tstorm; `tstorm kernel remove --stale`")


@command.command()
@click.option("--stale", is_flag=True, help="Only those that this release cannot use.")
def remove(stale: bool) -> None:
    """Remove the kernels that are kept, and what a build that was killed has left.

    \b
    Example:
      tstorm kernel remove --stale
    """
    with errors_shown():
        from runtime.virtual.kernel import kernel_cache

        for name in kernel_cache.remove(only_stale=stale):
            output.note(f"removed {name}")


@command.command("import")
@click.argument(
    "file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def import_(file: Path) -> None:
    """Take a kernel that this release built on another machine.

    It must start here and have this release's changes. FILE itself need not be executable. Print
    where it is kept.

    \b
    Example:
      tstorm kernel import /media/stick/linux
    """
    with errors_shown():
        from runtime.errors import RunError, unexpected, unwritten
        from runtime.virtual.kernel import asking, kernel_cache

        if not file.is_file():
            raise RunError(f"{file} is no ordinary file")
        with kernel_cache.held():
            try:
                asking.look(file)
                kernel = _keep(kernel_cache.staged(file), file)
            except RunError as error:
                raise type(error)(f"{file}: {error.message}", error.remedy) from error
            except OSError as error:
                raise (unexpected if error.filename else unwritten)(error) from error
    output.note(_summary(kernel))
    output.path(kernel.path)


def _keep(copy: Path, source: Path) -> Kernel:
    """Checks the copy that is kept: the file itself may change meanwhile."""
    from runtime.errors import MachineError
    from runtime.virtual.kernel import asking, kernel_build, kernel_cache

    facts = asking.check_imported(copy, str(source))
    if reason := _why_not(copy):
        raise MachineError(f"it does not start here: {reason}", "tstorm doctor")
    return kernel_cache.put(copy, {**facts, "built": kernel_build.now()})
