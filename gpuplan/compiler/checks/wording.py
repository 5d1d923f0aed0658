"""Turns of phrase that several checks share: sums, places, severities."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import accumulate
from typing import TypeVar

from gpuplan.compiler.base.diagnostics import Finding, Origin, Severity
from gpuplan.compiler.base.wording import SHOWN, listing
from gpuplan.compiler.planning.grants import is_warned
from gpuplan.compiler.planning.plan import Amount, Plan, Quota, Tenant, Total, Workload
from gpuplan.compiler.policy.models import OnLoss

T = TypeVar("T")


def name_of(at: Origin) -> Origin:
    """Return where the document that ``at`` points into gives its name."""
    return Origin(at.source, ("metadata", "name"))


def number(amount: Amount) -> str:
    """Return an amount as people write it: no exponent, no idle zeros."""
    return f"{amount.normalize():f}" if isinstance(amount, Decimal) else str(amount)


def in_yaml(value: object) -> str:
    """Return a value as people write it: text without quotes, all else as in JSON and YAML."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def in_flow(items: Mapping[str, object]) -> str:
    """Return a mapping as people type it in one line: `{3g.40gb: 1, 2g.20gb: 2}`."""
    return f"{{{', '.join(f'{key}: {value}' for key, value in items.items())}}}"


def add(amounts: Sequence[Amount]) -> Amount:
    return sum(amounts, start=0)


def crossing(amounts: Sequence[Amount], bound: Amount) -> int:
    """Return the index at which the running sum of amounts first exceeds the bound, or the last one."""
    return next((index for index, total in enumerate(accumulate(amounts)) if total > bound), len(amounts) - 1)


def repeats(items: Iterable[T], key: Callable[[T], Hashable]) -> Iterator[tuple[T, T]]:
    """Yield every element whose key an earlier one has, with the first of these."""
    firsts: dict[Hashable, T] = {}
    for item in items:
        first = firsts.setdefault(key(item), item)
        if first is not item:
            yield item, first


def units(part: Quota | Workload | Total) -> str:
    """Return the name of a unit and that of its pool, in words."""
    return f"`{part.unit.name}` of pool `{part.pool.name}`"


def gpu_numbers(indexes: Sequence[int]) -> str:
    """Return some GPUs in words: `GPU 3`, `GPUs 4 to 7`, `GPUs 1, 4 and 5`."""
    if len(indexes) == 1:
        return f"GPU {indexes[0]}"
    if len(indexes) > 2 and indexes[-1] - indexes[0] == len(indexes) - 1:
        return f"GPUs {indexes[0]} to {indexes[-1]}"
    return f"GPUs {', '.join(map(str, indexes[:-1]))} and {indexes[-1]}"


def those_there_are(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that there are, as a note."""
    return (f"there {'is' if len(names) == 1 else 'are'} {listing(names, 8)}",) if names else ()


def total_text(parts: Sequence[tuple[str, Amount]]) -> str:
    """Return the proof of a sum, the largest parts if there are many: `` `research` 12 + `training` 8 = 20 ``."""
    if len(parts) == 1:
        return f"`{parts[0][0]}` {number(parts[0][1])}"
    listed = list(parts)
    if len(parts) > SHOWN:
        listed = sorted(parts, key=lambda part: (-part[1], part[0]))[:SHOWN]
    terms = [f"`{name}` {number(amount)}" for name, amount in listed]
    if len(parts) > SHOWN:
        rest = add([amount for _, amount in parts]) - add([amount for _, amount in listed])
        terms.append(f"{len(parts) - SHOWN} more {number(rest)}")
    return f"{' + '.join(terms)} = {number(add([amount for _, amount in parts]))}"


def severity_of_loss(plan: Plan, reported: Severity) -> Severity:
    """Return an error if the cluster refuses what its scheduler cannot keep, else ``reported``."""
    return Severity.ERROR if plan.cluster.scheduler.spec.on_loss is OnLoss.REFUSE else reported


def mistyped(
    at: Origin, message: str, meant: str | None, label: str, help_: str, *notes: str, write: str = "write `{}`"
) -> Finding:
    """Return a finding on a name that nothing has. ``label`` and ``help_`` hold if no other name may be meant."""
    return Finding(
        at,
        message,
        label=f"did you mean `{meant}`" if meant else label,
        notes=notes,
        help=write.format(meant) if meant else help_,
    )


def refused_in(plan: Plan, tenant: Tenant, namespace: str, finding: Finding) -> Finding:
    """Return a finding on what admission refuses in a namespace: a warning if admission only warns there so far."""
    if not is_warned(plan.cluster, tenant, namespace):
        return finding
    note = f"admission is on `warn` in namespace `{namespace}`: the API server accepts it and warns"
    label = "refused once `enforcement` is `deny`"
    return replace(finding, label=label, notes=(*finding.notes, note), severity=Severity.WARNING)


def refuses_in(plan: Plan, tenant: Tenant, namespace: str) -> str:
    return "will refuse" if is_warned(plan.cluster, tenant, namespace) else "refuses"
