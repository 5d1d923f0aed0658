"""Answers to verbs, options and words that gpuplan does not have: each names what to type."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from itertools import pairwise
from pathlib import PurePath
from shlex import join, quote
from typing import Final, ParamSpec, TypeVar, cast

import click

from gpuplan.compiler.base.repository import OVERLAYS
from gpuplan.compiler.base.wording import closest, listing
from gpuplan.terminal.completions import plans
from gpuplan.terminal.data.habits import (
    ANY,
    CHOICES,
    ENDINGS,
    FORMATS,
    KINDS,
    MEANT,
    MISSING,
    NOUNS,
    OBJECTS,
    OPTIONS,
    PHRASES,
    PREFIXES,
    SAME,
    THINGS,
    VERBS,
    WORDS,
    Cases,
)
from gpuplan.terminal.options import cluster_names, pool_names, tenant_names
from gpuplan.terminal.things import find_kinds, model_with
from gpuplan.terminal.verbs import TYPED

T = TypeVar("T")
P = ParamSpec("P")

_UNLIKELY = 0.8
"""The likeness below which a short verb is no misspelling of another one: `lint` is like `init`."""
_BEGUN = 5
"""The letters that a word shares with the only one of the choices that begins so."""
_SURE = 0.88
"""The likeness above which an option is a misspelling, even of the first letter."""
_STEM = 4
"""The letters that an option has to share with the one that is meant."""
_CHOICE: Final = re.compile(r"'(?P<value>[^']*)' is not one of")
_LONG: Final = re.compile(r"-[a-z][-a-z]+")
"""A long option with one dash, as Go's programs take it."""
_SHARING: Final = re.compile(r"exclusive|(time-slicing|mps)=\d+")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_MEANT: Final = re.compile(r"did you mean `([^`]+)`\?")
_SEVERAL: Final = re.compile(r"did you mean `[^`]+`(?:, `[^`]+`)* or `[^`]+`\?")
_ABOVE: Final = re.compile("a platform is in `([^`]+)`")
_REFUSED: Final = re.compile("`(--[a-z]+) ([^`]+)` is not ")
_FETCH: Final = re.compile("(type `git fetch [^`]+`), then the same again(?:; or name (.+))?")
_NAMED: Final = re.compile(r"`([^`]+)`")
_EXTRA = re.compile(r"Got unexpected extra arguments? \((?P<words>.*)\)", re.DOTALL)
_UNKNOWN: Final = re.compile(
    r"(?:there is )?no (?P<kind>pool|tenant|cluster|GPU model) `(?P<name>[^`]+)`.*"
    r"|nothing is called `(?P<called>[^`]+)`|`(?P<named>[^`]+)` names nothing"
    r"|`(?P<span>[^`]+)` is no range of revisions"
)
"""Errors about a name that a command does not know."""
_DOCUMENTS: Final = {"pool": "Pool", "tenant": "Tenant", "cluster": "Cluster", "GPU model": "model"}


def _filled(answer: str, context: click.Context) -> str:
    """Return an answer with a line for each name that the platform has where it says NAME or POOL.

    If there are many, the first line with such a hole is followed by the names.
    """
    told: set[str] = set()

    def fill(code: re.Match[str]) -> str:
        line = code[0].replace(" -c NAME", "") if _CHOSEN.search(code[0]) else code[0]
        hole = _HOLE.search(line)
        if hole is None or not (names := [*_HOLES[hole[1]](context)]):
            return line
        if len(names) > _FEW:
            named = "" if hole[1] in told else f" ({hole[2]} is {listing(names, last='or')})"
            told.add(hole[1])
            return f"{line}{named}"
        filled = (f"{line[: hole.start(2)]}{name}{line[hole.end(2) :]}".strip("`") for name in names)
        return listing([*filled], None, last="or")

    return _CODE.sub(fill, answer)


_FEW: Final = 3
_CODE: Final = re.compile("`gpuplan [^`]+`")
_CHOSEN: Final = re.compile(" (?:-c|--cluster)[ =](?!NAME)")
_HOLE: Final = re.compile("(-c|--pool|--tenant|rollout) (NAME|POOL)(?![^ `])")
_HOLES: Final = {"-c": cluster_names, "--pool": pool_names, "--tenant": tenant_names, "rollout": pool_names}


def _filling(answer: Callable[P, str]) -> Callable[P, str]:
    """Make a function fill its answers with names of the platform that its context is about."""

    @wraps(answer)
    def fill(*given: P.args, **named: P.kwargs) -> str:
        context = next(each for each in (*given, *named.values()) if isinstance(each, click.Context))
        return _filled(answer(*given, **named), context)

    return fill


