"""Complete the help that a document alone cannot give: the pools that it may mean, and the names of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, value_at, value_of
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.documents import Document
from gpuplan.compiler.planning.node_pools import find_names
from gpuplan.compiler.policy.rules import UNKNOWN_FIELD, WRONG_TYPE


def with_node_names(diagnostic: Diagnostic) -> Diagnostic:
    """Return a finding whose help names `selector` with what to write if rules choose nodes, which see no labels."""
    finding, source = diagnostic.finding, diagnostic.finding.at.source
    found = _SELECTOR.search(finding.help) if diagnostic.rule in (UNKNOWN_FIELD, WRONG_TYPE) else None
    if not found or not isinstance(source, Document) or source.kind != "Pool":
        return diagnostic
    labels = mapping(value_at(source.data, finding.at.path)) or dict(_LABEL.findall(found[1] or ""))
    names = find_names({key: str(value) for key, value in labels.items()})
    by_name = (
        f"`namePattern: {names.pattern}`"
        if names
        else "`namePattern:` with a regular expression for the names of these nodes"
    )
    external = "if the Cluster has `nodeLabels: external`"
    help_ = (
        f"{finding.help} {external}, or {by_name} in its place, since Node Feature Discovery sees no labels of nodes"
    )
    return diagnostic.rule.report(replace(finding, help=help_))


_SELECTOR = regex(r"`selector:(?: \{(.*)\})?`|as `selector`")
_LABEL = regex(r"([\w./-]+): ([\w.-]+)")


def with_pools(diagnostic: Diagnostic, documents: Iterable[Document]) -> Diagnostic:
    """Return a finding whose help leaves a pool open with the names of the pools that have the unit there, if any."""
    finding, documents = diagnostic.finding, list(documents)
    if (found := _OPEN_POOL.search(finding.help)) is None:
        return diagnostic
    quota = (
        mapping(value_at(finding.at.source.data, finding.at.path)) if isinstance(finding.at.source, Document) else {}
    )
    layouts = {item.name: value_of(item.data, ("spec", "instances")) for item in documents if item.kind == "MigLayout"}
    shared = [(item.name, value_of(item.data, ("spec", "sharing"))) for item in documents if item.kind == "Pool"]
    unit = found["unit"] or quota.get("unit")
    pools = sorted({name for name, sharing in shared if offers(mapping(sharing), layouts, unit)})
    if not pools or pools[_MOST_POOLS:]:
        return diagnostic
    names = listing(pools, None, "or")
    help_ = f"{finding.help}, with {names} as the `pool`" if found[1] else f"{finding.help} with {names}"
    if not pools[1:]:
        help_ = finding.help.replace(found[1] or found[3], f"pool: {pools[0]}")
    return diagnostic.rule.report(replace(finding, help=help_))


_OPEN_POOL = regex(r"(pool: \.\.\.)(?:`?, `?unit: (?P<unit>[^,}`]+))?|(?<=^add `)(pool:)(?=`$)")
_MOST_POOLS = 8


def offers(sharing: Mapping[str, object], layouts: Mapping[str, object], unit: object) -> bool:
    """Whether the way in which a pool is shared makes a unit, or without one, whether it makes no more than one."""
    mig = mapping(sharing.get("mig"))
    instances = mapping(mig.get("instances") or layouts.get(str(mig.get("layout"))))
    if unit == "shared":
        return not sharing.keys().isdisjoint(("timeSlicing", "mps"))
    return unit in instances if unit else len(instances) <= 1
