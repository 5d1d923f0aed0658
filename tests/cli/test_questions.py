"""The verbs that answer questions: explain, catalog, rules, schema, version, completion."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from shutil import which
from xml.etree import ElementTree as ET

import pytest

from gpuplan import __version__
from gpuplan.compiler.policy import KINDS
from gpuplan.terminal import options
from tests.cli.platforms import a_platform
from tests.cli.runs import run, spawn


def test_explain() -> None:
    done = run("explain", "GPU101")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("error[GPU101] unknown-reference\n")


@pytest.mark.parametrize("subject", ["GPU517", "gpu517", "borrowing-needs-parent"])
def test_a_retired_rule_says_why_it_is_gone(subject: str) -> None:
    done = run("explain", subject)

    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "GPU517 borrowing-needs-parent is retired.\n"
        "\n"
        "On Kueue all tenants are below one root cohort, so that those without a parent borrow and lend, too.\n"
        "\n"
        "No release after 0.1.0 has this rule. A comment that ignores it can go.\n"
    )


def test_explain_what_there_is_not(tmp_path: Path) -> None:
    done = run("explain", "Pool.spec.shering")

    assert (done.code, done.out) == (2, "")
    assert "did you mean `Pool.spec.sharing`? Type `gpuplan explain Pool.spec.sharing`\n" in done.err


@pytest.mark.parametrize(
    ("subject", "meant"),
    [
        ("disruption", "did you mean `Pool.spec.disruption`?"),
        ("pools", "did you mean `Pool`?"),
        ("GPU2O3", "did you mean `GPU203`?"),
        ("tenants.quota.guarenteed", "did you mean `Tenant.spec.quotas.guaranteed`?"),
        ("timeslicing", "type `gpuplan explain Pool.spec.sharing.timeSlicing`"),
    ],
)
def test_a_field_without_its_kind_is_found_in_all(subject: str, meant: str) -> None:
    assert meant in run("explain", subject).err


def test_a_scheduler_is_explained_by_what_it_keeps() -> None:
    done = run("explain", "scheduler/kueue")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Kueue  as read in v0.19.2\n\nKept\n")
    assert "  a bound on what is lent  Tenant.spec.quotas.lendable\n    by `lendingLimit`\n" in done.out
    assert "\nNot kept\n  how long work may run or keep idle GPUs  Tenant.spec.timeLimits\n" in done.out


def test_the_schedulers_are_listed() -> None:
    assert [line.split()[0] for line in run("explain", "Scheduler").out.splitlines()[1:]] == [
        "scheduler/kubernetes",
        "scheduler/kueue",
        "scheduler/kai",
        "scheduler/runai",
    ]


def test_a_scheduler_without_its_kind_is_found() -> None:
    assert "or `gpuplan explain scheduler/kueue`" in run("explain", "kueue").err


def test_every_list_is_reached_through_explain(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    assert run("explain", "gpus", cwd=root) == run("catalog", cwd=root)
    assert run("explain", "rules") == run("rules")
    assert [line.split()[0] for line in run("explain", "schema").out.splitlines()[1:]] == [
        f"schema/{name}" for name in options.SCHEMAS
    ]


@pytest.mark.parametrize("name", options.SCHEMAS)
def test_every_schema_is_reached_through_explain(name: str) -> None:
    assert run("explain", "schema", name) == run("explain", f"schema/{name.lower()}") == run("schema", name)


def test_a_schema_that_explain_does_not_know_names_the_others() -> None:
    done = run("explain", "schema", "Node")

    assert (done.code, done.out) == (2, "")
    assert "policy, overlay, Cluster" in done.err


@pytest.mark.parametrize("family", ["GPU2", "gpu2xx", "GPU22", "GPU22x"])
def test_rules_are_listed_by_the_beginning_of_their_code(family: str) -> None:
    beginning = family.upper().rstrip("X")
    codes = [rule["code"] for rule in json.loads(run("rules", "-o", "json").out)["rules"]]

    listed = re.findall(r"(?m)^GPU\d+", run("explain", family).out)

    assert listed == [code for code in codes if code.startswith(beginning)]
    assert len(listed) > 1


def test_a_family_without_rules_is_not_known() -> None:
    assert run("explain", "GPU99").code == 2


def test_two_words_name_a_scheduler() -> None:
    assert run("explain", "scheduler", "kueue") == run("explain", "scheduler/kueue")


def test_a_mig_profile_leads_to_its_models() -> None:
    assert "it is a MIG profile: `gpuplan explain A100-80GB` draws" in run("explain", "3g.40gb").err


def test_a_field_may_be_named_as_findings_name_it() -> None:
    assert run("explain", "Tenant.spec.quotas[0].unit").out.startswith("Tenant.spec.quotas.unit  text, optional\n")


def test_one_possible_value_is_no_choice() -> None:
    assert "One of" not in run("explain", "Pool.apiVersion").out
    assert "One of nfd, node, external." in run("explain", "Cluster.spec.nodeLabels").out


@pytest.mark.parametrize("columns", [40, 80])
def test_a_model_fits_the_terminal(columns: int) -> None:
    done = run("catalog", "A100-80GB", env={"COLUMNS": str(columns)})
    assert max(map(len, done.out.splitlines())) <= columns


def test_layouts_of_a_model_are_drawn_in_colour() -> None:
    done = run("--color", "always", "catalog", "A100-80GB")
    drawn = "|\x1b[97;44m4444\x1b[0m|\x1b[30;42m22\x1b[0m|\x1b[30;46m1\x1b[0m|.|"
    assert f"{drawn}      {{4g.40gb: 1, 2g.20gb: 1, 1g.10gb: 1}}\n" in done.out


def test_layouts_of_a_model_are_drawn_as_a_picture() -> None:
    drawn = ET.fromstring(run("catalog", "a30-24gb", "-o", "svg").out)
    assert drawn.findtext("{*}title") == "Layouts of A30-24GB"
    assert len([text for text in drawn.findall(".//{*}text") if "{" in "".join(text.itertext())]) > 3
    assert run("catalog", "-o", "svg").code == 2


def test_catalog() -> None:
    assert "A100-80GB" in run("catalog").out
    assert run("catalog", "A100-80GB").out.startswith("A100-80GB  NVIDIA A100")
    assert [gpu["id"] for gpu in json.loads(run("catalog", "L4-24GB", "--output-format", "json").out)["gpus"]] == [
        "L4-24GB"
    ]


def test_letter_case_of_a_model_does_not_count() -> None:
    assert run("catalog", "a100-80gb").out == run("catalog", "A100-80GB").out
    assert run("catalog", "h100").err.startswith("error: no GPU model `h100` in the catalog\n")


def test_catalog_of_a_model_that_is_misspelt() -> None:
    done = run("catalog", "A100-80")

    assert (done.code, done.out) == (2, "")
    assert "`A100-80GB`" in done.err


def test_rules() -> None:
    assert run("rules").out.startswith("CODE    SEVERITY  NAME")
    codes = [rule["code"] for rule in json.loads(run("rules", "--output-format", "json").out)["rules"]]
    assert codes == sorted(set(codes))
    assert "GPU101" in codes


@pytest.mark.parametrize("name", ["policy", "overlay", "Pool", "pool", "findings", "plan", "comparison"])
def test_schema(name: str) -> None:
    assert json.loads(run("schema", name).out)["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_schema_is_that_of_policies_when_none_is_named() -> None:
    assert run("schema").out == run("schema", "policy").out


def test_help_names_every_schema() -> None:
    words = set(re.findall(r"\w+", run("schema", "--help").out))

    assert {name.lower() for name in options.SCHEMAS} <= words
    assert tuple(KINDS) == options.KINDS


def test_a_schema_that_is_not_there_is_bad_usage() -> None:
    assert run("schema", "Node").code == 2


def test_version() -> None:
    assert run("version").out.startswith(f"gpuplan: {__version__}\n")
    assert json.loads(run("version", "--output-format", "json").out)["policy_language"] == "gpuplan.dev/v1"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_scripts(shell: str, tmp_path: Path) -> None:
    script = run("completion", shell)

    assert script.code == 0
    assert "_GPUPLAN_COMPLETE" in script.out
    if program := which(shell):
        (tmp_path / "script").write_text(script.out)
        subprocess.run([program, "-n", "script"], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("gpuplan val", ["validate"]),
        ("gpuplan validate --cluster p", ["prod"]),
        ("gpuplan validate --output-format s", ["sarif"]),
        ("gpuplan catalog a30", ["A30-24GB"]),
        ("gpuplan explain pool.spec.g", ["Pool.spec.gpu"]),
        ("gpuplan rollout r", ["research"]),
        ("gpuplan rollout --cluster prod r", ["research"]),
    ],
)
def test_completion_knows_verbs_clusters_formats_and_models(tmp_path: Path, words: str, found: list[str]) -> None:
    root = a_platform(tmp_path, "dev", "prod")
    env = {"_GPUPLAN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}

    done = spawn(cwd=root, env=env)

    assert [line.partition(",")[2] for line in done.out.splitlines()] == found


@pytest.mark.parametrize("words", ["explain GPU203", "rules", "schema", "init x"])
def test_without_docstrings_no_half_of_an_answer_is_given(tmp_path: Path, words: str) -> None:
    done = spawn(*words.split(), cwd=tmp_path, env={"PYTHONOPTIMIZE": "2"})

    assert (done.code, done.out) == (2, "")
    assert "unset PYTHONOPTIMIZE" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", ["fish", "zsh"])
def test_a_value_is_completed_with_its_option(tmp_path: Path, shell: str) -> None:
    root = a_platform(tmp_path, "dev", "prod")
    word = "--cluster=p"
    current = word if shell == "fish" else "2"
    env = {"_GPUPLAN_COMPLETE": f"{shell}_complete", "COMP_WORDS": f"gpuplan validate {word}", "COMP_CWORD": current}

    assert "--cluster=prod" in spawn(cwd=root, env=env).out