@_filling
def answer_verb(typed: Sequence[str], context: click.Context, lines: Mapping[str, str]) -> str:
    """Return what to type instead of a verb that gpuplan does not have; ``lines`` describes the usual verbs."""
    verb = typed[0].lower()
    known = cast("click.Group", context.command).list_commands(context)
    behind = [word for before, word in pairwise(typed) if not before.startswith("-") or before in _EVERYTHING]
    words = [word for word in behind if not word.startswith("-")]
    first, *parts = re.split(r"[-_:.]", verb)
    following = words[0].lower() if words else ""
    if typed[0] in cluster_names(context):
        return _answer_thing(typed[0], context, frozenset(), "gpuplan")
    if verb in PREFIXES.split() and following and (answer := _answer_after(words, known, context)):
        return answer
    if line := _carry_over(verb, typed[1:], context):
        return f"Type `{line}`."
    if answer := _answer_known(verb, words, context):
        return answer
    starts = [name for name in known if len(verb) > 2 and name.startswith(verb)]
    if near := closest(verb, known, likeness=_UNLIKELY) or next(iter(starts), None):
        return f"Did you mean '{near}'?"
    if first in known and parts:
        return _find_row(NOUNS, parts[0]) or f"Type `gpuplan {first}`."
    if parts and (answer := _answer_known(first, [*parts, *words], context)):
        return answer
    if answer := _answer_thing(typed[0], context, frozenset(), "gpuplan"):
        return answer
    width = max(map(len, lines))
    listed = "".join(f"\n  {name:{width}}  {line}" for name, line in lines.items())
    return f"`gpuplan --help` lists the commands. The usual commands:\n{listed}"


def _carry_over(verb: str, words: Sequence[str], context: click.Context) -> str:
    """Return our command that a verb means, with all that was typed behind it; empty if it does not take that."""
    ours, *options = (_find_row(MEANT, verb) or "").split()[:2] or [""]
    command = cast("click.Group", context.command).get_command(context, ours)
    if command is None or not words or not {"-h", "--help"}.isdisjoint(words):
        return ""
    names = _names_of(command)
    noun, _, name = words[0].partition("/")
    kept, at = list[str](), 0
    if option := next((each for each, kind in _VALUES.items() if kind == _find_row(KINDS, noun.lower())), ""):
        following = "" if name or words[1:2] == [] or words[1].startswith("-") else words[1]
        at = 2 if following else 1
        kept = ["-c" if option == "--cluster" else option, name or following] if name or following else []
        if option not in names or not (kept or words[1:]):
            return ""
    while at < len(words):
        word, size = words[at], 1
        if not word.startswith("-"):
            kept += _option_for(word, names, context) or [word]
        elif word not in _EVERYTHING or "-c" not in names:
            _, foreign, value, size = _written(word.partition("=")[0], words[at:])
            same = () if foreign in names else _same_as(foreign, value, command, context)
            kept += same or words[at : at + size]
        at += size
    with suppress(click.ClickException):
        taken = command.make_context(ours, [*kept, *options], parent=context)
        if "POOL" not in names or "Pool" in find_kinds(taken.params["pool"], context):
            return _retyped(context, ours, [*kept, *options])
    return ""


def _answer_after(words: Sequence[str], known: Sequence[str], context: click.Context) -> str:
    """Return the answer to the verb behind the name of another program."""
    verb = words[0].lower()
    if verb in PREFIXES.split() and words[1:] and (answer := _answer_after(words[1:], known, context)):
        return answer
    if verb in known and (command := cast("click.Group", context.command).get_command(context, verb)):
        names = _names_of(command)
        rest = [part for word in words[1:] for part in _option_for(word, names, context)]
        return f"Type `{join(['gpuplan', verb, *(rest if '-c' in names else words[1:])])}`."
    line = _carry_over(verb, words[1:], context)
    return f"Type `{line}`." if line else _answer_known(verb, words[1:], context)


def _answer_known(verb: str, words: Sequence[str], context: click.Context) -> str:
    """Return the answer to a verb of other programs, and to the object behind it; empty if nobody knows the verb."""
    row = _find_verb(verb)
    if not row:
        return ""
    kind, name = _object_in(words, context)
    cases = _find_row(OBJECTS, verb) or {}
    case = cases.get(kind) or cases.get(ANY, "")
    if kind and case and (name or "{name}" not in case):
        answer = case.format(kind=kind, name=name)
        return f"{answer} {row}" if "policies/" in row else answer
    is_listed = "Pool" in cases and words and not _find_row(OBJECTS, words[0].lower())
    if is_listed and words[0] in cast("click.Group", context.command).list_commands(context):
        return f"Type `gpuplan {words[0]}`."
    listed = _find_verb(words[0].lower()) if is_listed else ""
    return (listed or row).format(verb=verb)


def _find_verb(word: str) -> str:
    return _find_row(NOUNS, word) or _find_row(VERBS, word) or ""


