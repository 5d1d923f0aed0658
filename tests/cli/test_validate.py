"""`gpuplan validate`: what it says where, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from gpuplan.compiler import pipeline
from gpuplan.compiler.pipeline import loading
from tests.cli.platforms import TENANT, a_broken_platform, a_platform, write
from tests.cli.runs import run, spawn
from tests.terminal.builders import LIMIT, a_report

FINDING = "policies/tenant.yaml:10:12: error[GPU101] unknown Pool `reserch`\n"


def test_a_valid_platform_ends_with_0_and_nothing_on_stdout(tmp_path: Path) -> None:
    done = run("validate", cwd=a_platform(tmp_path))

    assert (done.code, done.out) == (0, "")
    assert done.err == "no findings in 4 files, 1 cluster\n"


def test_an_error_ends_with_1(tmp_path: Path) -> None:
    done = run("validate", "--output-format", "concise", cwd=a_broken_platform(tmp_path))

    assert (done.code, done.out) == (1, FINDING)
    assert done.err == "1 error in 4 files, 1 cluster; `gpuplan explain GPU101` says more\n"


def test_a_whole_screen(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    done = run("validate", cwd=a_broken_platform(tmp_path))

    assert done.out == snapshot


def test_what_all_clusters_share_is_said_once(tmp_path: Path) -> None:
    done = run("validate", "--output-format", "concise", cwd=a_broken_platform(tmp_path, "dev", "prod"))

    assert done.out == FINDING


def test_one_cluster_can_be_chosen(tmp_path: Path) -> None:
    root = a_platform(tmp_path, "dev", "prod")
    write(root / "overlays/prod/tenant.yaml", TENANT.replace("pool: research", "pool: reserch"))

    assert run("validate", "--cluster", "dev", cwd=root).code == 0
    assert run("validate", "--cluster", "prod", cwd=root).code == 1


def test_a_cluster_that_does_not_exist_is_trouble(tmp_path: Path) -> None:
    done = run("validate", "--cluster", "pord", cwd=a_platform(tmp_path, "prod"))

    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        "error: no cluster `pord`: overlays/pord/ does not exist",
        "  = help: did you mean `prod`? Type `gpuplan validate --cluster prod`",
    ]


def test_a_folder_without_overlays_is_trouble_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "find_folders", lambda *_: ())
    done = run("validate", cwd=tmp_path)

    assert (done.code, done.out) == (2, "")
    assert "overlays/" in done.err
    assert "gpuplan init" in done.err


@pytest.mark.parametrize(
    ("options", "code"), [((), 0), (("--warnings-as-errors",), 1), (("--warnings-as-errors", "--exit-zero"), 0)]
)
def test_warnings_fail_only_when_asked(options: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "validate", lambda *_, **__: a_report(LIMIT))

    done = run("validate", *options)

    assert done.out.startswith("warning[GPU401]: ")
    assert done.code == code


def test_exit_zero_is_for_uploads(tmp_path: Path) -> None:
    done = run("validate", "--exit-zero", "--output-format", "sarif", cwd=a_broken_platform(tmp_path))

    assert done.code == 0
    assert json.loads(done.out)["runs"][0]["results"][0]["ruleId"] == "GPU101"


def test_a_file_gets_one_format_and_the_terminal_keeps_another(tmp_path: Path) -> None:
    root = a_broken_platform(tmp_path)

    done = run("validate", "--output-format", "json=report.json", "--output-format", "concise", cwd=root)

    assert done.out == FINDING
    assert json.loads((root / "report.json").read_text())["summary"]["errors"] == 1


def test_a_format_that_goes_to_a_file_leaves_the_terminal_its_own(tmp_path: Path) -> None:
    done = run("validate", "--output-format", "junit=report.xml", cwd=a_broken_platform(tmp_path))

    assert done.out.startswith("error[GPU101]: unknown Pool `reserch`\n  --> policies/tenant.yaml:10:12\n")
    assert (tmp_path / "report.xml").read_text().startswith("<?xml")


def test_the_environment_may_choose_the_format(tmp_path: Path) -> None:
    root = a_broken_platform(tmp_path)

    assert run("validate", cwd=root, env={"GPUPLAN_OUTPUT_FORMAT": "concise"}).out == FINDING
    both = run("validate", "--output-format", "full", cwd=root, env={"GPUPLAN_OUTPUT_FORMAT": "concise"})
    assert both.out.startswith("error[GPU101]: ")


@pytest.mark.parametrize(
    ("formats", "words"),
    [
        (("yaml",), "'yaml' is not one of full, concise, json"),
        (("json=",), "'json=' names no file"),
        (("json", "sarif"), "only one format can go to the terminal"),
        (("json=report", "sarif=report"), "only one format can go to 'report'"),
        (("json=no/such/report",), "there is no folder to write 'no/such/report' in"),
    ],
)
def test_a_format_that_makes_no_sense_is_bad_usage(tmp_path: Path, formats: tuple[str, ...], words: str) -> None:
    options = [item for name in formats for item in ("--output-format", name)]

    done = run("validate", *options, cwd=a_platform(tmp_path))

    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_a_variable_that_makes_no_sense_is_named(tmp_path: Path) -> None:
    done = run("validate", cwd=a_platform(tmp_path), env={"GPUPLAN_OUTPUT_FORMAT": "yaml"})

    assert done.code == 2
    assert "GPUPLAN_OUTPUT_FORMAT" in done.err


def test_who_stands_inside_of_a_platform_is_shown_the_way_up(tmp_path: Path) -> None:
    a_platform(tmp_path)

    assert "a platform is in `..`: type `gpuplan -C .. validate`" in run("validate", cwd=tmp_path / "policies").err
    assert (
        "a platform is in `../..`: type `gpuplan -C ../.. validate`"
        in run("validate", cwd=tmp_path / "overlays/dev").err
    )
    assert "a platform is in `.`: type `gpuplan validate`" in run("validate", "-C", "policies", cwd=tmp_path).err


def test_a_misspelt_cluster_is_guessed(tmp_path: Path) -> None:
    root = a_platform(tmp_path, "dev", "prod")

    assert "did you mean `prod`?" in run("validate", "--cluster", "pord", cwd=root).err
    assert "the clusters are `dev` and `prod`" in run("validate", "--cluster", "staging", cwd=root).err


def test_paths_are_told_from_where_the_reader_stands(tmp_path: Path) -> None:
    a_broken_platform(tmp_path / "platform")

    below = run("validate", "-C", "platform", "--output-format", "concise", cwd=tmp_path)
    (tmp_path / "elsewhere").mkdir()
    beside = run("validate", "-C", "../platform", "--output-format", "concise", cwd=tmp_path / "elsewhere")

    assert below.out == f"platform/{FINDING}"
    assert beside.out == f"{tmp_path.resolve()}/platform/{FINDING}"


def test_global_options_may_stand_before_or_after_the_verb(tmp_path: Path) -> None:
    a_platform(tmp_path / "platform")

    assert run("-C", "platform", "-q", "validate", cwd=tmp_path).err == ""
    assert run("validate", "-q", "-C", "platform", cwd=tmp_path).err == ""
    assert run("-C", "platform", "validate", "-q", cwd=tmp_path).code == 0


@pytest.mark.parametrize(
    ("options", "env", "colored"),
    [
        ((), {}, False),
        (("--color", "always"), {}, True),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": ""}, False),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colours(tmp_path: Path, options: tuple[str, ...], env: dict[str, str], colored: bool) -> None:
    done = run("validate", *options, cwd=a_broken_platform(tmp_path), env=env)

    assert ("\x1b[" in done.out) is colored
    assert ("\x1b[" in done.err) is colored


@pytest.mark.parametrize(("breaks", "code"), [(False, 0), (True, 1)])
def test_a_process_ends_as_told(tmp_path: Path, breaks: bool, code: int) -> None:
    root = a_broken_platform(tmp_path) if breaks else a_platform(tmp_path)

    assert spawn("validate", cwd=root).code == code


def test_a_folder_that_is_not_there_is_bad_usage(tmp_path: Path) -> None:
    assert spawn("-C", "nowhere", "validate", cwd=tmp_path).code == 2


# --- Files without a platform ------------------------------------------------------------------------------------

QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: a, namespace: b}
spec: {hard: {nvidia.com/gpu: 1}}
"""


