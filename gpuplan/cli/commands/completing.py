"""Complete command lines in shells, and the work of `gpuplan completion`."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from gpuplan.terminal.session import Terminal


class _WholeWords(ShellComplete):
    """Completes for shells that replace the whole word, such as `--cluster=p`."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        words = super().get_completions(args, incomplete)
        name, equals, _ = incomplete.partition("=")
        if not equals or not name.startswith("--"):
            return words
        return [CompletionItem(f"{name}={word.value}", word.type, word.help) for word in words]


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


def completion(terminal: Terminal, shell: str) -> None:
    completion = get_completion_class(shell)
    if completion is None:  # click knows all three
        raise click.UsageError(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    terminal.print(completion(root, {}, "gpuplan", "_GPUPLAN_COMPLETE").source() + "\n")