def _object_in(words: Sequence[str], context: click.Context) -> tuple[str, str]:
    """Return the kind and the name of what follows a verb: ``pool a100``, ``pool/a100`` or ``a100``."""
    if not words:
        return "", ""
    noun, _, name = words[0].partition("/")
    if kind := _find_row(KINDS, noun.lower()):
        return kind, name or next(iter(words[1:]), "")
    kinds = [kind for kind in find_kinds(words[0], context) if kind[:1].isupper()]
    return (kinds[0], words[0]) if kinds else ("", "")


def answer_usage(error: click.UsageError, context: click.Context, typed: Sequence[str]) -> click.UsageError:
    """Return the error with what to type instead; show the help if the command line asks for it, too."""
    answer = _answer_usage(error, context, typed)
    is_ours = type(answer) is click.UsageError  # others have a form of their own, and no line to type
    return click.UsageError(_filled(answer.message, context), context) if is_ours else answer


def _answer_usage(error: click.UsageError, context: click.Context, typed: Sequence[str]) -> click.UsageError:
    if not {"-h", "--help"}.isdisjoint(typed):
        click.echo(context.get_help())
        context.exit()
    if long := next((name for word in typed if _LONG.fullmatch(name := word.partition("=")[0]) and _knows(name)), ""):
        return click.UsageError(f"No such option '{long}'. {_answer_option(long, context, typed)}", context)
    if isinstance(error, click.NoSuchOption):
        answer = _answer_option(error.option_name, context, typed)
        return click.UsageError(f"{error.message.partition(' (')[0]} {answer}", context)
    if isinstance(error, click.MissingParameter):
        dump = " `gpuplan import --commands` prints how to collect it." if "DUMP..." in error.format_message() else ""
        return click.UsageError(f"{error.format_message()} For example: `{_example(context)}`.{dump}", context)
    if isinstance(error, click.BadParameter) and error.param and "--cluster" in error.param.opts:
        at, _, value, size = _written_as(error.param, typed)
        words = [word for name in re.split("[, =]+", value) if name for word in ("-c", name)]
        line = _retyped(context, str(context.info_name), [*typed[:at], *words, *typed[at + size :]])
        return click.UsageError(f"{error.format_message()} Type `{line}`.", context) if size else error
    if isinstance(error, click.BadParameter) and (answer := _answer_number(error.param, context, typed)):
        return click.UsageError(f"{error.format_message()} {answer}", context)
    if isinstance(error, click.BadParameter) and (match := _CHOICE.search(error.message)) and error.param:
        answer = _answer_choice(match["value"], error.param, context, typed)
        return click.UsageError(f"{error.format_message()} {answer}".rstrip(), context)
    if match := _EXTRA.fullmatch(error.message):
        return click.UsageError(f"{error.message}. {_answer_word(match['words'], context, typed)}", context)
    return error


def _answer_number(parameter: click.Parameter | None, context: click.Context, typed: Sequence[str]) -> str:
    """Return the line with the number that was typed, as its option takes it: ``99`` for ``p99``; empty if none is."""
    at, option, value, size = _written_as(parameter, typed)
    number = _NUMBER.findall(value)
    if parameter is None or len(number) != 1 or value.endswith("x") or (number[0] == value and float(value) >= 1):
        return ""
    is_part = "%" in value or float(number[0]) < 1
    part = f"{float(number[0]) * (100 if float(number[0]) < 1 else 1):g}"
    if is_part and option == "--batch":
        option = "--max-unavailable"
        parameter = next(each for each in context.command.params if option in each.opts)
    for form in (f"{part}%", part) if is_part else (part, f"{part}%"):
        with suppress(click.UsageError):
            parameter.process_value(context, form)
            words = [*typed[:at], option, form, *typed[at + size :]]
            return f"Type `{_retyped(context, str(context.info_name), words)}`."
    return ""


@_filling
def answer_trouble(message: str, missing: str, hint: str, context: click.Context) -> str:
    """Return what to type instead of a name that a verb does not know, or of a ``missing`` file; else the hint."""
    if several := _answer_several(message, missing, context):
        return several
    if folder := _ABOVE.match(hint):
        return f"{folder[0]}: type `{_from_folder(folder[1], context)}`"
    if fetch := _FETCH.fullmatch(hint):
        others = _retyped_with(_NAMED.findall(fetch[2] or ""), message, context)
        named = f"; or type {listing(others, None, last='or')}" if others else ""
        return f"{fetch[1]}, then {listing(_retyped_with(_NAMED.findall(message)[:1], message, context))}{named}"
    if (option := _REFUSED.match(message)) and len(_REFUSED.findall(message)) == 1:
        return _with_values(option, hint, context)
    if (names := _SEVERAL.fullmatch(hint)) and (lines := _retyped_with(_NAMED.findall(names[0]), message, context)):
        return f"type {listing(lines, None, last='or')}"
    meant = _MEANT.fullmatch(hint)
    if meant is None:
        return _answer_unknown(message, missing, context) or hint
    if not (lines := _retyped_with((meant[1],), message, context)):
        return hint
    is_cluster = message.startswith("no cluster")
    other = _answer_unknown(message, missing, context) if is_cluster else ""
    return f"{hint} Type {listing(lines)}{f'; {other}' if other else ''}"


