"""Verbs, options and words of other programs: each answer names a command, and the command parses."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from gpuplan.cli.main import main
from gpuplan.terminal import verbs
from gpuplan.terminal.data.habits import OPTIONS, VERBS, WORDS
from tests.cli.platforms import a_platform
from tests.cli.runs import run

REACHED = 77
"""The exit code of a command whose options and arguments have been read."""
OURS = main.list_commands(click.Context(main))
FOREIGN = [word for words in VERBS for word in words.split()]

Unparsed = Callable[[str], list[str]]


@pytest.fixture(name="unparsed")
def _unparsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Unparsed:
    """Return a function that lists the commands of an answer that gpuplan would refuse."""
    (tmp_path / "DIR").mkdir()

    def end(*_: object, **__: object) -> None:
        raise click.exceptions.Exit(REACHED)

    def unparsed(answer: str) -> list[str]:
        commands = re.findall(r"`(gpuplan[^`]*)`", answer)
        return [command for command in commands if not _parses(command, tmp_path)] if commands else [answer]

    monkeypatch.setattr(verbs, "_begin", end)
    return unparsed


def _parses(command: str, folder: Path) -> bool:
    """Whether gpuplan knows the verb and the options of a command; a required argument may be missing."""
    done = run(*shlex.split(command)[1:], cwd=folder)
    return done.code == REACHED or command.endswith("--help") or "Error: Missing argument" in done.err


def test_a_verb_has_one_answer_and_is_none_of_gpuplan() -> None:
    assert len(FOREIGN) == len({*FOREIGN})
    assert {*FOREIGN} & {*OURS} == set()


@pytest.mark.parametrize("verb", FOREIGN)
def test_a_foreign_verb_is_answered_with_commands_that_parse(verb: str, tmp_path: Path, unparsed: Unparsed) -> None:
    done = run(verb, "-c", "prod", cwd=tmp_path)

    assert done.code == 2
    assert unparsed(done.err.partition(f"No such command '{verb}'.")[2]) == []


COMMON = """
    plan preview apply sync deploy lint test fmt format generate render template compile list get status view describe
    new create add upgrade update fix docs cost price delete destroy remove rm run install doctor watch config login
    context repair export convert migrate edit set top logs rollback undo history policy ls verify audit ci
