"""The work that is written for Workloads, and what admission refuses of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from gpuplan.compiler.admission import rules_of
from gpuplan.compiler.admission.verdicts import Refused, refused
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.hand_files import further_parameters, read, written_classes
from gpuplan.compiler.planning.linking import Linked, written
from gpuplan.compiler.planning.plan import Plan, Workload


class GeneratedWork(NamedTuple):
    """An object that is written for a workload; ``unpatched`` where it patches its pods: as it is without that."""

    workload: Workload
    manifest: Manifest
    unpatched: Manifest | None = None


class RefusedWork(NamedTuple):
    """A part of what is written for a workload that the cluster's own rules refuse."""

    work: GeneratedWork
    refused: Refused

    @property
    def rule(self) -> str:
        return self.refused.refusal.rule.name

    def find_place(self) -> Origin | None:
        """Where the policy says the part that is to blame, as far as it does; in the workload's own document first."""
        links = Linked(self.work.manifest.trace).about(self.refused.route) if self.refused.route else ()
        source = self.work.workload.at.source
        return min((link.at for link in written(links)), key=lambda at: at.source is not source, default=None)


class Generated(Value):
    """The work of a cluster. Of the workloads named ``faulty`` something wrong is known already.

    It is judged by those ``rules`` of the cluster that are named, also where it is too old for policies that hold them.
    """

    plan: Plan
    work: tuple[GeneratedWork, ...]
    rules: frozenset[str]
    faulty: frozenset[str] = frozenset()

    @property
    def cluster_names(self) -> tuple[str, ...]:
        return self.plan.cluster_names

    @cached_property
    def refusals(self) -> tuple[RefusedWork, ...]:
        return tuple(self._refusals())

    def _refusals(self) -> Iterator[RefusedWork]:
        plan, files = self.plan, read(self.plan)
        rules = [policy.only(self.rules) for policy in rules_of(plan)]
        classes = written_classes(files)
        for work in self.work:
            tenant, namespace = work.workload.tenant, work.workload.namespace
            if namespace in tenant.spec.namespaces and tenant.name not in plan.broken.incomplete_tenants:
                further = further_parameters(files, namespace)
                found = refused(plan, rules, work.manifest.body, tenant, namespace, classes=classes, further=further)
                yield from (RefusedWork(work, item) for item in found)