def _retyped_with(names: Iterable[str], message: str, context: click.Context) -> list[str]:
    """Return the line that was typed with each of the names for the one that a message refuses; none if it is unclear.

    A word may hold more than the name, such as a range of revisions.
    """
    verb, typed = str(context.invoked_subcommand), context.meta.get(TYPED, ())
    wrong = re.compile(rf"(?<![\w-]){re.escape(next(iter(_NAMED.findall(message)), ' '))}(?![\w-])")
    if len([word for word in typed if wrong.search(word)]) != 1:
        return []
    shown = [name.replace("\\", r"\\") for name in names]
    return [_retyped(context, verb, [wrong.sub(name, word) for word in typed]) for name in shown]


def _with_values(refused: re.Match[str], hint: str, context: click.Context) -> str:
    """Return a hint with the whole line for each value of an option that it names, for the one that is refused."""
    verb, typed = str(context.invoked_subcommand), context.meta.get(TYPED, ())
    option, value = refused.groups()
    places = [at for at, word in enumerate(typed) if word in (value, f"{option}={value}")]
    if len(places) != 1:
        return hint

    def whole(code: re.Match[str]) -> str:
        named = (code[1],) if typed[places[0]] == value else (option, code[1])
        return f"`{_retyped(context, verb, [*typed[: places[0]], *named, *typed[places[0] + 1 :]])}`"

    return re.sub(rf"`{option} ([^`]+)`", whole, hint)


def _from_folder(folder: str, context: click.Context) -> str:
    """Return the line that was typed, for a platform in another folder than the one that was named or is here."""
    typed = list(context.meta.get(TYPED, ()))
    for name in ("-C", "--directory"):
        at, _, _, size = _written(name, typed)
        del typed[at : at + size]
    return join(["gpuplan", *(() if folder == "." else ("-C", folder)), str(context.invoked_subcommand), *typed])


def _answer_several(message: str, missing: str, context: click.Context) -> str:
    """Return a line to type for each of several names that a comma joins, or for nodes that no file lists."""
    match, typed = _UNKNOWN.fullmatch(message), context.meta.get(TYPED, ())
    verb = str(context.invoked_subcommand)
    joint = next(filter(None, match.group("name", "called", "named")), "") if match else ""
    parts, at = joint.split(","), next((at for at, word in enumerate(typed) if joint and joint in word), -1)
    if len(parts) > 1 and at >= 0 and all(find_kinds(part, context) for part in parts):
        words = ([*typed[:at], typed[at].replace(joint, part), *typed[at + 1 :]] for part in parts)
        return f"one at a time: type {listing([_retyped(context, verb, each) for each in words], None)}"
    at, _, value, size = _written("--nodes", typed)
    if not missing or value != missing or "/" in missing or PurePath(missing).suffix in (*ENDINGS, ".txt", ".yml"):
        return ""
    names = join(missing.split(","))
    line = _retyped(context, verb, [*typed[:at], "--nodes", "-", *typed[at + size :]])
    maker = f"printf '%s\\n' {names}" if verb == "rollout" else f"kubectl get nodes {names} -o json"
    return f"`--nodes` takes a file: type `{maker} | {line}`"


def _answer_unknown(message: str, missing: str, context: click.Context) -> str:
    group = cast("click.Group", context.command)
    command = group.get_command(context, context.invoked_subcommand or "")
    match = _UNKNOWN.fullmatch(message)
    if match and (match["named"] or "").startswith("spec."):
        return f"name the document first: `gpuplan trace KIND/NAME {match['named']}`"
    name = missing or (next(filter(None, match.group("name", "called", "named", "span")), "") if match else "")
    if command is None or not name:
        return ""
    path, names = f"gpuplan {command.name}", _names_of(command)
    if phrase := PHRASES.get(f"{command.name} {name}"):
        return phrase.rstrip(".")
    if name in ("all", "*") and match and match["kind"] == "cluster" and "POOL" not in names:
        return f"leave `-c` out for all clusters: `{path}`"
    known = _DOCUMENTS.get(match["kind"] or "", "") if match else "revision"
    if known == "Cluster" and (cluster := _cluster_in(name, context)):
        return f"type `{path} -c {cluster}`"
    is_dump = missing and "DUMP..." in names and not _cluster_in(name, context)
    if match and match["called"] and any(kind.islower() for kind in find_kinds(name, context)):
        return ""
    answer = "" if is_dump else _answer_thing(name, context, names, path, but=known)
    return (answer or (_answer_case(MISSING, names, path) if missing else "")).rstrip(".")


