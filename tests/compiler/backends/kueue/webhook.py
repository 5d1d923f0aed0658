"""What Kueue's webhooks refuse although the definitions of its kinds allow it, read in Kueue 0.19.

Each rule is a function that names what breaks it. The sources are `pkg/webhooks/clusterqueue_webhook.go`,
`cohort_webhook.go`, `resourceflavor_webhook.go` and `common.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

Spec = Mapping[str, Any]

SUFFIXES = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
QUANTITY = re.compile(r"(-?[0-9]+)([numkMGTPE]?)")
LABEL = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def number(quantity: str) -> Decimal:
    match = QUANTITY.fullmatch(quantity)
    assert match, quantity
    return int(match[1]) * Decimal(1000) ** SUFFIXES[match[2]]


def groups(spec: Spec) -> list[Any]:
    found: list[Any] = spec.get("resourceGroups", [])
    return found


def resource_names(spec: Spec) -> Iterator[str]:
    """`validateResourceName`, and a resource in one group only (`validateResourceGroups`)."""
    covered = [name for group in groups(spec) for name in group["coveredResources"]]
    yield from (name for name in covered if not LABEL.fullmatch(name))
    if len(set(covered)) < len(covered):
        yield "a resource twice"


def flavor_names(spec: Spec) -> Iterator[str]:
    """A flavor in one group only (`validateResourceGroups`)."""
    names = [flavor["name"] for group in groups(spec) for flavor in group["flavors"]]
    if len(set(names)) < len(names):
        yield "a flavor twice"


def order_of_resources(spec: Spec) -> Iterator[str]:
    """Every flavor lists the covered resources, in their order (`validateFlavorQuotas`)."""
    for group in groups(spec):
        for flavor in group["flavors"]:
            if [quota["name"] for quota in flavor["resources"]] != group["coveredResources"]:
                yield flavor["name"]


def quotas(spec: Spec) -> Iterator[tuple[str, dict[str, Decimal]]]:
    for group in groups(spec):
        for flavor in group["flavors"]:
            for quota in flavor["resources"]:
                numbers = {key: number(value) for key, value in quota.items() if key != "name"}
                yield f"{flavor['name']} {quota['name']}", numbers


def not_negative(spec: Spec) -> Iterator[str]:
    """`validateResourceQuantity`."""
    yield from (where for where, numbers in quotas(spec) if min(numbers.values()) < 0)


def limits_below_a_parent(spec: Spec) -> Iterator[str]:
    """Borrowing and lending limits need a cohort, or a parent (`validateLimit`)."""
    if "cohortName" not in spec and "parentName" not in spec:
        yield from (where for where, numbers in quotas(spec) if {"borrowingLimit", "lendingLimit"} & numbers.keys())


def lending_within_nominal(spec: Spec) -> Iterator[str]:
    """A queue lends no more than it has; a cohort may (`validateLendingLimit`)."""
    if "namespaceSelector" in spec:
        yield from (
            where
            for where, numbers in quotas(spec)
            if numbers.get("lendingLimit", Decimal(0)) > numbers["nominalQuota"]
        )


def sizes(spec: Spec) -> Iterator[str]:
    """`validateTotalFlavors`, `validateTotalCoveredResources`, `validateFlavorResourceCombinations`."""
    if "namespaceSelector" not in spec:
        return
    if sum(len(group["flavors"]) for group in groups(spec)) > 256:
        yield "flavors"
    if sum(len(group["coveredResources"]) for group in groups(spec)) > 256:
        yield "resources"
    if any(len(group["flavors"]) * len(group["coveredResources"]) > 512 for group in groups(spec)):
        yield "combinations"


def preemption(spec: Spec) -> Iterator[str]:
    """Borrowers evict nobody where lenders do not (`validatePreemption`)."""
    found = spec.get("preemption", {})
    if found.get("reclaimWithinCohort", "Never") == "Never":
        policy = found.get("borrowWithinCohort", {}).get("policy", "Never")
        if policy != "Never":
            yield policy


def fungibility(spec: Spec) -> Iterator[str]:
    """A preference needs both searches to go on (`validateFlavorFungibility`)."""
    found = spec.get("flavorFungibility", {})
    if "preference" in found and {found.get("whenCanBorrow"), found.get("whenCanPreempt")} != {"TryNextFlavor"}:
        yield found["preference"]


def weight(spec: Spec) -> Iterator[str]:
    """Nothing, or more than a billionth (`validateFairSharing`)."""
    found = number(spec.get("fairSharing", {}).get("weight", "1"))
    if found < 0 or 0 < found <= Decimal("1E-9"):
        yield str(found)


def tolerations(spec: Spec) -> Iterator[str]:
    """A key is a label's name; `Exists` has no value (`validateTolerations`)."""
    for toleration in spec.get("tolerations", []):
        if not LABEL.fullmatch(toleration["key"]) or (toleration["operator"] == "Exists") == ("value" in toleration):
            yield toleration["key"]


def levels(spec: Spec) -> Iterator[str]:
    """The host is the lowest level: a rule of the definition that only an API server evaluates."""
    labels = [level["nodeLabel"] for level in spec.get("levels", [])]
    if len(set(labels)) < len(labels) or any(above == "kubernetes.io/hostname" for above, _ in pairwise(labels)):
        yield " ".join(labels)


RULES: tuple[Callable[[Spec], Iterator[str]], ...] = (
    resource_names,
    flavor_names,
    order_of_resources,
    not_negative,
    limits_below_a_parent,
    lending_within_nominal,
    sizes,
    preemption,
    fungibility,
    weight,
    tolerations,
    levels,
)


def refusals(spec: Spec) -> list[str]:
    return [f"{rule.__name__}: {what}" for rule in RULES for what in rule(spec)]
