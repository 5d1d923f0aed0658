"""Where findings about a step point, and what they say of pods that run."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.planning.plan import Mig, Pool, Tenant
from gpuplan.features.changes.model import NodeImpact
from gpuplan.features.changes.pods import held
from gpuplan.features.changes.step import Step


def name_of_cluster(step: Step) -> Origin:
    """The place for what is no longer there: nothing else in the later policies is about it."""
    return name_of(step.after.cluster.at)


def earlier(at: Origin, thing: str) -> str:
    """A note on where something was written that is gone."""
    location = at.locate()
    return f"{thing} was in `{location.file.path}`, line {location.span.start.line}"


def sharing_of(pool: Pool) -> Origin:
    """Where a pool, or a part of one, says how its GPUs are shared."""
    return pool.sharing.layout_at if isinstance(pool.sharing, Mig) else pool.sharing.at.key


def chosen_by(pool: Pool) -> Origin:
    """Where a pool says which nodes it has."""
    return pool.nodes.at / ("namePattern" if pool.nodes.name_pattern else "names")


# --- Nodes -------------------------------------------------------------------------------------------------------


def labelled(label: str, value: str, nodes: Sequence[str] | None) -> str:
    """A note on which nodes name an entry, where that is known, or on what says that there are some."""
    if nodes is None:
        return f"their nodes have the label `{label}: {value}`, as policies say; `--nodes FILE` shows which"
    return f"{listing(nodes)} {'has' if len(nodes) == 1 else 'have'} the label `{label}: {value}`"


# --- Pods --------------------------------------------------------------------------------------------------------


def pods_on(step: Step, pool: Pool, nodes: NodeImpact | None = None) -> int | None:
    """Return the number of pods with units on these nodes of an earlier pool, or None without a list of pods."""
    if step.pods is None:
        return None
    named = nodes.names if nodes is not None and nodes.pattern is None else ()
    found = (pod for pod, there, _ in held(step.before, step.pods) if there.name == pool.name)
    return sum(not named or pod.node in named for pod in found)


def pods_of(step: Step, tenant: Tenant) -> int | None:
    """Return the number of pods with units in the namespaces of an earlier tenant, or None without a list of pods."""
    if step.pods is None:
        return None
    return sum(pod.namespace in tenant.spec.namespaces for pod, _, _ in held(step.before, step.pods))


def pods_note(number: int | None) -> tuple[str, ...]:
    """A note on how many run, where that is known."""
    return () if number is None else (f"{count(number, 'pod')} {'holds' if number == 1 else 'hold'} GPUs there now",)
