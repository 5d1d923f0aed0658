"""What is kept of definitions is what their projects have, where those can be read."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from gpuplan.compiler.manifests.crds import groups, kinds, served
from gpuplan.compiler.manifests.schema_rules import RULES
from tests.compiler.backends.crds import crds

REPOSITORY = Path(__file__).resolve().parents[2]
KEPT = REPOSITORY / "gpuplan/compiler/manifests/crds"


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    """`tools/crds.py`, which finds what is beside it."""
    sys.path.insert(0, str(REPOSITORY / "tools"))
    try:
        spec = importlib.util.spec_from_file_location("crds_tool", REPOSITORY / "tools/crds.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(REPOSITORY / "tools"))


def test_what_is_kept_is_what_the_projects_have(tool: ModuleType) -> None:
    if not os.environ.get("GPUPLAN_MIRRORS"):
        pytest.skip("GPUPLAN_MIRRORS names no folder with clones of the projects in tools/crds.yaml")
    try:
        wanted = tool.everything()
    except tool.UnreachableError as error:
        pytest.skip(str(error))
    assert [path for path, text in wanted.items() if (KEPT / path).read_text(encoding="utf-8") != text] == []
    assert {f"data/{path.name}" for path in (KEPT / "data").iterdir()} == {path for path in wanted if "/" in path}


def test_definitions_that_are_given_are_kept(tool: ModuleType) -> None:
    """Those that GPUPLAN_CRDS has are of releases that are kept: the same schema has the same name."""
    schema_name = sys.modules["crd_parts"].schema_name
    unknown = []
    for file in sorted(crds().glob("*.yaml")):
        for group, kind, versions in tool.definitions(file.read_bytes()):
            for version, schema in versions.items():
                known = {item.versions.get(version) for item in served(group, kind)}
                if schema_name(schema) not in known:
                    unknown.append(f"{kind}.{group} {version}")
    assert unknown == []


def test_notice_names_every_project_with_its_releases_and_licence() -> None:
    said = (KEPT / "NOTICE").read_text(encoding="utf-8")
    for row in yaml.safe_load((REPOSITORY / "tools/crds.yaml").read_text(encoding="utf-8")):
        (part,) = re.findall(
            rf"(?ms)^{re.escape(row['title'])}\n  from \S+/{re.escape(row['repository'])}\n.*?^$", said
        )
        names = [next(iter(item)) if isinstance(item, dict) else item for item in row["releases"]]
        assert [name for name in names if name not in part] == []
        assert re.search(r"^  licence (Apache-2\.0|MIT)$", part, re.MULTILINE)


def test_releases_that_are_kept_are_those_of_the_list() -> None:
    listed = {
        (row["name"], next(iter(item)) if isinstance(item, dict) else item)
        for row in yaml.safe_load((REPOSITORY / "tools/crds.yaml").read_text(encoding="utf-8"))
        for item in row["releases"]
    }
    known = {
        (item.project, release)
        for group in groups()
        for kind in kinds(group)
        for item in served(group, kind)
        for release in item.releases
    }
    assert known == listed


def test_no_prose_is_kept() -> None:
    for file in (KEPT / "data").iterdir():
        for line in file.read_text(encoding="utf-8").splitlines():
            if not line.startswith(("project ", "kind ")):
                schema = json.loads(line.partition(" ")[2])
                assert "description" not in schema
                assert not [part for part in schema.get("properties", {}).values() if "description" in part]


def test_rules_are_counted() -> None:
    said = (KEPT / "RULES").read_text(encoding="utf-8")
    lines = (line for file in (KEPT / "data").iterdir() for line in file.read_text(encoding="utf-8").splitlines())
    schemas = [json.loads(line.partition(" ")[2]) for line in lines if RULES in line]
    assert said.splitlines()[0] == f"{len({rule for schema in schemas for rule in _rules(schema)})} rules are judged"


def _rules(value: object) -> Iterator[str]:
    """Those of a schema and of what it has inside; what it refers to is a line of its own."""
    if isinstance(value, dict):
        yield from (rule["rule"] for rule in value.get(RULES, ()))
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _rules(part)
