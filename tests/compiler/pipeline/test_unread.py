"""What cannot be read is reported once, and not again by everything that refers to it."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path

import pytest

from gpuplan.compiler.pipeline import validate
from gpuplan.compiler.planning.plan import UNREAD

REPOSITORY = Path(__file__).parents[3]
POOLS = "policies/pools/partitioned.yaml"


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A copy of the example platform."""
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return tmp_path


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def problems(root: Path) -> list[tuple[str, str]]:
    """Files and codes of errors and warnings, each once."""
    found = [item for item in validate(root).diagnostics if item.severity != "note"]
    return sorted({(item.finding.at.locate().file.path, item.code) for item in found})


def test_references_to_what_an_unreadable_file_may_hold_are_not_wrong(platform: Path) -> None:
    (platform / POOLS).write_text(f"[\n{(platform / POOLS).read_text()}")

    assert problems(platform) == [(POOLS, "GPU001")]


def test_what_an_unreadable_file_holds_may_be_of_any_kind(platform: Path) -> None:
    (platform / POOLS).write_text(f"[\n{(platform / POOLS).read_text()}")
    broken = next(plan.broken for plan in validate(platform).plans if plan.cluster.name == "prod")

    sure = {field.name for field in fields(broken) if UNREAD not in getattr(broken, field.name)}
    assert sure == {"incomplete_tenants"}  # they are in the plan


def test_nor_are_those_to_documents_of_an_unknown_kind(platform: Path) -> None:
    replace(platform / POOLS, "kind: Pool", "kind: Pol")

    assert problems(platform) == [(POOLS, "GPU035")]


def test_nor_are_those_to_documents_of_a_missing_base(platform: Path) -> None:
    cluster = platform / "overlays/dev/cluster.yaml"
    cluster.write_text(cluster.read_text().replace("spec:\n", "spec:\n  bases: [polices]\n", 1))

    assert problems(platform) == [("overlays/dev/cluster.yaml", "GPU111")]


def test_a_misspelt_base_is_guessed(platform: Path) -> None:
    cluster = platform / "overlays/dev/cluster.yaml"
    cluster.write_text(cluster.read_text().replace("spec:\n", "spec:\n  bases: [./polices/, /etc]\n", 1))

    found = [item.finding for item in validate(platform).diagnostics if item.code == "GPU111"]

    assert [(item.message, item.label) for item in found] == [
        ("base `polices` does not exist", "did you mean `policies`"),
        ("base `/etc` does not exist", "no such folder"),
    ]


def test_a_base_named_twice_is_read_once(platform: Path) -> None:
    cluster = platform / "overlays/dev/cluster.yaml"
    cluster.write_text(cluster.read_text().replace("spec:\n", "spec:\n  bases: [policies, ./policies/]\n", 1))

    assert problems(platform) == []


@pytest.mark.parametrize(("text", "code"), [("kind: [\n", "GPU001"), ("kind: Clustr\n", "GPU035")])
def test_an_overlay_that_cannot_be_read_may_have_its_cluster(platform: Path, text: str, code: str) -> None:
    (platform / "overlays/dev/cluster.yaml").write_text(text)

    found = problems(platform)

    assert ("overlays/dev", "GPU110") not in found
    assert ("overlays/dev/cluster.yaml", code) in found


def test_nor_are_names_that_resemble_a_known_one(platform: Path) -> None:
    (platform / POOLS).write_text("[")
    replace(platform / "policies/tenants/science.yaml", "pool: h100-training", "pool: h100-training2")

    assert problems(platform) == [(POOLS, "GPU001")]


def test_clusters_that_do_not_read_the_file_are_judged_in_full(platform: Path) -> None:
    (platform / "overlays/dev/more.yaml").write_text("[")
    replace(platform / "policies/tenants/science.yaml", "pool: h100-training", "pool: something-else")

    assert problems(platform) == [("overlays/dev/more.yaml", "GPU001"), ("policies/tenants/science.yaml", "GPU101")]


def test_a_class_that_cannot_be_resolved_is_named_all_the_same(platform: Path) -> None:
    replace(platform / "policies/priority-classes.yaml", "value: 1000", "value: much")

    assert problems(platform) == [("policies/priority-classes.yaml", "GPU032")]


def test_files_of_an_unreadable_component_are_not_astray(platform: Path) -> None:
    folder = platform / "overlays/dev/kustomize/namespaces/research"
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text("kind: Component\nresources: [notes.yaml\n")
    (folder / "notes.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: research}\n"
    )

    assert problems(platform) == [("overlays/dev/kustomize/namespaces/research/kustomization.yaml", "GPU001")]


@pytest.mark.parametrize("text", ["[", "kind: [\n", "a: b: c\n"])
def test_nothing_is_planned_where_any_change_of_an_overlay_may_be_lost(platform: Path, text: str) -> None:
    (platform / "overlays/dev/more.yaml").write_text(text)

    assert problems(platform) == [("overlays/dev/more.yaml", "GPU001")]
    assert "dev" not in [plan.cluster.name for plan in validate(platform).plans]


def test_a_change_without_a_name_may_be_one_of_any_document(platform: Path) -> None:
    replace(platform / "overlays/dev/policies.yaml", "  name: research\n", "  name research\n")

    assert problems(platform) == [("overlays/dev/policies.yaml", "GPU032")]
    assert "dev" not in [plan.cluster.name for plan in validate(platform).plans]


def test_a_cluster_without_a_name_has_no_wrong_one(platform: Path) -> None:
    replace(platform / "overlays/dev/cluster.yaml", "  name: dev\n", "  name dev\n")

    assert problems(platform) == [("overlays/dev/cluster.yaml", "GPU032")]


def test_what_a_lost_change_was_about_is_not_judged(platform: Path) -> None:
    replace(platform / "overlays/dev/policies.yaml", "    count: 1\n    gpusPerNode: 2\n---", "    count: 1\n   x\n---")

    assert problems(platform) == [("overlays/dev/policies.yaml", "GPU001")]
    (dev,) = [plan for plan in validate(platform).plans if plan.cluster.name == "dev"]
    assert "a100-shared" in dev.broken.pools


def test_a_document_that_says_something_twice_is_not_concluded_from(platform: Path) -> None:
    replace(platform / "policies/pools/shared.yaml", "    count: ", "    count: 1\n    count: ")

    assert problems(platform) == [("policies/pools/shared.yaml", "GPU007")]


def test_comments_that_may_be_needed_are_not_called_unused(platform: Path) -> None:
    replace(platform / POOLS, "    count: 2", "    count: 2 # gpuplan: ignore[GPU417] as agreed")
    (platform / "policies/more.yaml").write_text("[")

    assert problems(platform) == [("policies/more.yaml", "GPU001")]


def test_documents_run_together_are_read_as_two(platform: Path) -> None:
    file = platform / POOLS
    file.write_text(file.read_text().replace("---\n", ""))

    found = [item.code for item in validate(platform).diagnostics if item.is_error]

    assert found == ["GPU021"] * 3


def test_a_comment_that_ignores_a_finding_is_no_mistake_while_a_plan_lacks_documents(platform: Path) -> None:
    tenants = platform / "policies/tenants/science.yaml"
    replace(tenants, "kind: Tenant", "kind: Tenant # gpuplan: ignore[GPU435] they may borrow")
    assert problems(platform) == [("policies/tenants/science.yaml", "GPU112")]

    replace(platform / POOLS, "kind: Pool", "kind: Pol")
    assert "GPU112" not in {code for _, code in problems(platform)}
