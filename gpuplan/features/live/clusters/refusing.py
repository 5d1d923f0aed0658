"""What a cluster's admission policies leave out of what gpuplan has them refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuplan.compiler.admission.policies import POD_SECURITY_POLICY, policy, rules_of
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, sequence, text
from gpuplan.compiler.manifests import kubernetes_versions
from gpuplan.compiler.planning.grants import GRANTS_POLICY, USUAL_GRACE_SECONDS
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.clusters.reader import Reader, Spec, differing, part, plan_of
from gpuplan.features.live.dump import Item

_GROUP: Final = "admissionregistration.k8s.io"
_KIND: Final = "ValidatingAdmissionPolicy"
_GRACE: Final = "grace-period"
_BOUND: Final = regex(r"int\(params\.data\.gracePeriod\) : (\d{1,9})\)")


def read(reader: Reader, spec: Mapping[str, Any]) -> Spec:
    """The part on admission; ``spec`` is the rest of the cluster's."""
    found = {item.name: item for item in reader.dump.of_kind(_GROUP, _KIND)}
    plan = plan_of(spec, reader.cluster) if GRANTS_POLICY in found else None
    if plan is None:
        return {}
    reader.use(found[GRANTS_POLICY])
    there = {name: _messages(item.body) for name, item in found.items()}
    usual = {"gracePeriod": f"{USUAL_GRACE_SECONDS}s", "without": []}
    told = {"gracePeriod": _grace_period(found[GRANTS_POLICY].body), "without": [*_left_out(plan, there)]}
    return differing(told, usual)


def newest_version(reader: Reader) -> str:
    """The newest version of Kubernetes for which gpuplan writes what it has pods of tenants refused; else empty.

    Newer versions have the level `baseline` of Pod Security forbid more.
    """
    found = reader.dump.find(_GROUP, _KIND, POD_SECURITY_POLICY)
    if found is None:
        return ""
    oldest, newest = (int(version.rpartition(".")[2]) for version in kubernetes_versions())
    versions = (f"1.{minor}" for minor in range(newest, oldest - 1, -1))
    return next((version for version in versions if _refuses_as(reader, found, version)), "")


def _refuses_as(reader: Reader, found: Item, version: str) -> bool:
    plan = plan_of({"kubernetes": version, "gpuOperator": {"install": "helm", "version": "v26.7.0"}}, reader.cluster)
    written = policy(plan, POD_SECURITY_POLICY).body if plan else {}
    return all(part(found.body, "spec", key) == part(written, "spec", key) for key in ("variables", "validations"))


def _left_out(plan: Plan, there: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """The optional rules that the cluster would have. A policy that must be there and is not was not dumped."""
    dumped = (found for found in rules_of(plan) if found.name in there or all(rule.optional for rule in found.rules))
    for known in dumped:
        for rule in known.rules:
            if rule.optional and rule.message not in there.get(known.name, ()):
                yield rule.name


def _messages(body: Mapping[str, Any]) -> frozenset[str]:
    rules = sequence(part(body, "spec", "validations"))
    return frozenset(text(mapping(rule).get("message")) for rule in rules)


def _grace_period(body: Mapping[str, Any]) -> str:
    """The bound for pods whose tenant has none of its own."""
    for rule in map(mapping, sequence(part(body, "spec", "validations"))):
        if bound := _BOUND.search(text(rule.get("expression"))):
            return _duration(int(bound[1]))
    return "none"


def _duration(seconds: int) -> str:
    for size, unit in ((3600, "h"), (60, "m")):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
