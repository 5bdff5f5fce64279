"""`tstorm lsp`: the language server, for editors."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import click

_PACKAGES = ("pygls", "lsprotocol")
_EXTRA = "pip install 'tstorm[lsp]', or in a checkout: .venv/bin/pip install -e '.[lsp]'"


@click.command()
@click.option("--stdio", is_flag=True, hidden=True, help="As many editors call a language server.")
@click.option("--check", is_flag=True, help="Only tell whether it can start: 0, or 3 and why not.")
def command(*, stdio: bool, check: bool) -> None:  # noqa: ARG001
    """Speak the Language Server Protocol over standard input and output: an editor starts this.

    It gives diagnostics while you type, completes, shows links and paths under the cursor, finds
    declarations, and formats. docs/editors.md says how to tell an editor.
    It reads files of the folder that is open in the editor, and no others; it runs no program, and
    writes nothing.

    It needs packages that are installed with: pip install 'tstorm[lsp]'

    \b
    Examples:
      tstorm lsp
      code --install-extension tdl.vsix    # docs/editors/vscode makes it
    """
    from tstorm.command_support import errors_shown

    with errors_shown():
        _check_installed()
        if check:
            return
        if sys.stdin is None or sys.stdout is None or sys.stdin.isatty():
            raise click.UsageError("an editor starts this, and speaks to it (docs/editors.md)")
        _serve()


def _check_installed() -> None:
    """MachineError with the command that installs what is missing."""
    from runtime.errors import MachineError

    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise MachineError(f"the language server needs {' and '.join(missing)}", _EXTRA)


def _serve() -> None:
    from compiler.plan.format import TOOL_VERSION
    from tstorm.lsp.language_server import TdlLanguageServer

    # Whatever else runs here, and the processes that it starts, must not speak on these.
    requests, answers = (os.dup(stream.fileno()) for stream in (sys.stdin, sys.stdout))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    with os.fdopen(requests, "rb") as reader, os.fdopen(answers, "wb") as writer:
        TdlLanguageServer(TOOL_VERSION).serve(reader, writer)
