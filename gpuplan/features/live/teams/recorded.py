"""Read what gpuplan's recording rules say of tenants: what each is guaranteed, and what it may have at most."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from gpuplan.compiler.backends.monitoring.rules import NAMESPACE_TENANT, TENANT_GUARANTEED_UNITS, TENANT_LIMIT_UNITS
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.plan import Amount, UnitKey
from gpuplan.compiler.policy.models import Cap
from gpuplan.features.live.dump import Dump


class Bounds(NamedTuple):
    """In units; ``limit`` is None where unbounded."""

    guaranteed: int | float
    limit: int | float | None


class Recorded(Value):
    """By tenant, and by unit in the order of its quotas; ``capped_by`` is which of the two ResourceQuotas have."""

    bounds: Mapping[str, Mapping[UnitKey, Bounds]]
    capped_by: Cap

    def find(self, tenant: str, unit: UnitKey) -> Bounds | None:
        return self.bounds.get(tenant, {}).get(unit)

    def cap(self, tenant: str, unit: UnitKey) -> int | float | None:
        """What a ResourceQuota has of it."""
        found = self.find(tenant, unit)
        if found is None:
            return None
        return found.guaranteed if self.capped_by is Cap.GUARANTEED else found.limit

    def with_quotas(self, quotas: Mapping[str, Sequence[Mapping[str, Any]]]) -> Recorded:
        """And what entries of `spec.quotas` say, by tenant."""
        added = {
            tenant: {
                (text(quota.get("pool")), text(quota.get("unit"))): Bounds(quota["guaranteed"], _limit(quota))
                for quota in entries
                if isinstance(quota.get("guaranteed"), int | float)
            }
            for tenant, entries in quotas.items()
        }
        return Recorded({**self.bounds, **added}, self.capped_by)


def _limit(quota: Mapping[str, Any]) -> int | float | None:
    limit = quota.get("limit", quota["guaranteed"])
    return limit if isinstance(limit, int | float) else None


def read_recorded(dump: Dump, capped_by: Cap) -> Recorded:
    guaranteed: dict[str, dict[UnitKey, int | float]] = {}
    limits: dict[str, dict[UnitKey, int | float]] = {}
    for record, labels, amount in _rules(dump):
        into = guaranteed if record == TENANT_GUARANTEED_UNITS else limits
        into.setdefault(labels[0], {}).setdefault(labels[1:], amount)
    bounds = {
        tenant: {unit: Bounds(amount, limits.get(tenant, {}).get(unit)) for unit, amount in units.items()}
        for tenant, units in guaranteed.items()
    }
    return Recorded(bounds, capped_by)


def recorded_namespaces(dump: Dump) -> tuple[str, ...]:
    """Those of tenants, in the order in which the policies name them."""
    return tuple(text(labels.get("namespace")) for record, labels, _ in _recording(dump) if record == NAMESPACE_TENANT)


def _rules(dump: Dump) -> Iterator[tuple[str, tuple[str, str, str], int | float]]:
    for record, labels, expression in _recording(dump):
        amount = _VECTOR.fullmatch(expression)
        if amount and record in (TENANT_GUARANTEED_UNITS, TENANT_LIMIT_UNITS):
            names = text(labels.get("tenant")), text(labels.get("pool")), text(labels.get("unit"))
            yield record, names, _number(Decimal(amount[1]))


def _recording(dump: Dump) -> Iterator[tuple[str, Mapping[str, object], str]]:
    for item in dump.of_kind("monitoring.coreos.com", "PrometheusRule"):
        for group in sequence(inside(item.body, "spec").get("groups")):
            for rule in map(mapping, sequence(mapping(group).get("rules"))):
                yield text(rule.get("record")), mapping(rule.get("labels")), text(rule.get("expr"))


_VECTOR = re.compile(r"vector\(([0-9]{1,12}(?:\.[0-9]{1,9})?)\)")


def _number(amount: Amount) -> int | float:
    return int(amount) if amount == int(amount) else float(amount)
