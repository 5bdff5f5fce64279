"""The command as a user calls it, and an experiment that several tests ask about."""

from __future__ import annotations

from click.testing import CliRunner, Result

from tstorm.cli import cli
from tstorm.exit_codes import CommandError

TWO_SERVICES = """\
seed 3
service c img=x replicas=2
service d img=x replicas=3
bridges s t
link c--s latency=1ms up=10Mb down=20Mb loss=1%
link s--t latency=10ms jitter=3ms up=1Gb symmetric
link d--t latency=4ms jitter=4ms
at 5s d crash 1
at 10s s--t leave
at 20s s--t join
at 30s quit
"""


def tstorm(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin)


def status(result: Result) -> int:
    """As the shell sees it (tstorm/__main__.py)."""
    return result.exception.code if isinstance(result.exception, CommandError) else result.exit_code