def refuse_clusters(context: click.Context, value: T) -> T:
    """Raise `click.UsageError` if an argument that takes files names a cluster."""
    for word in (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ():
        name = "" if os.path.exists(word) and "/" not in word else _cluster_in(word, context)  # noqa: PTH110 - as typed
        if name:
            other = next((cluster for cluster in cluster_names(context) if cluster != name), "")
            both = f" `git diff --no-index out/{name} out/{other}` compares two clusters." * (
                context.info_name == "diff"
            )
            raise click.UsageError(f"`{word}` names a cluster. {_type_cluster(context, name)}{both}", context)
    return value


def _find_row(table: Mapping[str, T], word: str) -> T | None:
    return next((row for words, row in table.items() if word in words.split()), None)


def _answer_option(option: str, context: click.Context, typed: Sequence[str]) -> str:
    """Return what to type instead of an option."""
    root, group = context.find_root(), cast("click.Group", context.find_root().command)
    verbs = {name: each for name in group.list_commands(root) if (each := group.get_command(root, name))}
    verb = str(context.info_name) if context.parent else next((word for word in typed if word in verbs), "")
    names = _names_of(verbs[verb]) if verb else frozenset[str]()
    command = f"gpuplan {verb}".rstrip()
    words = list(typed)
    if not context.parent and verb:
        words.remove(verb)
    if option == "-=" and (flag := next((word[:2] for word in typed if word[2:3] == "="), "")):
        return f"`{flag}` takes no value behind `=`: type `{flag}`, or `{flag} VALUE` if it takes one."
    at, option, value, size = _written(option, words)
    before, behind = words[:at], words[at + size :]
    rest = _retyped(root, verb, [*before, *words[at + 1 :]])
    if option in names:
        where = "Type" if context.parent else "Type the option after the command:"
        word = option + words[at].lstrip("-")[len(option.lstrip("-")) :]
        return f"{where} `{_retyped(root, verb, [*before, word, *words[at + 1 :]])}`."
    if option == "--version":
        return "Type `gpuplan version`."
    if os.path.isdir(os.path.join(value, OVERLAYS)) and value:  # noqa: PTH112, PTH118 - as it is typed
        return f"Type `{join(['gpuplan', '-C', value, verb, *before, *behind])}`."
    if argument := _as_argument(value, names, [*before, *behind], context):
        return f"Type `{_retyped(root, verb, [*before, argument, *behind])}`."
    if (top := value.partition("/")[0]) in (OVERLAYS, "policies") and "-c" in names:
        cluster = next((name for name in cluster_names(context) if value.startswith(f"{OVERLAYS}/{name}/")), "")
        chosen = ("-c", cluster) if cluster else _option_for(value, names, context)
        line = _retyped(root, verb, [*before, *chosen, *behind])
        return f"`{command}` reads {top}/ by itself: type `{line}`."
    if verb and (same := _same_as(option, value, verbs[verb], context)):
        is_flag = len(same) == 1 or same == ("-o", option.lstrip("-"))
        kept = words[at + 1 :] if is_flag else behind
        return f"Type `{_retyped(root, verb, [*before, *same, *kept])}`."
    named = {"rest": rest, "bare": _retyped(root, verb, [*before, *behind]), "value": value}
    argument = value or ("POOL" if option == "--pool" else "FILE")
    named["placed"] = _retyped(root, verb, [*before, *(() if argument in before + behind else (argument,)), *behind])
    if answer := _answer_foreign(option, verbs.get(verb), named, context):
        return answer
    if near := _near_options(option, [name for name in names or _names_of(group) if name.startswith("--")]):
        return f"Did you mean {listing(near, 3, last='or')}?"
    if owners := [each for each in verbs.values() if option in _names_of(each)]:
        return _answer_owners(option, value, owners, context)
    return f"`{command} --help` lists the options."


def _as_argument(value: str, names: frozenset[str], others: Sequence[str], context: click.Context) -> str:
    """Return the value of an option that a verb lacks as the verb's argument; empty if it is none or one is there."""
    if any(not word.startswith("-") and not before.startswith("-") for before, word in pairwise(("", *others))):
        return ""
    kinds = [kind for kind in find_kinds(value, context) if kind[:1].isupper()] if value else []
    if "TARGET" in names:
        return value if "/" in value else f"{kinds[0]}/{value}" if kinds else ""
    return value if "POOL" in names and "Pool" in kinds else ""


def _answer_foreign(option: str, verb: click.Command | None, named: Mapping[str, str], context: click.Context) -> str:
    """Return the answer to an option of other programs, with what was ``named`` beside it; empty if it is none."""
    value = named["value"]
    names = _names_of(verb) if verb else frozenset[str]()
    command = f"gpuplan {verb.name}" if verb else "gpuplan"
    if verb and option.startswith(("--out", "--html")) and (answer := _answer_file(value, verb, context)):
        return answer
    is_name = _find_row(SAME, option) and {*_VALUES.values()}.intersection(find_kinds(value, context))
    if verb and is_name and (answer := _answer_thing(value, context, names, command)):
        return answer
    if row := _find_row(OPTIONS, option):
        known = {"pool": value or "NAME", "rev": value or "REV", "tenant": _tenant_in(value, context) or "NAME"}
        share = next(iter(_NUMBER.findall(value)), "")
        known["share"] = f"{float(share) * 100:g}%" if share and float(share) <= 1 else f"{share or 30}%"
        return _answer_case(row, names, command, **{**named, **known, "value": value or "NAME"})
    return ""


def _answer_owners(option: str, value: str, owners: Sequence[click.Command], context: click.Context) -> str:
    """Return the commands that have an option; of only one also what to type, and what the option does."""
    if len(owners) > 1:
        return f"It is an option of {listing([f'gpuplan {each.name}' for each in owners], 3)}."
    owner = owners[0]
    parameter = next(each for each in owner.params if isinstance(each, click.Option) and option in each.opts)
    needed = [each.make_metavar(context) for each in owner.params if isinstance(each, click.Argument) and each.required]
    given = [] if parameter.is_flag else [quote(value) if value else parameter.make_metavar(context)]
    line = " ".join(["gpuplan", str(owner.name), *needed, option, *given])
    return (
        f"It is an option of `gpuplan {owner.name}`: `{line}`. {(parameter.help or '').partition(' [')[0].rstrip('.')}."
    )


def _same_as(option: str, value: str, command: click.Command, context: click.Context) -> tuple[str, ...]:
    """Return the option that means what an unknown one does, with the value if it takes one; empty if none does."""
    names = _names_of(command)
    meant = (_find_row(SAME, option) or "").split()
    formats = next((_choices_of(each, context) for each in command.params if "--output-format" in each.opts), [])
    is_format = _find_row(OPTIONS, option) is _find_row(OPTIONS, "--json") or option == "--output"
    if is_format and (format_ := next((word for word in (option.lstrip("-"), value) if word in formats), "")):
        return "-o", format_
    if value and (meant or bool(_find_row(OPTIONS, option))) and command.name != "init":
        if "--tenant" in meant and "--tenant" in names and (tenant := _tenant_in(value, context)):
            return "--tenant", tenant
        if selected := _option_for(value, names, context):
            return selected
    is_file = PurePath(value).suffix in ENDINGS
    for name in (name for name in meant if name in names and not (name == "--out" and is_file)):
        parameter = next(each for each in command.params if name in each.opts)
        if getattr(parameter, "is_flag", False) or getattr(parameter, "count", False):
            return (name,)
        kind = _VALUES.get(name)
        is_new = (name == "--cluster" and command.name == "init") or (name == "--to" and _SHARING.fullmatch(value))
        if value and (kind is None or is_new or kind in find_kinds(value, context)):
            return name, value
    return ()


_EVERYTHING: Final = ("-A", "--all", "--all-namespaces", "--all-clusters")
_VALUES: Final = {"--cluster": "Cluster", "--tenant": "Tenant", "--pool": "Pool", "--to": "MigLayout"}
"""The options whose values are names in the platform, with their kinds."""


def _written(option: str, typed: Sequence[str]) -> tuple[int, str, str, int]:
    """Return the place of an option that click does not know, its whole name, its value, and the number of its words.

    Programs of Go take `-json` and `-target=a`. The value is behind `=`, or seems to be the next word.
    """
    for at, word in enumerate(typed):
        name, equals, value = word.partition("=")
        is_long = _knows(name)
        if name == option or (is_long and name[:2] == option):
            following = next(iter(typed[at + 1 : at + 2]), "-")
            if not equals and not following.startswith("-"):
                return at, f"-{name}" if is_long else name, following, 2
            return at, f"-{name}" if is_long else name, value, 1
    return len(typed), option, "", 0


def _written_as(parameter: click.Parameter | None, typed: Sequence[str]) -> tuple[int, str, str, int]:
    """Return what `_written` does, under any name of a parameter; its number of words is 0 if none is there."""
    found = (_written(option, typed) for option in (parameter.opts if parameter else ()))
    return next((each for each in found if each[3]), (0, "", "", 0))


def _knows(word: str) -> bool:
    """Whether a word with one dash is a long option that has an answer."""
    return bool(_LONG.fullmatch(word) and (_find_row(SAME, f"-{word}") or _find_row(OPTIONS, f"-{word}")))


def _retyped(context: click.Context, verb: str, words: Sequence[str]) -> str:
    """Return a command line with a verb, and with the folder that was named before the verb."""
    folder = str(context.find_root().ensure_object(dict).get("directory", ""))
    is_named = not folder or folder in words
    command = cast("click.Group", context.find_root().command).get_command(context.find_root(), verb) if verb else None
    if command and not any(isinstance(each, click.Argument) for each in command.params):
        words = _placed(words, _names_of(command), context)
    return join(["gpuplan", *(() if is_named else ("-C", folder)), *filter(None, [verb]), *words])


def _tenant_in(value: str, context: click.Context) -> str:
    """Return the tenant of this name, or with this namespace; empty if there is none."""
    tenants = [tenant for plan in plans(context) for tenant in plan.tenants] if value else []
    named = [tenant.name for tenant in tenants if tenant.name == value]
    return next(iter(named or [tenant.name for tenant in tenants if value in tenant.spec.namespaces]), "")


def _near_options(option: str, known: Iterable[str]) -> list[str]:
    """Return the options that share a word, or nearly all letters, with one that is unknown."""
    words = option.lstrip("-").replace("_", "-").split("-")
    shared = [
        name
        for name in sorted(known)
        if (word := name[2:].split("-")[0]) == words[0] or (len(words[0]) >= _STEM and _share_stem(word, words[0]))
    ]
    near = closest(option, known, likeness=_UNLIKELY)
    is_meant = near and (near[2:3] == option[2:3] or near == closest(option, known, likeness=_SURE))
    return [str(near)] if is_meant else shared


def _share_stem(word: str, other: str) -> bool:
    return len(word) >= _STEM and (word.startswith(other) or other.startswith(word))


def _answer_choice(value: str, parameter: click.Parameter, context: click.Context, typed: Sequence[str]) -> str:
    """Return what to type instead of a format, or of another word that a parameter does not take."""
    names, path = _names_of(context.command), context.command_path
    for option in parameter.opts if "--output-format" in parameter.opts else ():
        at, _, _, size = _written(option, typed)
        path = _retyped(context, str(context.info_name), [*typed[:at], *typed[at + size :]]) if size else path
    format_ = re.split(r"[=:,]", value)[0].lower()
    choices, is_format = _choices_of(parameter, context), "--output-format" in parameter.opts
    begun = [word for word in choices if word[:_BEGUN] == format_[:_BEGUN]]
    near = closest(format_, choices) or (begun[0] if len(begun) == 1 else None)
    if value.partition(".")[0].lower() in choices and "." in value:
        return f"Type `gpuplan explain {value}`, or `{path} {value.partition('.')[0].lower()}`."
    if near and is_format:
        return f"Did you mean `{path} -o {near}`?"
    if not is_format:
        near = near or next((ours for ours in [_find_row(CHOICES, format_)] if ours in choices), None)
        at, option, _, size = _written_as(parameter, typed)
        line = _retyped(context, str(context.info_name), [*typed[:at], option, str(near), *typed[at + size :]])
        return f"Did you mean `{near}`?{f' Type `{line}`.' if size else ''}" if near else ""
    if answer := _answer_file(value, context.command, context):
        return answer
    if row := _find_row(FORMATS, format_):
        return _answer_case(row, names, path, value=value)
    if format_ in ("wide", "table") and "table" in choices:
        return f"The table is there without `-o`: type `{path}`."
    group = cast("click.Group", context.find_root().command)
    owners = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        options = [each for each in command.params if "--output-format" in each.opts] if command else []
        owners += [f"gpuplan {name} -o {format_}" for each in options if format_ in _choices_of(each, context)]
    if "--out" in names and not owners:
        return f"`{path} --out {quote(value)}` names the folder to write."
    return f"Other commands have this format, such as {listing(owners[:2])}." if owners else ""


def _choices_of(parameter: click.Parameter, context: click.Context) -> list[str]:
    return [str(item.value) for item in parameter.shell_complete(context, "")]


def _answer_file(value: str, command: click.Command, context: click.Context) -> str:
    """Return how a command writes to a file; empty if the value names none."""
    file = PurePath(value.rpartition("=")[2])
    if not value or (not file.suffix and "/" not in value) or "{" in value:
        return ""
    names, path = _names_of(command), f"gpuplan {command.name}"
    if "--output" in names:
        return f"`{path} -o {quote(str(file))}` writes the page to a file."
    if "--out" in names and not file.suffix:
        return f"`{path} --out {quote(str(file))}` names the folder to write."
    if "--stdout" in names and file.suffix in (".yaml", ".yml"):
        return f"`{path} -c NAME --stdout` prints the objects in YAML; redirect it to `{file}`."
    own = next((_choices_of(each, context) for each in command.params if "--output-format" in each.opts), [])
    if not own:
        return ""
    format_ = ENDINGS.get(file.suffix, "")
    format_ = format_ if format_ in own else own[0]
    if "FORMAT[=FILE]" in names:
        return f"`{path} -o {format_}={quote(str(file))}` writes to a file."
    return f"`{path} -o {format_}` prints this format; redirect it to `{file}`."


def _names_of(command: click.Command) -> frozenset[str]:
    """Return the options of a verb, its arguments as help shows them, and its name: all that a case may be."""
    context = click.Context(command)
    names = (name for each in command.params for name in (*each.opts, each.make_metavar(context)))
    return frozenset({command.name or "", *names})


def _answer_case(cases: Cases, names: frozenset[str], command: str, **named: str) -> str:
    answer = next((answer for case, answer in cases.items() if case == ANY or case in names), "")
    return answer.format(command=command, **named)


def _answer_thing(word: str, context: click.Context, names: frozenset[str], command: str, *, but: str = "") -> str:
    """Return what to type with the name of something known; empty if the platform and gpuplan know none."""
    noun, _, name = word.partition("/")
    kinds = [kind for kind in find_kinds(word, context) if kind != but]
    if not kinds and name and (kind := _find_row(KINDS, noun.lower())) in find_kinds(name, context):
        kinds, word = [str(kind)], name
    return _answer_case(THINGS[kinds[0]], names, command, name=word, model=model_with(word)) if kinds else ""


def _answer_word(extra: str, context: click.Context, typed: Sequence[str]) -> str:
    words = [word for word in typed if not word.startswith("-")]
    word, verb = extra.split(maxsplit=1)[0], str(context.info_name)
    names = _names_of(context.command)
    phrase = next((answer for each in words if (answer := PHRASES.get(f"{verb} {each.lower()}"))), "")
    if phrase:
        return phrase
    if line := _answer_order(typed, names, context):
        return f"Type `{line}`."
    if verb == "diff" and len(words) > 1:
        return f"Type `gpuplan diff {words[0]}..{word}`."
    if "POOL" in names and all("Pool" in find_kinds(each, context) for each in (words[0], word)):
        lines = [join(["gpuplan", verb, *(each for each in typed if each != other)]) for other in (word, words[0])]
        return f"One at a time: type {listing(lines, None)}."
    if os.path.isdir(os.path.join(word, OVERLAYS)):  # noqa: PTH112, PTH118 - as it is typed
        return f"Type `gpuplan -C {quote(word)} {verb}`."
    kind, name = _object_in([word.lower(), *words[words.index(word) + 1 :]] if word in words else [word], context)
    if kind in THINGS and name:
        return _answer_case(THINGS[kind], names, context.command_path, name=name)
    if answer := _answer_thing(word, context, names, context.command_path):
        return answer if words[0] == word else answer.replace(" POOL ", f" {words[0]} ")
    if row := _find_row(NOUNS, word.lower()):
        return row
    return _answer_case(WORDS, names, context.command_path)


def _answer_order(typed: Sequence[str], names: frozenset[str], context: click.Context) -> str:
    """Return the line with each word behind the option that takes it; empty if more arguments are left than one."""
    placed = _placed(typed, names, context)
    left = [word for before, word in pairwise(("", *placed)) if not word.startswith("-") and not before.startswith("-")]
    known = [
        word for word in left if "[REV..REV]" in names or ("POOL" in names and "Pool" in find_kinds(word, context))
    ]
    is_clear = len(left) == len(known) <= 1 and placed != list(typed)
    if is_clear and "[REV..REV]" in names and left and ".." not in left[0]:
        placed.insert(placed.index(left[0]), "--against")
    return _retyped(context, str(context.info_name), placed) if is_clear else ""


def _placed(typed: Sequence[str], names: frozenset[str], context: click.Context) -> list[str]:
    """Return words with the option before each that names a cluster, a pool, a tenant or a sharing."""
    placed: list[str] = []
    for before, word in pairwise(("", *typed)):
        is_value = word.startswith("-") or (before.startswith("-") and "=" not in before)
        is_sharing = "--to" in names and (_SHARING.fullmatch(word) or "MigLayout" in find_kinds(word, context))
        option = () if is_value else ("--to", word) if is_sharing else _option_for(word, names, context)
        placed += option or (word,)
    return placed


def _option_for(word: str, names: frozenset[str], context: click.Context) -> tuple[str, ...]:
    if "-c" in names and (name := _cluster_in(word, context)):
        return "-c", name
    kinds = find_kinds(word, context) if {"--pool", "--tenant"} & names else []
    options = ((f"--{kind.lower()}", word) for kind in ("Pool", "Tenant") if kind in kinds)
    return next((option for option in options if option[0] in names), ())


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
