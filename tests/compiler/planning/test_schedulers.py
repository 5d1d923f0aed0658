"""What a scheduler is like stands once, and code asks for that, never which scheduler it is."""

from __future__ import annotations

import ast
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import gpuplan
from gpuplan.compiler.backends import backends
from gpuplan.compiler.planning.schedulers import SCHEDULERS, SchedulerTraits, traits_of
from gpuplan.compiler.policy.models import SchedulerKind

ROOT = Path(gpuplan.__file__).parent
EACH = pytest.mark.parametrize("kind", SchedulerKind)

KNOW_KINDS = frozenset(
    {
        "compiler/planning/plan.py",  # which holds its value
        "compiler/backends/workloads/bodies.py",  # what each reads on a workload
        "compiler/delivery/charts.py",  # whose chart is whose
        "features/live/clusters/schedulers.py",  # whose objects are whose
    }
)


@cache
def _sources() -> dict[str, str]:
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}


def _imports(text: str) -> set[str]:
    """The names that a module imports from others."""
    imports = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom))
    return {alias.name for node in imports for alias in node.names}


def _who_imports(name: str) -> set[str]:
    return {module for module, text in _sources().items() if name in text and name in _imports(text)}


def test_nobody_else_names_kinds_of_schedulers() -> None:
    assert {
        name for name in _who_imports("SchedulerKind") if not name.startswith("compiler/planning/schedulers/")
    } == KNOW_KINDS


@EACH
def test_the_traits_of_one_scheduler_are_for_its_own_checks_and_back_end(kind: SchedulerKind) -> None:
    own = (
        f"compiler/planning/schedulers/{kind}.py",
        "compiler/planning/schedulers/__init__.py",
        f"compiler/backends/{kind}/__init__.py",
        f"compiler/backends/{kind}.py",
    )
    # Readers of dumps know a scheduler by its objects, before there is a plan.
    readers = (
        "features/live/priorities.py",
        "features/live/queues/__init__.py",
        "features/live/queues/kueue.py",
        "features/live/queues/kai.py",
        "features/live/drifting/foreign.py",
    )
    # Parameters of admission policies are those of plain Kubernetes where nobody says otherwise.
    allowed = {
        *own,
        *readers,
        "compiler/checks/queues.py",
        *(["compiler/planning/grants.py"] if kind is SchedulerKind.KUBERNETES else []),
    }
    assert _who_imports(kind.name) <= allowed


@EACH
def test_traits_are_found_by_kind_and_by_name(kind: SchedulerKind) -> None:
    assert traits_of(kind).kind is kind
    assert SCHEDULERS[kind.value] is traits_of(kind)


def test_traits_are_never_half_filled() -> None:
    with pytest.raises(TypeError, match="missing"):
        SchedulerTraits(kind=SchedulerKind.KUEUE)  # type: ignore[call-arg] # that is the point


@pytest.mark.parametrize("name", [field.name for field in fields(SchedulerTraits)])
def test_a_trait_tells_schedulers_apart(name: str) -> None:
    assert len({str(getattr(traits, name)) for traits in SCHEDULERS.values()}) > 1


@EACH
def test_a_scheduler_that_counts_tenants_has_a_back_end(kind: SchedulerKind) -> None:
    names = {module.__name__ for module in backends() if isinstance(module, ModuleType)}
    assert (f"gpuplan.compiler.backends.{kind}" in names) == traits_of(kind).counts_tenants


@EACH
def test_queues_are_counted_by_someone_who_counts_tenants(kind: SchedulerKind) -> None:
    scheduler = traits_of(kind)
    assert scheduler.counts_tenants or not (scheduler.has_queues or scheduler.has_projects)
    assert scheduler.has_queues or not (scheduler.queues_hold_work or scheduler.has_queues_by_pool)
    assert scheduler.supports("topology") or not scheduler.has_topologies
    assert (scheduler.preemptible_below is not None) == scheduler.evicts_preemptible_alone
