"""Checks on the nodes that hand-written workloads and queues ask for (GPU636)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpuplan.compiler.base.diagnostics import Finding, Path, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, parts_with, sequence, text, value_at
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import those_there_are
from gpuplan.compiler.planning.discovered import PRODUCT_LABEL, bare_product
from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Mig,
    Plan,
    Pool,
    RetainedNodes,
)
from gpuplan.compiler.planning.pools import ALL_DISABLED, shown_products
from gpuplan.features.components.checks.asking import PLACEHOLDER, asks, pods, quota_specs
from gpuplan.features.components.checks.objects import labels_of


@check("GPU636", "selector-of-no-node")
def selector_of_no_node(files: HandFiles) -> Iterator[Finding]:
    """A hand-written workload or flavor selects nodes by a label that no node of a pool has.

    ## Why
    Labels that choose a MIG layout or a file of the device plugin have other values under gpuplan than before: a node
    that was `all-1g.10gb` is `slices-2d7d978e`. `nvidia.com/gpu.product` follows from the pool's sharing: GPU feature
    discovery appends `-SHARED` to shares that are not renamed and `-MIG-1g.10gb` under the strategy `single`
    (`getProductName` in `internal/lm/resource.go` of NVIDIA/k8s-device-plugin). Pods that ask for another value wait
    for ever, and a ResourceFlavor with one has no nodes.

    It is an error where gpuplan alone decides: for `gpuplan.dev/pool`, and for other labels of a pool that is named
    along with them. Else nodes outside of all pools may have the label, and it is a warning. Products that no pool has
    are left alone, and so is what is only preferred.

    ## Instead
    Select by `gpuplan.dev/pool`: it stays when the pool is shared in another way.
    """
    plan = files.plan
    if plan is None or not plan.pools or plan.broken.pools or plan.broken.layouts:
        return
    nodes = _nodes(plan, files)
    for found in files.objects:
        for terms in selectors_of(found):
            faults = [[fault for asked in term for fault in _faults(asked, term, nodes)] for term in terms]
            if all(faults):
                yield from (_selects_nothing(plan, found, fault, nodes) for part in faults for fault in part)


# --- What is asked for -------------------------------------------------------------------------------------------


class _Asked(Value):
    """One of several labels that a node must have at once; any of the values will do."""

    route: Path
    key: str
    values: tuple[str, ...]


_Term = tuple[_Asked, ...]


def selectors_of(holder: Object) -> Iterator[Sequence[_Term]]:
    """Yield what each pod, or a flavor, asks of its nodes, wherever in an object it stands: one of several terms."""
    if holder.kind == "ResourceFlavor":
        yield (_by_labels(("spec", "nodeLabels"), inside(holder.body, "spec", "nodeLabels")),)
        return
    for route, part in parts_with(holder.body, "nodeSelector", "nodeAffinity"):
        yield (_by_labels((*route, "nodeSelector"), inside(part, "nodeSelector")),)
        above = ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
        if terms := sequence(value_at(part, above)):
            yield tuple(
                tuple(_by_expressions((*route, *above, index), mapping(term))) for index, term in enumerate(terms)
            )


def _by_labels(route: Path, labels: Mapping[str, object]) -> _Term:
    return tuple(_Asked((*route, key), key, (value,)) for key, value in labels.items() if isinstance(value, str))


def _by_expressions(route: Path, term: Mapping[str, object]) -> Iterator[_Asked]:
    for index, item in enumerate(sequence(term.get("matchExpressions"))):
        key, values = text(mapping(item).get("key")), sequence(mapping(item).get("values"))
        if mapping(item).get("operator") == "In" and all(isinstance(value, str) for value in values):
            yield _Asked((*route, "matchExpressions", index, "values"), key, tuple(map(str, values)))


def askers(files: HandFiles) -> Iterator[Object]:
    """Yield the objects of any kind that ask for resources, pods or nodes, or count what pods ask for."""
    yield from (ask.of for ask in asks(files))
    yield from (spec.of for spec in (*quota_specs(files), *pods(files)))
    yield from (item for item in files.objects if any(term for terms in selectors_of(item) for term in terms))


# --- What nodes have ---------------------------------------------------------------------------------------------


class _Nodes(Value):
    """Nodes that are alike: the values that each label may have on them, and the pool if they are of one."""

    labels: Mapping[str, frozenset[str]]
    pool: Pool | None = None


class _Fault(Value):
    """A label that no node has; ``is_sure`` where no node outside of the pools may have it either."""

    asked: _Asked
    is_sure: bool


def _nodes(plan: Plan, files: HandFiles) -> tuple[_Nodes, ...]:
    own = [_Nodes(_labels_of(part), part) for part in plan.parts]
    kept = [item.what.spec.labels for item in plan.retained if isinstance(item.what, RetainedNodes)]
    by_hand = [labels for item in files.of_kind("Node", "NodeFeatureRule") for _, labels in labels_of(item)]
    others = [{key: frozenset([text(value)]) for key, value in labels.items()} for labels in (*kept, *by_hand)]
    # What is retained, nodes may still name.
    entries = (ALL_DISABLED, *(item.spec.config_name for item in plan.retained_layouts))
    keys = (item.spec.key for item in plan.retained_plugin_configs)
    named = _Nodes({MIG_CONFIG_LABEL: frozenset(entries), DEVICE_PLUGIN_CONFIG_LABEL: frozenset(keys)})
    return (*own, *map(_Nodes, others), named)


def _labels_of(part: Pool) -> dict[str, frozenset[str]]:
    labels = {key: frozenset([value]) for key, value in part.labels.items()}
    return labels | {PRODUCT_LABEL: frozenset(shown_products(part))}


def _faults(asked: _Asked, term: _Term, nodes: Sequence[_Nodes]) -> Iterator[_Fault]:
    if asked.key not in _JUDGED or any(not value or PLACEHOLDER.search(value) for value in asked.values):
        return
    named = next((other.values for other in term if other.key == POOL_LABEL and other is not asked), ())
    pinned = [item for item in nodes if item.pool and item.pool.name in named]
    # Nodes that keep labels, and those labelled by hand, may be of any pool.
    possible = [item for item in nodes if not pinned or item.pool is None or item in pinned]
    known = {value for item in possible for value in item.labels.get(asked.key, ())}
    is_product = asked.key == PRODUCT_LABEL
    if not any(value in known or (is_product and _may_be_elsewhere(value, nodes)) for value in asked.values):
        yield _Fault(asked, is_sure=asked.key == POOL_LABEL or (bool(pinned) and not is_product))


_JUDGED = (POOL_LABEL, MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL, PRODUCT_LABEL)


def _may_be_elsewhere(product: str, nodes: Sequence[_Nodes]) -> bool:
    """Whether a product may be that of a board which no pool has."""
    own = {item.pool.gpu.id: item.pool.gpu for item in nodes if item.pool}.values()
    bare = bare_product(product)
    if any(bare == item.label for gpu in own for item in gpu.products):
        return False
    is_known = any(bare == item.label for gpu in load().all() for item in gpu.products)
    return is_known or not any(may_be_called(product, gpu) for gpu in own)


def may_be_called(product: str, gpu: Gpu) -> bool:
    from gpuplan.compiler.catalog import suggestions

    return suggestions.may_be_called(product, gpu)


# --- What was meant ----------------------------------------------------------------------------------------------


def _selects_nothing(plan: Plan, holder: Object, fault: _Fault, nodes: Sequence[_Nodes]) -> Finding:
    asked, meant = fault.asked, _meant(plan, fault.asked)
    wanted = listing([f"{asked.key}: {value}" for value in asked.values], 3, "or")
    there = sorted({value for item in nodes if item.pool for value in item.labels.get(asked.key, ())})
    has = listing(sorted(_labels_of(meant[0]).get(asked.key, ())), 3, "or") if meant else ""
    pools = listing([f"{POOL_LABEL}: {part.name}" for part in meant or plan.pools], 3, "or")
    return Finding(
        holder.place(*asked.route),
        f"no node of a pool has {wanted}, which {holder.title} selects",
        label=f"nodes of pool `{meant[0].name}` have {has}" if has else "selects nothing",
        notes=() if has else those_there_are(there),
        help=f"write {pools}" if meant else f"select nodes by {pools}",
        severity=None if fault.is_sure else Severity.WARNING,
    )


def _meant(plan: Plan, asked: _Asked) -> list[Pool]:
    """The pools whose nodes are probably meant, one part of each."""
    parts = [part for value in asked.values for part in plan.parts if _is_meant(plan, asked.key, value, part)]
    return list({part.name: part for part in reversed(parts)}.values())[::-1]


def _is_meant(plan: Plan, key: str, value: str, part: Pool) -> bool:
    if key == PRODUCT_LABEL:
        return may_be_called(value, part.gpu)
    own = part.labels.get(key, "")
    if key == MIG_CONFIG_LABEL and isinstance(part.sharing, Mig):
        profiles = {name.replace("+", ".") for entry in part.sharing.layout.entries for name in entry.instances}
        if value.removeprefix("all-") in profiles or _STEM.sub("", own) in (value, _STEM.sub("", value)):
            return True
    known = [pool.labels[key] for pool in plan.parts if key in pool.labels]
    return bool(own) and misspelling(value, dict.fromkeys(known)) == own


_STEM = regex(r"-[0-9a-f]{8}$")
