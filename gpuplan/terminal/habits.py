"""Answers to verbs, options and words that gpuplan does not have: each names what to type."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from shlex import join, quote
from typing import TypeVar, cast

import click

from gpuplan.compiler.base.repository import OVERLAYS
from gpuplan.compiler.base.wording import closest, listing
from gpuplan.terminal.data.habits import ANY, OPTIONS, VERBS, WORDS, Cases
from gpuplan.terminal.options import cluster_names

T = TypeVar("T")

_UNLIKELY = 0.8
"""The likeness below which a short verb is no misspelling of another one: `lint` is like `init`."""
_EXTRA = re.compile(r"Got unexpected extra arguments? \((?P<words>.*)\)", re.DOTALL)


def answer_verb(verb: str, known: Sequence[str]) -> str:
    """Return what to type instead of a verb that gpuplan does not have."""
    if answer := _find_row(VERBS, verb.lower()):
        return answer
    starts = [name for name in known if len(verb) > 2 and name.startswith(verb.lower())]
    near = closest(verb, known, likeness=_UNLIKELY) or next(iter(starts), None)
    return f"Did you mean '{near}'?" if near else "`gpuplan --help` lists the commands."


def answer_usage(error: click.UsageError, context: click.Context, typed: Sequence[str]) -> click.UsageError:
    """Return the error with what to type instead; show the help if the command line asks for it, too."""
    if not {"-h", "--help"}.isdisjoint(typed):
        click.echo(context.get_help())
        context.exit()
    if isinstance(error, click.NoSuchOption) and (answer := _answer_option(error.option_name, context, typed)):
        return click.UsageError(f"{error.message} {answer}", context)
    if isinstance(error, click.MissingParameter):
        return click.UsageError(f"{error.format_message()} For example: `{_example(context)}`.", context)
    if match := _EXTRA.fullmatch(error.message):
        return click.UsageError(f"{error.message}. {_answer_word(match['words'], context)}", context)
    return error


def refuse_clusters(context: click.Context, value: T) -> T:
    """Raise `click.UsageError` if an argument that takes files names a cluster."""
    for word in (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ():
        name = "" if os.path.exists(word) and "/" not in word else _cluster_in(word, context)  # noqa: PTH110 - as typed
        if name:
            raise click.UsageError(f"`{word}` names a cluster. {_type_cluster(context, name)}", context)
    return value


def _find_row(table: Mapping[str, T], word: str) -> T | None:
    return next((row for words, row in table.items() if word in words.split()), None)


def _answer_option(option: str, context: click.Context, typed: Sequence[str]) -> str:
    """Return what to type instead of an option, or nothing if only the spelling may help."""
    root, group = context.find_root(), cast("click.Group", context.find_root().command)
    verbs = {name: _names_of(each) for name in group.list_commands(root) if (each := group.get_command(root, name))}
    verb = context.info_name if context.parent else next((word for word in typed if word in verbs), "")
    names = verbs.get(verb or "", frozenset())
    if option in names:
        behind = list(typed)
        behind.remove(str(verb))
        return f"Type the option after the command: `gpuplan {join([str(verb), *behind])}`."
    if row := _find_row(OPTIONS, option):
        return _answer_case(row, names, f"gpuplan {verb}".rstrip())
    owners = [f"gpuplan {name}" for name, known in verbs.items() if option in known]
    return f"It is an option of {listing(owners, 3)}." if owners else ""


def _names_of(command: click.Command) -> frozenset[str]:
    """Return the options of a verb, its arguments as help shows them, and its name: all that a case may be."""
    context = click.Context(command)
    names = (name for each in command.params for name in (*each.opts, each.make_metavar(context)))
    return frozenset({command.name or "", *names})


def _answer_case(cases: Cases, names: frozenset[str], command: str) -> str:
    return next(answer for case, answer in cases.items() if case == ANY or case in names).format(command=command)


def _answer_word(words: str, context: click.Context) -> str:
    word = words.split(maxsplit=1)[0]
    names = _names_of(context.command)
    if "-c" in names and (name := _cluster_in(word, context)):
        return _type_cluster(context, name)
    if os.path.isdir(os.path.join(word, OVERLAYS)):  # noqa: PTH112, PTH118 - as it is typed
        return f"Type `gpuplan -C {quote(word)} {context.info_name}`."
    return _answer_case(WORDS, names, context.command_path)


def _cluster_in(word: str, context: click.Context) -> str:
    """Return the cluster that a word names, alone or as a folder of overlays/ or out/; empty if there is none."""
    folder, _, name = word.rstrip("/").rpartition("/")
    is_named = folder.rpartition("/")[2] in ("", OVERLAYS, "out") and name in cluster_names(context)
    return name if is_named else ""


def _type_cluster(context: click.Context, name: str) -> str:
    return f"Type `{context.command_path} -c {name}`."


def _example(context: click.Context) -> str:
    """Return the first example in the help of a command."""
    match = re.search(rf"gpuplan {context.info_name} .*?(?=  | >|$)", context.command.help or "", re.MULTILINE)
    return match[0] if match else f"{context.command_path} --help"
