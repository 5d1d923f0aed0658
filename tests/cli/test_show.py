"""`gpuplan show`."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from gpuplan.compiler.policy.models import SchedulerKind
from gpuplan.terminal.options import SCHEDULERS
from gpuplan.terminal.schemas import schema
from tests.cli.platforms import a_broken_platform, a_platform
from tests.cli.runs import run


def test_all_clusters_are_shown(tmp_path: Path) -> None:
    done = run("show", cwd=a_platform(tmp_path, "dev", "prod"))

    assert (done.code, done.err) == (0, "")
    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("Cluster ")] == ["dev", "prod"]
    assert "nvidia.com/gpu.shared" in done.out


def test_one_cluster_can_be_chosen(tmp_path: Path) -> None:
    done = run("show", "--cluster", "prod", "--output-format", "json", cwd=a_platform(tmp_path, "dev", "prod"))

    plan = json.loads(done.out)
    jsonschema.validate(plan, schema("plan"))
    assert [cluster["name"] for cluster in plan["clusters"]] == ["prod"]


def test_yaml_holds_the_same_as_json(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    as_yaml = yaml.safe_load(run("show", "--output-format", "yaml", cwd=root).out)

    assert as_yaml == json.loads(run("show", "--output-format", "json", cwd=root).out)


def test_namespaces_where_admission_only_warns_are_told(tmp_path: Path) -> None:
    root = a_platform(tmp_path, "dev", "prod")
    cluster = root / "overlays" / "dev" / "cluster.yaml"
    text = cluster.read_text(encoding="utf-8")
    cluster.write_text(text.replace("spec:\n", "spec:\n  admission: {enforcement: warn}\n", 1), encoding="utf-8")

    shown = run("show", "--cluster", "dev", cwd=root).out
    plan = json.loads(run("show", "--output-format", "json", cwd=root).out)

    assert "Where admission warns and refuses nothing\n  TENANT    NAMESPACES\n  research  research\n" in shown
    assert "Where admission warns" not in run("show", "--cluster", "prod", cwd=root).out
    jsonschema.validate(plan, schema("plan"))
    assert [cluster["warned_namespaces"] for cluster in plan["clusters"]] == [["research"], []]


def test_a_summary_has_a_line_for_each_cluster(tmp_path: Path) -> None:
    assert run("show", "--summary", cwd=a_platform(tmp_path, "dev", "prod")).out == (
        "CLUSTER  POOLS  NODES  GPUS  TENANTS  GUARANTEED  UNITS\n"
        "dev          1      2    16        1         33%  48 shared\n"
        "prod         1      2    16        1         33%  48 shared\n"
    )


def test_a_summary_is_not_for_programs(tmp_path: Path) -> None:
    assert run("show", "--summary", "--output-format", "json", cwd=a_platform(tmp_path)).code == 2


def test_errors_are_told_beside_what_could_be_planned(tmp_path: Path) -> None:
    done = run("show", cwd=a_broken_platform(tmp_path))

    assert done.code == 1
    assert "nvidia.com/gpu.shared" in done.out
    assert "error[GPU101]: unknown Pool `reserch`" in done.err


def test_another_scheduler_is_compared_in_place_of_the_plan(tmp_path: Path) -> None:
    done = run("show", "--cluster", "prod", "--scheduler", "kai", cwd=a_platform(tmp_path, "dev", "prod"))

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Cluster prod: from plain Kubernetes to KAI-Scheduler\n\nGained\n  nothing\n\nLost\n")
    assert "Refused\n" in done.out


def test_a_comparison_is_also_for_programs(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    as_json = json.loads(run("show", "--scheduler", "kai", "--output-format", "json", cwd=root).out)

    assert as_json == yaml.safe_load(run("show", "--scheduler", "kai", "--output-format", "yaml", cwd=root).out)
    assert [change["concept"] for change in as_json["clusters"][0]["lost"]] == ["shares"]


def test_a_summary_is_not_of_a_comparison(tmp_path: Path) -> None:
    assert run("show", "--summary", "--scheduler", "kai", cwd=a_platform(tmp_path)).code == 2


def test_the_schedulers_are_those_of_the_policy_language() -> None:
    assert tuple(kind.value for kind in SchedulerKind) == SCHEDULERS


def test_who_can_evict_whom_is_a_page_of_its_own(tmp_path: Path) -> None:
    done = run("show", "--preemption", cwd=a_platform(tmp_path, "dev", "prod"))

    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if line.startswith("Cluster ")] == [
        "Cluster dev: who can evict whom with plain Kubernetes",
        "Cluster prod: who can evict whom with plain Kubernetes",
    ]


def test_programs_find_who_can_evict_whom_in_the_plan(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    assert run("show", "--preemption", "--output-format", "json", cwd=root).code == 2
    assert run("show", "--preemption", "--summary", cwd=root).code == 2
    assert json.loads(run("show", "--output-format", "json", cwd=root).out)["clusters"][0]["evictions"] == []


def test_wide_shows_all_columns_whatever_the_width(tmp_path: Path) -> None:
    root = a_platform(tmp_path)
    narrow = {"COLUMNS": "60"}

    fitted, wide = run("show", cwd=root, env=narrow).out, run("show", "-o", "wide", cwd=root, env=narrow).out

    assert max(map(len, fitted.splitlines())) <= 60 < max(map(len, wide.splitlines()))
    assert "nvidia.com/gpu.shared" in wide
    assert "nvidia.com/gpu.shared" not in fitted
    assert "-o wide adds " in fitted
    assert "-o wide adds " not in wide


def test_where_nobody_says_how_wide_it_is_everything_has_the_room_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = a_platform(tmp_path)
    wide = run("show", "-o", "wide", cwd=root).out

    monkeypatch.delenv("COLUMNS")

    assert run("show", cwd=root).out == wide


def test_a_part_can_be_chosen_in_every_format(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    as_json = json.loads(run("show", "--pool", "rese*", "--tenant", "research", "-o", "json", cwd=root).out)
    jsonschema.validate(as_json, schema("plan"))
    assert [tenant["name"] for tenant in as_json["clusters"][0]["tenants"]] == ["research"]
    assert run("show", "--pool", "research", "--summary", cwd=root).code == 0
    assert run("show", "--tenant", "research", "--preemption", cwd=root).out.startswith(
        "Cluster dev: who can evict whom"
    )


def test_a_name_of_nothing_is_trouble(tmp_path: Path) -> None:
    done = run("show", "--pool", "reserch", cwd=a_platform(tmp_path))

    assert (done.code, done.out) == (2, "")
    assert (
        done.err == "error: no pool `reserch`\n  = help: did you mean `research`? Type `gpuplan show --pool research`\n"
    )


@pytest.mark.parametrize("other", [("--scheduler", "kai"), ("--away", "gpu-1")])
def test_a_part_is_not_of_what_is_about_the_cluster(tmp_path: Path, other: tuple[str, str]) -> None:
    done = run("show", "--tenant", "research", *other, cwd=a_platform(tmp_path))

    assert done.code == 2
    assert "leave --pool and --tenant out" in done.err


def test_names_are_one_on_a_line(tmp_path: Path) -> None:
    assert run("show", "-o", "name", "--pool", "research", cwd=a_platform(tmp_path)).out == (
        "cluster/dev\npool/research\npriorityclass/research\ntenant/research\n"
    )


def test_markdown_has_a_table_for_each_part(tmp_path: Path) -> None:
    root = a_platform(tmp_path)

    page = run("show", "-o", "markdown", cwd=root).out
    assert "| Nodes | GPUs | Sharing | Workload types |\n| --- | --- | ---: | ---: | --- | --- |\n" in page
    assert "\nALL = on all nodes of the pool; LIMITS = sum of all tenants'; FREE = guaranteed to no tenant; " in page
    assert run("show", "-o", "markdown", "--summary", cwd=root).out.startswith("| Cluster | Pools | Nodes | GPUs |")
    assert run("show", "-o", "markdown", "--preemption", cwd=root).out.startswith("## Cluster dev: who can evict whom")


def test_a_picture_is_of_the_pool_that_is_chosen(tmp_path: Path) -> None:
    picture = run("show", "-o", "svg", "--pool", "research", cwd=a_platform(tmp_path, "dev", "prod")).out

    assert picture.startswith("<svg ")
    assert "2 clusters" in picture
    assert "Pool research</title>" in run("show", "-o", "svg", "-c", "dev", cwd=tmp_path).out


@pytest.mark.parametrize("flag", [("--summary",), ("--preemption",), ("--scheduler", "kai"), ("--away", "gpu-1")])
def test_a_format_that_a_page_has_not_is_refused(tmp_path: Path, flag: tuple[str, ...]) -> None:
    done = run("show", *flag, "-o", "svg", cwd=a_platform(tmp_path))

    assert done.code == 2
    assert f"{flag[0]} has no svg, but table" in done.err
