"""The effect of a change of enforcement: where admission refuses what it only warned of, and the other way round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.planning.grants import enforcement_of, has_admission_policies
from gpuplan.compiler.planning.plan import TENANT_LABEL, Cluster, Stage, Tenant
from gpuplan.compiler.policy.models import Enforcement
from gpuplan.features.changes.model import Change, of
from gpuplan.features.changes.step import Step, means_same


def of_cluster(step: Step) -> Iterator[Change]:
    """Yield the changes of tenants that say the same as before, of all together."""
    kept = ((old, new) for old, new in step.tenants if old is not None and new is not None)
    alike = [(old, new) for old, new in kept if means_same(old.spec.admission, new.spec.admission)]
    yield from _changes(step, step.after.cluster, alike)


def of_tenant(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    """Yield the changes of a tenant that says something else than before."""
    if not means_same(old.spec.admission, new.spec.admission):
        yield from _changes(step, new, [(old, new)])


_SHOWN: Final = 20
_TEXTS: Final = {
    Enforcement.DENY: (
        "{who} refuses in the namespaces {names}, and no longer only warns",
        "new pods there that break a rule are refused; those that run go on",
    ),
    Enforcement.WARN: (
        "{who} only warns in the namespaces {names}, and no longer refuses",
        "no rule keeps new pods there to their tenant's pools, priority classes and GPUs; those that run go on",
    ),
}


def _changes(step: Step, part: Cluster | Tenant, tenants: Iterable[tuple[Tenant, Tenant]]) -> Iterator[Change]:
    turned: dict[Enforcement, list[str]] = {}
    for old, new in tenants:
        kept: list[str | None] = [name for name in new.spec.namespaces if name in old.spec.namespaces]
        is_labelled = old.spec.labelled_namespaces and new.spec.labelled_namespaces
        for name in (*kept, *([None] if is_labelled else ())):
            before = enforcement_of(step.before.cluster, old, name)
            after = enforcement_of(step.after.cluster, new, name)
            if before is not after:
                turned.setdefault(after, []).append(name or f"{TENANT_LABEL}={new.name}")
    who = "admission" if has_admission_policies(step.after.cluster) else "Pod Security"
    for mode, (what, effect) in _TEXTS.items():
        if mode in turned:
            yield Change(
                *of(step.after, part, part.at / "admission"),
                ChangeClass.ADMISSION,
                what.format(who=who, names=listing(sorted(turned[mode]), _SHOWN)),
                effect,
                stages=(Stage.SCHEDULING, Stage.NAMESPACES),
            )