"""


def test_the_verbs_of_common_programs_are_known() -> None:
    assert {*COMMON.split()} - {*FOREIGN} == set()


@pytest.mark.parametrize(
    ("verb", "command"),
    [
        ("plan", "gpuplan diff"),
        ("lint", "gpuplan validate"),
        ("sync", "gpuplan build"),
        ("template", "gpuplan build"),
        ("get", "gpuplan show"),
        ("new", "gpuplan init DIR"),
    ],
)
def test_the_first_command_of_an_answer_does_what_the_verb_does(verb: str, command: str) -> None:
    assert re.findall(r"`(gpuplan[^`]*)`", run(verb).err)[0] == command


@pytest.mark.parametrize("verb", ["apply", "sync", "deploy"])
def test_who_wants_to_apply_learns_who_does(verb: str) -> None:
    answer = run(verb).err

    assert "gpuplan never talks to a cluster" in answer
    assert "Argo CD or Flux syncs out/" in answer


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("biuld", "build"), ("sho", "show"), ("valid", "validate"), ("Explian", "explain"), ("rolout", "rollout")],
)
def test_a_misspelling_is_guessed(typed: str, meant: str) -> None:
    assert f"Did you mean '{meant}'?" in run(typed).err


@pytest.mark.parametrize("typed", ["link", "plant", "pan", "in", "shop", "trap"])
def test_another_short_word_is_not_guessed(typed: str) -> None:
    assert "Did you mean" not in run(typed).err


def test_help_takes_a_verb() -> None:
    assert run("help", "rollout") == run("rollout", "--help")
    assert run("help") == run("--help")
    assert "`gpuplan diff`" in run("help", "plan").err


def test_help_is_shown_beside_what_is_wrong() -> None:
    assert run("build", "--dry-run", "-h") == run("build", "--help")
    assert run("build", "prod", "-h") == run("build", "--help")


@pytest.mark.parametrize("option", [option for options in OPTIONS for option in options.split()])
def test_a_foreign_option_is_answered_with_commands_that_parse(option: str, tmp_path: Path, unparsed: Unparsed) -> None:
    answers = {verb: run(verb, option, cwd=tmp_path) for verb in ("", *OURS)}
    refused = {verb: done.err for verb, done in answers.items() if "No such option" in done.err}

    assert refused
    assert {verb: wrong for verb, answer in refused.items() if (wrong := unparsed(answer.partition("option")[2]))} == {}


def test_an_option_has_one_answer() -> None:
    options = [option for options in OPTIONS for option in options.split()]

    assert len(options) == len({*options})


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("show -n serving", "`gpuplan show --tenant NAME` selects"),
        ("build -n serving", "`gpuplan show --tenant NAME` shows"),
        ("validate -f x.yaml", "`gpuplan validate FILE` checks a file"),
        ("pack -f x.yaml", "`gpuplan pack FILE`"),
        ("build --dry-run", "`gpuplan build --diff` shows what would change, and `gpuplan build --check`"),
        ("retain --dry-run", "`gpuplan retain` writes nothing without `--write`"),
        ("rollout a --layout b", "`gpuplan rollout POOL --to SHARING`"),
        ("validate --fix", "each finding of `gpuplan validate` ends with the text to write"),
        ("validate --output json", "`gpuplan validate -o json`"),
        ("explain -o yaml GPU203", "`gpuplan rules -o json`"),
        ("report -o json", "type `gpuplan show -o json`, or `gpuplan report -o report.html`"),
        ("report --json", "`gpuplan report -o FILE`"),
        ("show -A", "`gpuplan show` takes all clusters unless `-c NAME`"),
        ("drift --kubeconfig x", "`gpuplan drift FILE` reads what `kubectl get --context NAME` printed"),
        ("validate --watch", "`gpuplan report --serve`"),
        ("--dry-run build", "`gpuplan build --diff`"),
        ("-c prod show", "Type the option after the command: `gpuplan show -c prod`"),
        ("validate --stdout", "It is an option of `gpuplan build`."),
        ("validate --clutser prod", "Did you mean"),
        ("validate -c dev,prod", "type `-c dev -c prod`"),
        ("pack --margin 1", "1 is ambiguous: type `1%` or `100%`"),
        ("rollout a100 seven-small", "`gpuplan rollout POOL --to SHARING`"),
        ("report page.html", "`gpuplan report -o FILE`"),
        ("init here prod", "`gpuplan init DIR --cluster prod`"),
        ("explain", "For example: `gpuplan explain GPU203`"),
        ("rollout", "For example: `gpuplan rollout a100-shared --cluster prod --to seven-small`"),
    ],
)
def test_the_answer_to(command: str, answer: str) -> None:
    done = run(*shlex.split(command))

    assert done.code == 2
    assert answer in " ".join(done.err.split())


@pytest.mark.parametrize("case", WORDS)
def test_the_answer_to_a_word_parses(case: str, tmp_path: Path, unparsed: Unparsed) -> None:
    assert unparsed(WORDS[case].format(command="gpuplan report" if case == "--output" else "gpuplan rollout")) == []


@pytest.mark.parametrize("verb", ["build", "show", "validate", "diff", "pack", "report"])
@pytest.mark.parametrize("form", ["dev", "dev/", "overlays/dev", "out/dev"])
def test_a_cluster_is_named_by_its_option(verb: str, form: str, tmp_path: Path, unparsed: Unparsed) -> None:
    done = run(verb, form, cwd=a_platform(tmp_path))

    assert done.code == 2
    assert f"Type `gpuplan {verb} -c dev`." in done.err
    assert unparsed(done.err.partition("Type")[2]) == []


@pytest.mark.parametrize("verb", ["build", "validate"])
def test_a_cluster_of_another_folder_is_known(verb: str, tmp_path: Path) -> None:
    a_platform(tmp_path / "platform")

    assert f"Type `gpuplan {verb} -c dev`." in run(verb, "dev", "-C", "platform", cwd=tmp_path).err


def test_another_platform_is_named_by_its_option(tmp_path: Path) -> None:
    a_platform(tmp_path / "platform")

    assert "Type `gpuplan -C platform build`." in run("build", "platform", cwd=tmp_path).err


@pytest.mark.parametrize("verb", OURS)
def test_an_argument_too_many_or_too_few_is_answered(verb: str, tmp_path: Path, unparsed: Unparsed) -> None:
    errors = [run(verb, *words, cwd=tmp_path).err for words in ((), ("a",) * 4)]
    answers = [error.partition("argument")[2] for error in errors if "argument" in error]

    assert [unparsed(answer) for answer in answers if "`gpuplan" in answer] == [[] for _ in answers]
