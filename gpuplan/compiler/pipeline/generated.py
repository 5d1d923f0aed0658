"""Judge the work that is written for Workloads before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gpuplan.compiler.admission.policies import known_rules
from gpuplan.compiler.backends import workloads
from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.checks.generated import ASKED, GENERATED_CHECKS, PATCH_CHECKS, Generated, GeneratedWork
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.plan import Plan


def judge_asked(plan: Plan, found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """What the cluster's own rules refuse for a field of a Workload; ``found`` is what is known to be wrong.

    What a workload lays over its pods may be refused by any rule.
    """
    if plan.broken.pools:
        return
    faulty = _named(plan, found)
    plain, patched = _work(plan)
    yield from run_all(GENERATED_CHECKS, Generated(plan, plain, ASKED, faulty))
    if patched:
        generated = Generated(plan, patched, frozenset(known_rules()), faulty)
        of_patches = run_all(PATCH_CHECKS, generated)
        yield from of_patches
        refused = replace(generated, faulty=faulty | _named(plan, of_patches))
        yield from run_all(GENERATED_CHECKS, refused)


def _named(plan: Plan, found: Iterable[Diagnostic]) -> frozenset[str]:
    """The workloads in whose documents errors are."""
    errors = {item.finding.at.source for item in found if item.is_error}
    return frozenset(workload.name for workload in plan.workloads if workload.at.source in errors)


def judge_rest(plan: Plan) -> Iterator[Diagnostic]:
    """What its other rules refuse, of a plan that nothing is known to be wrong with."""
    if plan.workloads and not plan.broken.pools:
        plain, _ = _work(plan)
        yield from run_all(GENERATED_CHECKS, Generated(plan, plain, frozenset(known_rules()) - ASKED))


def _work(plan: Plan) -> tuple[tuple[GeneratedWork, ...], tuple[GeneratedWork, ...]]:
    """The objects of the workloads, and of those that patch their pods."""
    plain: list[GeneratedWork] = []
    patched: list[GeneratedWork] = []
    by_name, unpatched = {workload.name: workload for workload in plan.workloads}, _unpatched(plan)
    for manifest in workloads.render(plan):
        name = manifest.about[0].name
        before = next(unpatched[name]) if name in unpatched else None
        (patched if before else plain).append(GeneratedWork(by_name[name], manifest, before))
    return tuple(plain), tuple(patched)


def _unpatched(plan: Plan) -> Mapping[str, Iterator[Manifest]]:
    """The objects of workloads that patch their pods as they are without it, in the same order, by name."""
    patched = tuple(workload.without_patch() for workload in plan.workloads if workload.pod_patch)
    found: dict[str, list[Manifest]] = {workload.name: [] for workload in patched}
    for manifest in workloads.render(replace(plan, workloads=patched)):
        found[manifest.about[0].name].append(manifest)
    return {name: iter(manifests) for name, manifests in found.items()}
