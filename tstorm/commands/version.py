"""`tstorm version`: versions of the tool and of what it stands on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import click

from tstorm import output
from tstorm.options.shared import table_or_json

_LIBRARIES = ("click", "pyroute2", "rich")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


@click.command()
@table_or_json
def command(form: str) -> None:
    """Print the version of tstorm, of the plan format, of Python and of the libraries in use.

    \b
    Examples:
      tstorm version
      tstorm version --format json
    """
    from compiler.plan.format import FORMAT_VERSION, TOOL_VERSION

    found = {
        "tstorm": TOOL_VERSION,
        "plan_format": str(FORMAT_VERSION),
        "python": platform.python_version(),
        "kernel": platform.release(),
        **{name: _version(name) for name in _LIBRARIES},
    }
    if form == "json":
        output.emit_json(found)
    else:
        output.emit_table(("WHAT", "VERSION"), found.items())