@pytest.mark.parametrize("options", [(), ("--gpu", "A100-80GB"), ("--kubernetes", "1.34", "-o", "concise")])
def test_a_file_is_checked_as_by_check(tmp_path: Path, options: tuple[str, ...]) -> None:
    write(tmp_path / "quota.yaml", QUOTA)

    done = run("validate", "quota.yaml", *options, cwd=tmp_path)

    assert done == run("check", "quota.yaml", *options, cwd=tmp_path)
    assert done.code == 1
    assert run("validate", "quota.yaml", "--exit-zero", cwd=tmp_path).code == 0


def test_stdin_is_checked_as_by_check() -> None:
    assert run("validate", "-", stdin=QUOTA) == run("check", "-", stdin=QUOTA)


@pytest.mark.parametrize("option", ["--cluster=dev", "--against=HEAD"])
def test_a_file_has_no_platform(tmp_path: Path, option: str) -> None:
    root = a_platform(tmp_path)
    write(root / "quota.yaml", QUOTA)

    done = run("validate", "quota.yaml", option, cwd=root)

    assert (done.code, done.out) == (2, "")
    assert "type `gpuplan validate FILE` or `gpuplan validate -c NAME`." in done.err


@pytest.mark.parametrize("option", ["--gpu=A100-80GB", "--kubernetes=1.34", "--operator=v26.7.0"])
def test_a_platform_takes_no_option_of_files(tmp_path: Path, option: str) -> None:
    done = run("validate", option, cwd=a_platform(tmp_path))

    assert (done.code, done.out) == (2, "")
    assert "is for files without a platform: type `gpuplan validate FILE`." in done.err


@pytest.mark.parametrize("path", ["policies", "policies/tenant.yaml", "."])
def test_policies_are_checked_with_their_platform(tmp_path: Path, path: str) -> None:
    done = run("validate", path, cwd=a_platform(tmp_path))

    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("  = help: type `gpuplan validate` where overlays/ is, or `gpuplan -C DIR validate`\n")


def test_a_folder_without_a_platform_names_the_option(tmp_path: Path) -> None:
    assert "name the folder that holds overlays/ with `-C DIR`" in run("validate", cwd=tmp_path).err
