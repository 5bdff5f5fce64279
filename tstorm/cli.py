"""The command group. Commands are imported when used, so `tstorm compile` starts fast.

The table holds each command's module and its one-line help: listing them (`tstorm --help`) imports
none of them.
"""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "compile": "Compile a TDL file into a plan.",
    "check": "Report what is wrong with a TDL file; write nothing.",
    "fmt": "Rewrite TDL files in the canonical form.",
    "events": "List what happens, when and to which instance.",
    "paths": "List the network's end-to-end properties at a time.",
    "explain": "Show why a path is as it is, or where an event comes from.",
    "predict": "Predict the rates of flows over time.",
    "diff": "Compare two experiments, as timelines and as networks.",
    "lsp": "Speak the Language Server Protocol, for editors.",
    "import": "Print a file of another tool as TDL.",
    "measure": "Measure the paths between hosts and write them as TDL.",
    "image": "Build the image of agent and coordinator.",
    "render": "Render a plan as files for Kubernetes or Compose.",
    "run": "Run an experiment on this machine or in a cluster.",
    "replay": "Run a recorded experiment again.",
    "compare": "Compare runs or campaigns, with confidence intervals.",
    "at": "Look into a recorded run at one of its moments.",
    "shrink": "Find the shortest timeline with which a run still fails.",
    "why": "Find the moment at which the failure of a run was decided.",
    "hunt": "Look for a storm with which an experiment fails.",
    "do": "Change a running experiment: any action of the language.",
    "hold": "Hold what is planned in a running experiment.",
    "go": "Let what is held go on.",
    "skip": "Have planned events of a running experiment happen at once.",
    "record": "Write what a run became, by plan and by hand, as a TDL file.",
    "exec": "Run a command inside an instance of a running experiment.",
    "capture": "Write the packets of a running experiment, live, for Wireshark.",
    "forward": "Make a port of a running program reachable on this machine.",
    "inspect": "Show the state of a run.",
    "top": "Show what links, pairs and programs of a run do now.",
    "ui": "Serve the page of a run while it goes on, to watch and to steer it.",
    "logs": "Show what programs wrote and what happened, by time.",
    "report": "Report what a run came to: Markdown, JSON, CSV, JUnit or HTML.",
    "plot": "Draw a pair, a link, the timeline or the network, as SVG or PNG.",
    "destroy": "End runs and remove what they left behind.",
    "kernel": "Build and keep the kernel for virtual time.",
    "doctor": "Check what this machine or a cluster can do and what is missing.",
    "version": "Print versions.",
    "completion": "Print the shell completion script.",
}

# Where a command's module is, in tstorm/commands: by its name there, if no folder is said.
_FOLDERS = {
    "experiment": (
        *("check", "compile", "diff", "events", "explain", "fmt", "paths", "predict", "render"),
    ),
    "live": (
        *("capture", "do", "exec", "forward", "go", "hold", "logs", "record", "skip", "top", "ui"),
    ),
}
_MODULES = {name: f"{folder}.{name}" for folder, names in _FOLDERS.items() for name in names} | {
    "import": "experiment.import_files"  # a word that cannot name its module
}

HELP = """Test distributed systems under changing networks.

An experiment is a TDL file: services, links, and what happens to them over time. It compiles to a
plan; the plan runs real programs through an emulated network; a run can be replayed exactly.

\b
Examples:
  tstorm check quickstart.tdl
  tstorm run quickstart.tdl --seed 7
  tstorm paths quickstart.tdl --at 30s --from client --to server
  tstorm replay runs/quickstart-20260301T120000Z --check

\b
Exit codes:
  0    success
  1    error in the input, a check that did not hold, or a run that broke off
  2    wrong usage of the command line
  3    this machine or cluster lacks something that is needed (see tstorm doctor)
  4    the result is not to be trusted (--require, --max-lateness)
  5    the experiment failed: its programs did (expect=, --fail-on-exit, --fail-fast)
  130  interrupted
"""


class LazyGroup(click.Group):
    """A group whose commands live in tstorm/commands as `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"tstorm.commands.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, but an unknown command comes with the nearest known one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else " See 'tstorm --help'."
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    from compiler.plan.format import TOOL_VERSION

    click.echo(f"tstorm {TOOL_VERSION}")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def cli() -> None:
    """See HELP."""
