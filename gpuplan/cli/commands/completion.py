"""`gpuplan completion`."""

from __future__ import annotations

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import verb


class _WholeWords(ShellComplete):
    """For shells that put what is found in place of the whole word, such as `--cluster=p`."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        found = super().get_completions(args, incomplete)
        name, equals, _ = incomplete.partition("=")
        if not equals or not name.startswith("--"):
            return found
        return [CompletionItem(f"{name}={item.value}", item.type, item.help) for item in found]


@add_completion_class
class _Bash(BashComplete):
    name = "bash"

    @staticmethod
    def _check_version() -> None:
        """Leave out what click does first: start bash, whichever is on the path, to ask for its version."""


@add_completion_class
class _Fish(_WholeWords, FishComplete):
    name = "fish"


@add_completion_class
class _Zsh(_WholeWords, ZshComplete):
    name = "zsh"


@verb("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(terminal: Terminal, shell: str) -> None:
    """Print a script that completes commands in a shell.

    \b
      gpuplan completion bash > ~/.local/share/bash-completion/completions/gpuplan
      gpuplan completion zsh > ~/.zfunc/_gpuplan
      gpuplan completion fish > ~/.config/fish/completions/gpuplan.fish
    """
    completion = get_completion_class(shell)
    if completion is None:  # click knows all three
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    terminal.print(completion(root, {}, "gpuplan", "_GPUPLAN_COMPLETE").source() + "\n")
