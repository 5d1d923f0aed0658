"""Verbs, options and words of other programs: each answer names a command, and the command parses."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import pytest

from gpuplan.cli.main import main
from gpuplan.terminal import verbs
from gpuplan.terminal.data.habits import (
    FORMATS,
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
)
from tests.cli.platforms import a_platform
from tests.cli.runs import run
from tests.git import a_repository, commit

REACHED = 77
"""The exit code of a command whose options and arguments have been read."""
OURS = main.list_commands(click.Context(main))
FOREIGN = [word for table in (VERBS, NOUNS) for words in table for word in words.split()]

WITH = {
    "POOL": "rollout",
    "DUMP...": "drift",
    "TARGET": "trace",
    "[DEMAND...]": "pack",
    "--against": "diff",
    "--output": "report",
    "init": "init",
}
"""A command that has what a case asks for; `show` has the others."""

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
        ("template", "gpuplan build -c dev --stdout"),
        ("get", "gpuplan show"),
        ("new", "gpuplan init DIR"),
    ],
)
def test_the_first_command_of_an_answer_does_what_the_verb_does(verb: str, command: str, tmp_path: Path) -> None:
    assert re.findall(r"`(gpuplan[^`]*)`", run(verb, cwd=a_platform(tmp_path)).err)[0] == command


@pytest.mark.parametrize(
    ("clusters", "answer"),
    [
        (("dev", "prod"), "`gpuplan build -c dev --stdout` or `gpuplan build -c prod --stdout` prints"),
        (
            ("a", "b", "c"),
            "`gpuplan build -c a --stdout`, `gpuplan build -c b --stdout` or `gpuplan build -c c --stdout`",
        ),
        (("a", "b", "c", "d"), "`gpuplan build -c NAME --stdout` (NAME is `a`, `b`, `c` or `d`) prints"),
    ],
)
def test_a_line_is_given_for_each_of_few_clusters(clusters: tuple[str, ...], answer: str, tmp_path: Path) -> None:
    assert answer in run("build", "-o", "yaml", cwd=a_platform(tmp_path, *clusters)).err


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


@pytest.mark.parametrize("verb", ["abracadabra", "zap", "perform", "terminal"])
def test_an_unknown_verb_is_answered_with_the_usual_commands(verb: str, tmp_path: Path) -> None:
    answer = run(verb, cwd=tmp_path).err

    assert "`gpuplan --help` lists the commands" in answer
    assert re.findall(r"^  ([a-z]+)  +[A-Z].*\.$", answer, re.MULTILINE) == [
        *("init", "validate", "show", "build", "diff", "rollout", "report", "explain")
    ]


@pytest.mark.parametrize("program", PREFIXES.split())
def test_the_name_of_another_program_is_passed_over(program: str, tmp_path: Path) -> None:
    a_platform(tmp_path)

    assert "Type `gpuplan diff -c dev`." in run(program, "diff", "dev", cwd=tmp_path).err
    assert "`gpuplan show`" in run(program, "list", cwd=tmp_path).err


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("describe pool research", "Type `gpuplan show --pool research`."),
        ("get pool/research", "Type `gpuplan show --pool research`."),
        ("inspect research", "Type `gpuplan show --pool research`."),
        ("view tenant research", "Type `gpuplan show --tenant research`."),
        ("describe cluster dev", "Type `gpuplan show -c dev`."),
        ("delete pool research", "`gpuplan trace Pool/research` names the file"),
        ("edit Tenant/research", "`gpuplan trace Tenant/research` names the file"),
        ("create tenant serving", "`gpuplan explain Tenant` lists the fields"),
        ("get pools", "`gpuplan show --pool research` selects a pool"),
        ("get pools -o yaml", "Type `gpuplan show -o yaml`."),
        ("describe pool research -o yaml", "Type `gpuplan show --pool research -o yaml`."),
        ("get pool/research -o wide", "Type `gpuplan show --pool research -o wide`."),
        ("get tenants -c dev -o json", "Type `gpuplan show -c dev -o json`."),
        ("get pools -n research -A -o yaml", "Type `gpuplan show --tenant research -o yaml`."),
        ("get -n research pools", "`gpuplan show --pool research` selects a pool"),
        ("get rules", "Type `gpuplan rules`."),
        ("list gpus", "`gpuplan explain gpus`"),
        ("list-gpus", "`gpuplan explain gpus`"),
        ("pools:list", "`gpuplan show --pool research`"),
        ("show-pools", "`gpuplan show --pool research`"),
        ("state list", "`gpuplan drift FILE`"),
        ("top nodes", "`gpuplan pack --queries`"),
        ("cordon gpu-1", "type `kubectl cordon NODE`. `gpuplan show --away NODE`"),
        ("commit -m x", "type `git commit`"),
        ("git commit", "type `git commit`"),
        ("status", "`gpuplan drift FILE`"),
        ("npm run build", "Type `gpuplan build`."),
        ("rollout other research", "type `gpuplan rollout research --to SHARING`"),
        ("explain kai", "did you mean"),
        ("argocd app diff dev", "Type `gpuplan diff -c dev`."),
        ("kubectl explain pool.spec", "Type `gpuplan explain pool.spec`."),
        ("research", "`gpuplan show --pool research`"),
        ("dev", "`gpuplan show -c dev`"),
        ("GPU203", "`gpuplan explain GPU203`"),
        ("show pools", "`gpuplan show --pool research`"),
        ("show research", "Type `gpuplan show --pool research`."),
        ("show dev research", "Type `gpuplan show -c dev --pool research`."),
        ("show pool research", "type `gpuplan show --pool research`."),
        ("show GPU203", "`gpuplan explain GPU203`"),
        ("show A100-80GB", "`gpuplan catalog A100-80GB`"),
        ("show 3g.40gb", "`gpuplan catalog A100-80GB`"),
        ("show kai", "`gpuplan show --scheduler kai`"),
        ("show policies/pool.yaml", "`gpuplan trace policies/pool.yaml:1`"),
        ("show HEAD~1", "`gpuplan diff HEAD~1..HEAD`"),
        ("build research", "`gpuplan show --pool research` shows it"),
        ("build dev other", "type `gpuplan build -c dev`."),
        ("diff HEAD~1 HEAD", "Type `gpuplan diff HEAD~1..HEAD`."),
        ("rollout status research", "`gpuplan rollout research --nodes FILE` lists the steps that are left"),
        ("rollout undo research", "`gpuplan rollout research --back`"),
        ("rollout status", "`gpuplan rollout research --nodes FILE` lists the steps that are left"),
        ("rollout dev --to x", "type `gpuplan rollout research -c dev --to SHARING`"),
        ("explain research", "`gpuplan show --pool research` shows it"),
        ("explain pool/research", "`gpuplan show --pool research` shows it"),
        ("trace research", "type `gpuplan trace Pool/research`"),
        ("catalog research", "`gpuplan show --pool research` shows it"),
        ("validate research", "`gpuplan show --pool research` shows it"),
        ("validate missing.yaml", "`gpuplan validate` checks the platform"),
        ("pack missing.yaml", "`gpuplan pack` without a file plans for the quotas"),
        ("import pool/research -c dev", "`gpuplan import --commands`"),
        ("drift missing.yaml", "`gpuplan import --commands`"),
        ("drift dev", "type `gpuplan drift FILE -c dev`"),
        ("show --tenant dev", "type `gpuplan show -c dev`"),
        ("show -c research", "type `gpuplan show --pool research`"),
        ("show -c overlays/dev", "type `gpuplan show -c dev`"),
    ],
)
def test_the_answer_to_a_name_or_a_phrase(typed: str, answer: str, tmp_path: Path) -> None:
    done = run(*shlex.split(typed), cwd=a_platform(tmp_path))

    assert done.code == 2
    assert answer in " ".join(done.err.split())


def test_a_pool_of_the_platform_is_no_phrase(tmp_path: Path) -> None:
    pool = a_platform(tmp_path) / "policies/pool.yaml"
    pool.write_text(pool.read_text().replace("name: research", "name: status"))

    assert "is left" not in run("rollout", "status", cwd=tmp_path).err


def test_trouble_about_something_else_keeps_its_help(tmp_path: Path) -> None:
    assert "did you mean `research`?" in run("rollout", "reserch", cwd=a_platform(tmp_path)).err


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        *((case, answer) for cases in THINGS.values() for case, answer in cases.items()),
        *((case, answer) for cases in OBJECTS.values() for case, answer in cases.items()),
        *MISSING.items(),
    ],
)
def test_the_answer_to_a_name_parses(case: str, answer: str, unparsed: Unparsed) -> None:
    command = f"gpuplan {WITH.get(case, 'show')}"

    assert unparsed(answer.format(command=command, kind="Pool", name="kai", model="A100-80GB")) == []


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_begins_with_a_verb_and_is_answered_with_commands_that_parse(phrase: str, unparsed: Unparsed) -> None:
    assert phrase.split(maxsplit=1)[0] in OURS
    assert unparsed(PHRASES[phrase]) == []


@pytest.mark.parametrize("format_", [*(format_ for formats in FORMATS for format_ in formats.split()), "wide", "x.md"])
@pytest.mark.parametrize("verb", ["build", "validate", "show", "diff", "rollout x", "pack", "drift x", "trace x"])
def test_a_foreign_format_is_answered_with_commands_that_parse(
    verb: str, format_: str, tmp_path: Path, unparsed: Unparsed
) -> None:
    done = run(*verb.split(), "-o", format_, cwd=tmp_path)

    assert done.code == REACHED or unparsed(done.err.partition("is not one of")[2]) == []


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("build -o yaml", "`gpuplan build -c NAME --stdout`"),
        ("show -o jsonpath={.x}", "`gpuplan show -o json`"),
        ("build -o wide", "`gpuplan show -o wide`"),
        ("validate -o html", "`gpuplan report -o report.html`"),
        ("show -o tabel", "Did you mean `gpuplan show -o table`?"),
        ("show -o plan.md", "`gpuplan show -o markdown` prints this format; redirect it to `plan.md`"),
        ("diff -o plan.md", "`gpuplan diff -o markdown=plan.md`"),
        ("show --output plan.md", "`gpuplan show -o markdown`"),
        ("build --output made/", "`gpuplan build --out made/`"),
        ("build --output x.yaml", "`gpuplan build -c NAME --stdout`"),
        ("validate --out x.sarif", "`gpuplan validate -o sarif=x.sarif`"),
        ("diff --stat", "`git diff --stat out/`"),
        ("build --set a=b", "write the value below policies/"),
        ("build -f values.yaml", "`gpuOperator.values` of a Cluster"),
        ("explain pool --recursive", "`gpuplan explain Pool` lists the fields"),
        ("rollout a --undo", "Type `gpuplan rollout a --back`."),
        ("show --since main", "`gpuplan diff main..HEAD`"),
        ("validate --since main", "Type `gpuplan validate --against main`."),
        ("validate -json", "`gpuplan validate -o json`"),
        ("rollout --pool a", "Type `gpuplan rollout a`."),
        ("show --node gpu-1", "`gpuplan show --away NODE`"),
        ("schema pools", "Did you mean `pool`?"),
        ("show --pools x", "Did you mean `--pool`?"),
        ("validate --warn", "Did you mean `--warnings-as-errors`?"),
        ("show --kluster x", "Did you mean `--cluster`?"),
        ("show --frobnicate", "`gpuplan show --help` lists the options"),
    ],
)
def test_the_answer_to_a_format_or_an_option(typed: str, answer: str, tmp_path: Path) -> None:
    done = run(*shlex.split(typed), cwd=tmp_path)

    assert done.code == 2
    assert answer in " ".join(done.err.split())


@pytest.mark.parametrize("verb", ["drift", "import", "pack", "rollout research --nodes", "diff --pods"])
def test_a_kubeconfig_is_answered_with_how_to_ask_the_cluster(verb: str, tmp_path: Path) -> None:
    (a_platform(tmp_path) / "kubeconfig").write_text("apiVersion: v1\nclusters: []\nkind: Config\n")

    answer = run(*shlex.split(verb), "kubeconfig", cwd=tmp_path).err

    assert "gpuplan reads none, and never connects to a cluster" in answer
    assert "KUBECONFIG=kubeconfig" in answer or "`kubectl --kubeconfig kubeconfig get" in answer


def test_a_value_that_is_known_by_another_word_is_no_format() -> None:
    assert "Did you mean" not in run("pack", "--objective", "beauty").err


@pytest.mark.parametrize("option", ["--set", "--stat", "--values", "--strict", "--wait", "--sport", "--tool"])
def test_an_option_is_not_guessed_by_its_letters_alone(option: str) -> None:
    assert "Did you mean" not in run("build", option).err


@pytest.mark.parametrize("option", [option for options in OPTIONS for option in options.split()])
def test_a_foreign_option_is_answered_with_commands_that_parse(option: str, tmp_path: Path, unparsed: Unparsed) -> None:
    answers = {verb: run(verb, option, cwd=tmp_path) for verb in ("", *OURS)}
    refused = {verb: done.err for verb, done in answers.items() if "No such option" in done.err}

    assert refused
    assert {verb: wrong for verb, answer in refused.items() if (wrong := unparsed(answer.partition("option")[2]))} == {}


@pytest.mark.parametrize("table", [OPTIONS, SAME])
def test_an_option_has_one_answer(table: Mapping[str, object]) -> None:
    options = [option for options in table for option in options.split()]

    assert len(options) == len({*options})


HABITS = """--all|-A|-o yaml|-o wide|-o manifests|-n research|--context dev|--context other|--kubeconfig x|--watch
    -l app=x|--set a=b|-f values.yaml|--recursive|--force|--yes|-auto-approve|--target research|-target=research|--prune
    --revision HEAD|--sync|--apply|--dry-run=server|-out plan.out|--out made|-json|--format json|--destroy|--write
    --diff|--batch 3|--stdout|--against HEAD|--version|--no-color|-d DIR|--debug|--name dev|-c dev|--pool research"""
VALUES = dict.fromkeys(("--cluster", "--tenant", "--to --pool", "--out --output"), ("research", "dev", ""))
MAIN = ("init new", "validate", "show", "build", "diff", "rollout research", "report", "explain Pool")


@pytest.mark.parametrize("verb", MAIN)
@pytest.mark.parametrize(
    "habit",
    [
        *(habit.strip() for line in HABITS.split("\n") for habit in line.split("|")),
        *(f"{options.split()[0]} {value}" for options, ours in SAME.items() for value in VALUES.get(ours, ("",))),
    ],
)
def test_what_is_to_be_typed_instead_of_a_habit_is_taken(
    habit: str, verb: str, tmp_path: Path, unparsed: Unparsed
) -> None:
    done = run(*shlex.split(f"{verb} {habit}"), cwd=a_platform(tmp_path))
    answer = done.err.partition("option")[2]

    assert done.code in (2, REACHED)
    assert "`gpuplan" not in answer or unparsed(answer) == []
    assert [typed for typed in re.findall(r"[Tt]ype `(gpuplan[^`]*)`", answer) if not _is_taken(typed, tmp_path)] == []


def _is_taken(command: str, folder: Path) -> bool:
    """Whether gpuplan takes a command as it is printed; a name in capitals is left to the reader."""
    capitals = re.search(r" [A-Z]+( |$)", command)
    return run(*shlex.split(command)[1:], cwd=folder).code == REACHED or bool(capitals)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("init p --name prod", "Type `gpuplan init p --cluster prod`."),
        (
            "rollout research --to time-slicing=4 --apply",
            "Type `gpuplan rollout research --to time-slicing=4 --write`.",
        ),
        ("rollout research --context dev", "Type `gpuplan rollout research -c dev`."),
        ("show -o json -n research", "Type `gpuplan show -o json --tenant research`."),
        ("show -n batch", "Type `gpuplan show --tenant research`."),
        ("build -o manifests", "`gpuplan build --out manifests` names the folder to write."),
        ("build -o deploy", "`gpuplan build --out deploy` names the folder to write."),
        ("build --output manifests", "Type `gpuplan build --out manifests`."),
        ("build -out plan.out", "Type `gpuplan build --out plan.out`."),
        ("rollout research -o yaml", "`gpuplan rollout research -o json` is for programs"),
        ("validate --output json", "Type `gpuplan validate -o json`."),
        ("show --name dev", "Type `gpuplan show -c dev`."),
        ("-n research show", "Type `gpuplan show --tenant research`."),
        ("show -target=research", "Type `gpuplan show --pool research`."),
        ("build -p research", "`research` is a pool: `gpuplan show --pool research`"),
        ("show --version", "Type `gpuplan version`."),
        ("diff policies/pool.yaml", "`git diff policies/pool.yaml`"),
        ("diff -c all", "leave `-c` out for all clusters: `gpuplan diff`"),
        ("show -c development -o json", "did you mean `dev`? Type `gpuplan show -c dev -o json`"),
        ("rollout reserch --back", "did you mean `research`? Type `gpuplan rollout research --back`"),
        ("rollout research --to '{timeSlicing: {replicas: 4}}'", "Type `gpuplan rollout research --to time-slicing=4`"),
        ("rollout research --to sometimes", "there are `--to exclusive`, `--to time-slicing=4`, `--to mps=4`"),
        ("rollout research --to mps", "did you mean `mps=4`? Type `gpuplan rollout research --to mps=4`"),
        ("rollout research --to '{3g.40gb: 2}'", "write a MigLayout with `instances: {3g.40gb: 2}` and name it"),
        ("rollback research -c dev", "Type `gpuplan rollout research -c dev --back`."),
        ("undo research dev", "Type `gpuplan rollout research -c dev --back`."),
        ("argocd app rollback research dev", "Type `gpuplan rollout research -c dev --back`."),
        ("rollback dev", "`gpuplan rollout research --back` takes the nodes"),
        ("template", "Type `gpuplan build -c dev --stdout`"),
        ("template dev", "Type `gpuplan build -c dev --stdout`."),
        ("plan --fail-on quota", "Type `gpuplan diff --fail-on quota`."),
        ("rollout research,research --to mps=2", "type `gpuplan rollout research --to mps=2` and `gpuplan rollout"),
        ("catalog A100-80GB,L4-24GB", "type `gpuplan catalog A100-80GB` and `gpuplan catalog L4-24GB`"),
        ("explain GPU203,nothing", "nothing is called `GPU203,nothing`"),
        ("explain GPU-203", "did you mean `GPU203`? Type `gpuplan explain GPU203`"),
        ("explain nvidia.com/mig-3g.40gb", "it is a MIG profile: `gpuplan explain A100-80GB` draws"),
        ("explain nvidia.com/mig-1g.10gb.me", "it is a MIG profile: `gpuplan explain A100-80GB` draws"),
        ("explain nvidia.com/gpu.shared", "`gpuplan explain Pool.spec.sharing` lists the ways of sharing"),
        (
            "rollout research --to mps=2 --nodes gpu-1,gpu-2",
            "`printf '%s\\n' gpu-1 gpu-2 | gpuplan rollout research --to mps=2 --nodes -`",
        ),
        ("diff --nodes=gpu-1.x.com", "`kubectl get nodes gpu-1.x.com -o json | gpuplan diff --nodes -`"),
        ("diff --nodes nodes.json", "`gpuplan diff --help` describes the files"),
        ("diff HEAD~99", "there are `HEAD` and `main`, and no commit before; `gpuplan diff` compares"),
        ("show -n serving", "`gpuplan show --tenant research` selects a tenant."),
        ("build -o yaml", "`gpuplan build -c dev --stdout` prints the objects in YAML."),
        ("build -c dev -o yaml", "`gpuplan build -c dev --stdout` prints the objects in YAML."),
        ("build --cluster=dev -o yaml", "`gpuplan build --cluster=dev --stdout` prints the objects in YAML."),
        ("show -o json dev", "Type `gpuplan show -o json -c dev`."),
        ("rollout time-slicing=4 research -c dev", "Type `gpuplan rollout --to time-slicing=4 research -c dev`."),
        ("rollout research dev mps=2", "Type `gpuplan rollout research -c dev --to mps=2`."),
        ("diff HEAD dev", "Type `gpuplan diff --against HEAD -c dev`."),
        ("diff dev HEAD..main", "`dev` names a cluster."),
        ("build overlays/dev -o made", "`gpuplan build -c dev --out made` names the folder to write."),
        ("build -f overlays/dev/cluster.yaml", "type `gpuplan build -c dev`."),
        ("validate -f policies/pool.yaml -c dev", "reads policies/ by itself: type `gpuplan validate -c dev`."),
        ("rollout --pool research --to mps=2 -c dev", "Type `gpuplan rollout research --to mps=2 -c dev`."),
        ("rollout -p research --to mps=2 -c dev", "Type `gpuplan rollout research --to mps=2 -c dev`."),
        ("trace --pool research -c dev", "Type `gpuplan trace Pool/research -c dev`."),
        ("trace --file policies/pool.yaml -c dev", "Type `gpuplan trace policies/pool.yaml -c dev`."),
        ("trace -f out/dev/a.yaml:9", "Type `gpuplan trace out/dev/a.yaml:9`."),
        ("build -c 'prod dev' --check", "Type `gpuplan build -c prod -c dev --check`."),
        ("build -c=dev", "Type `gpuplan build -c dev`."),
        ("explain spec.shraing.mps", "Type `gpuplan explain Pool.spec.sharing.mps`"),
    ],
)
def test_the_whole_command_line_is_printed_as_it_was_meant(typed: str, answer: str, tmp_path: Path) -> None:
    tenant = a_platform(tmp_path, "dev") / "policies/tenant.yaml"
    tenant.write_text(tenant.read_text().replace("namespaces: [research]", "namespaces: [batch]"))
    commit(a_repository(tmp_path))

    done = run(*shlex.split(typed), cwd=tmp_path)

    assert done.code == 2
    assert answer in " ".join(done.err.split())


def test_two_pools_are_two_lines(tmp_path: Path) -> None:
    pool = a_platform(tmp_path) / "policies/pool.yaml"
    pool.write_text(pool.read_text() + "---\n" + pool.read_text().replace("research", "other"))

    for typed in (("research,other",), ("research", "other")):
        answer = run("rollout", *typed, "--to", "mps=2", cwd=tmp_path).err
        assert "type `gpuplan rollout research --to mps=2` and `gpuplan rollout other --to mps=2`" in answer


def test_a_priority_class_does_not_hide_the_cluster_of_a_like_name(tmp_path: Path) -> None:
    file = a_platform(tmp_path, "prod") / "policies/priority.yaml"
    file.write_text(file.read_text() + "---\n" + file.read_text().replace("name: research", "name: production"))

    answer = run("show", "-c", "production", cwd=tmp_path).err

    assert "did you mean `prod`? Type `gpuplan show -c prod`; `production` is a priority class" in answer


def test_the_folder_that_was_named_first_stays(tmp_path: Path) -> None:
    a_platform(tmp_path / "platform")

    assert "Type `gpuplan -C platform show -c dev`" in run("-C", "platform", "show", "-c", "deve", cwd=tmp_path).err


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("show -n serving", "`gpuplan show --tenant NAME` (NAME is `"),
        ("build -n serving", "`gpuplan explain Tenant.spec.namespaces`"),
        ("validate -f x.yaml", "Type `gpuplan validate x.yaml`, which checks a file without a platform."),
        ("pack -f x.yaml --margin 20%", "Type `gpuplan pack x.yaml --margin 20%`."),
        ("build --dry-run", "Type `gpuplan build --diff`."),
        ("retain --dry-run", "`gpuplan retain` writes nothing without `--write`"),
        ("rollout a --layout b", "`gpuplan rollout POOL --to SHARING`"),
        ("validate --fix", "each finding of `gpuplan validate` ends with the text to write"),
        ("validate --output json", "`gpuplan validate -o json`"),
        ("explain -o yaml GPU203", "`gpuplan rules -o json`"),
        ("report -o json", "type `gpuplan show -o json`, or `gpuplan report -o report.html`"),
        ("report --json", "`gpuplan report -o FILE`"),
        ("show -A", "`gpuplan show` takes all clusters unless `-c NAME`"),
        ("drift --kubeconfig x", "`gpuplan import --commands` prints what to type for kubectl"),
        ("validate --watch", "`gpuplan report --serve`"),
        ("--dry-run build", "`gpuplan build --diff`"),
        ("-c prod show", "Type the option after the command: `gpuplan show -c prod`"),
        ("validate --stdout", "`gpuplan build --stdout`. Write nothing; print the objects of one cluster."),
        ("validate --clutser prod", "Did you mean"),
        ("validate -c dev,prod", "Type `gpuplan validate -c dev -c prod`"),
        ("pack --margin 1", "1 is ambiguous: type `1%` or `100%`."),
        ("pack --percentile p99", "Type `gpuplan pack --percentile 99`."),
        ("pack --percentile 95% -c dev", "Type `gpuplan pack --percentile 95 -c dev`."),
        ("pack --percentile 0.99", "Type `gpuplan pack --percentile 99`."),
        ("pack --margin p30", "Type `gpuplan pack --margin 30%`."),
        ("pack --tolerance 5%", "write `growth: 5%` or `burst`"),
        ("pack --headroom x", "write `growth: 30%` or `burst`"),
        ("rollout a --batch 25%", "Type `gpuplan rollout a --max-unavailable 25%`."),
        ("rollout a --max-unavailable 0.5", "Type `gpuplan rollout a --max-unavailable 50%`."),
        ("pack --objective cost", "Did you mean `price`? Type `gpuplan pack --objective price`."),
        ("show --color yes", "Type `gpuplan show --color always`."),
        ("show -o csv", "Type `gpuplan show -o json`"),
        ("fmt", "type `gpuplan validate`"),
        ("rollout a100 other", "`gpuplan rollout POOL --to SHARING`"),
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

    assert f"Type `gpuplan {verb} -c dev" in run(verb, "dev", "-C", "platform", cwd=tmp_path).err


def test_another_platform_is_named_by_its_option(tmp_path: Path) -> None:
    a_platform(tmp_path / "platform")

    assert "Type `gpuplan -C platform build`." in run("build", "platform", cwd=tmp_path).err


@pytest.mark.parametrize("verb", OURS)
def test_an_argument_too_many_or_too_few_is_answered(verb: str, tmp_path: Path, unparsed: Unparsed) -> None:
    errors = [run(verb, *words, cwd=tmp_path).err for words in ((), ("a",) * 4)]
    answers = [error.partition("argument")[2] for error in errors if "argument" in error]

    assert [unparsed(answer) for answer in answers if "`gpuplan" in answer] == [[] for _ in answers]
