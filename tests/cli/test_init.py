"""`gpuplan init`: a starter that stands on its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.cli.runs import run, spawn


def a_starter(root: Path, *options: str) -> Path:
    assert run("init", str(root), "-q", *options).code == 0
    return root


@pytest.mark.parametrize("cluster", ["dev", "prod-1"])
def test_the_starter_validates_without_a_finding_and_builds(tmp_path: Path, cluster: str) -> None:
    root = a_starter(tmp_path, "--cluster", cluster)

    validated, built = run("validate", "--warnings-as-errors", cwd=root), run("build", cwd=root)

    assert (validated.code, validated.out) == (0, "")
    assert validated.err == "no findings in 4 files, 1 cluster\n"
    assert built.code == 0
    assert run("build", "--check", cwd=root).code == 0
    assert (root / f"out/{cluster}/kustomization.yaml").is_file()


def test_what_was_written_and_what_to_do_next_is_said(tmp_path: Path) -> None:
    done = run("init", "platform", cwd=tmp_path)

    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == [
        "created platform/README.md",
        "created platform/overlays/dev/cluster.yaml",
        "created platform/policies/pools.yaml",
        "created platform/policies/priority-classes.yaml",
        "created platform/policies/tenants.yaml",
        "next: cd platform && gpuplan validate && gpuplan build",
    ]


def test_the_attributes_of_others_stay_and_a_line_says_what_to_add(tmp_path: Path) -> None:
    (tmp_path / ".gitattributes").write_text("* text=auto\n")

    done = run("init", ".", cwd=tmp_path)

    assert done.code == 0
    assert done.err.splitlines()[-2] == "add `out/** -text` to .gitattributes, so that Git changes no line ends there"
    assert (tmp_path / ".gitattributes").read_text() == "* text=auto\n"


def test_here_needs_no_cd(tmp_path: Path) -> None:
    assert run("init", ".", cwd=tmp_path).err.splitlines()[-1] == "next: gpuplan validate && gpuplan build"


def test_the_way_to_a_folder_with_a_space_can_be_typed(tmp_path: Path) -> None:
    done = run("init", "my platform", cwd=tmp_path)

    assert done.err.splitlines()[-1] == "next: cd 'my platform' && gpuplan validate && gpuplan build"


@pytest.mark.parametrize("folder", ["policies", "overlays", "overlays/prod", ".gpuplan"])
def test_nothing_is_written_beside_a_platform(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)

    done = run("init", str(tmp_path))

    assert (done.code, done.out) == (2, "")
    assert f"{folder.split('/', maxsplit=1)[0]}` exists already, so nothing was written" in done.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_link_that_leads_nowhere_is_no_room(tmp_path: Path) -> None:
    (tmp_path / "policies").symlink_to("nowhere")

    assert run("init", str(tmp_path)).code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["policies"]


def test_the_readme_of_a_new_repository_stays(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n")

    done = run("init", str(tmp_path))

    assert done.code == 0
    assert "README.md" not in done.err
    assert (tmp_path / "README.md").read_text() == "mine\n"
    assert (tmp_path / "policies/pools.yaml").is_file()


@pytest.mark.parametrize("name", ["Prod", "a/b", "..", "-x", ""])
def test_a_cluster_name_must_be_one(tmp_path: Path, name: str) -> None:
    assert run("init", str(tmp_path), f"--cluster={name}").code == 2
    assert list(tmp_path.iterdir()) == []


STARTER = (
    "overlays/dev/cluster.yaml",
    "policies/pools.yaml",
    "policies/priority-classes.yaml",
    "policies/tenants.yaml",
)
MODELINE = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
"""What the YAML language server reads at the head of a document, for this document alone."""


@pytest.mark.parametrize("name", STARTER)
def test_the_modeline_of_each_document_leads_to_a_schema_that_accepts_it(tmp_path: Path, name: str) -> None:
    path = a_starter(tmp_path) / name
    for document in path.read_text().split("\n---\n"):
        modeline = MODELINE.match(document)
        assert modeline is not None

        validator = jsonschema.Draft7Validator(json.loads((path.parent / modeline[1]).read_text()))

        assert [error.message for error in validator.iter_errors(yaml.safe_load(document))] == []


def test_an_editor_finds_the_schema_of_every_policy(tmp_path: Path) -> None:
    root = a_starter(tmp_path)
    schemas = json.loads((root / ".vscode/settings.json").read_text())["yaml.schemas"]

    assert schemas == {
        ".gpuplan/policy.schema.json": ["policies/**/*.yaml", "policies/**/*.yml"],
        ".gpuplan/overlay.schema.json": ["overlays/**/*.yaml", "overlays/**/*.yml", "!overlays/*/kustomize/**"],
    }
    assert all((root / schema).is_file() for schema in schemas)


def test_an_editors_settings_stay(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode/settings.json").write_text("{}\n")

    assert run("init", str(tmp_path)).code == 0
    assert (tmp_path / ".vscode/settings.json").read_text() == "{}\n"


def test_a_process_ends_as_told(tmp_path: Path) -> None:
    assert spawn("init", "platform", cwd=tmp_path).code == 0
    assert spawn("init", "platform", cwd=tmp_path).code == 2
