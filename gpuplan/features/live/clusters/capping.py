"""What caps the tenants of a cluster, by the ResourceQuotas that gpuplan wrote for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.backends.monitoring.rules import TENANT_GUARANTEED_UNITS, TENANT_LIMIT_UNITS, sanitized
from gpuplan.compiler.backends.namespaces import QUOTA
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.planning.plan import TENANT_LABEL
from gpuplan.compiler.policy.models import Cap
from gpuplan.features.live.clusters.reader import Reader, part, rules_in

_REQUESTS: Final = "requests."
_OF_GPUS: Final = "requests.nvidia.com/"


class _Bound(NamedTuple):
    """How many units of a resource a tenant may use in its only namespace."""

    tenant: str
    namespace: str
    resource: str
    amount: int


def cap(reader: Reader, usual: Cap) -> Cap | None:
    """What caps the tenants, where that is not the usual; None where it is, or nothing tells.

    A queue leaves ResourceQuotas without numbers above zero, but for those that a namespace has by a split; so tenants
    of one namespace tell. Which of two numbers it is shows where something else has both.
    """
    bounds = [*_bounds(reader)]
    if not bounds:
        return None
    found = Cap.GUARANTEED if any(_is_guarantee(reader, bound) for bound in bounds) else Cap.LIMIT
    return None if found is usual else found


def _bounds(reader: Reader) -> Iterator[_Bound]:
    namespaces = [item for item in reader.dump.of_kind("", "Namespace") if TENANT_LABEL in item.labels]
    counts = Counter(item.labels[TENANT_LABEL] for item in namespaces)
    tenants = {item.name: item.labels[TENANT_LABEL] for item in namespaces if counts[item.labels[TENANT_LABEL]] == 1}
    for item in reader.dump.of_kind("", "ResourceQuota"):
        if item.name == QUOTA and item.namespace in tenants:
            for key, value in mapping(part(item.body, "spec", "hard")).items():
                if key.startswith(_OF_GPUS) and (amount := _amount(value)):
                    yield _Bound(tenants[item.namespace], item.namespace, key.removeprefix(_REQUESTS), amount)


def _amount(value: object) -> int:
    found = parse_quantity(str(value)) if isinstance(value, str | int) else None
    return int(found) if found else 0


def _is_guarantee(reader: Reader, bound: _Bound) -> bool:
    """Whether it is what the tenant is guaranteed, and not what it may have at most."""
    told = (*_by_rules(reader, bound), *_by_queue(reader, bound))
    return any(guaranteed == bound.amount != limit for guaranteed, limit in told)


def _by_rules(reader: Reader, bound: _Bound) -> Iterator[tuple[int, int | None]]:
    """Rules of Prometheus that record the plan's numbers."""
    amounts: Counter[str] = Counter()
    for rule in rules_in(reader.prometheus_rules):
        labels = mapping(rule.get("labels"))
        if labels.get("tenant") == bound.tenant and labels.get("resource") == sanitized(bound.resource):
            number = _VECTOR.fullmatch(text(rule.get("expr")))
            amounts[text(rule.get("record"))] += int(number[1]) if number else 0
    if TENANT_GUARANTEED_UNITS in amounts:
        yield amounts[TENANT_GUARANTEED_UNITS], amounts.get(TENANT_LIMIT_UNITS)


_VECTOR: Final = regex(r"vector\((\d{1,12})\)")


def _by_queue(reader: Reader, bound: _Bound) -> Iterator[tuple[int, int | None]]:
    """The ClusterQueue that is open to the namespace."""
    for item in reader.dump.of_kind("kueue.x-k8s.io", "ClusterQueue"):
        terms = map(mapping, sequence(part(item.body, "spec", "namespaceSelector", "matchExpressions")))
        if any(sequence(term.get("values")) == [bound.namespace] for term in terms):
            quotas = [found for found in _quotas(item.body) if found.get("name") == bound.resource]
            nominal = sum(_amount(found.get("nominalQuota")) for found in quotas)
            borrowed = sum(_amount(found.get("borrowingLimit")) for found in quotas)
            is_bounded = all("borrowingLimit" in found for found in quotas)
            yield nominal, nominal + borrowed if is_bounded else None


def _quotas(queue: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for group in sequence(part(queue, "spec", "resourceGroups")):
        for flavor in sequence(part(group, "flavors")):
            yield from map(mapping, sequence(part(flavor, "resources")))
