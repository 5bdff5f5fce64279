"""`tstorm completion SHELL`: the script that teaches a shell to complete tstorm's command line."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Examples:
      tstorm completion bash > ~/.local/share/bash-completion/completions/tstorm
      tstorm completion zsh > ~/.zfunc/_tstorm
      tstorm completion fish > ~/.config/fish/completions/tstorm.fish
    """
    from click.shell_completion import get_completion_class

    completer = get_completion_class(shell)
    assert completer is not None  # the three shells above are click's own
    root = ctx.find_root().command
    click.echo(completer(root, {}, "tstorm", "_TSTORM_COMPLETE").source())
