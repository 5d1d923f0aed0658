"""`gpuplan show`."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import yaml

from gpuplan.views.schemas import schema
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
