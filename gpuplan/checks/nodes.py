"""Checks on the nodes of pools (GPU140-154): which nodes, with which labels and taints."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from gpuplan.checks.registry import Check, check
from gpuplan.diagnostics import Finding, Label, Origin
from gpuplan.planning.node_patterns import (
    LONGEST_NAME,
    NodePattern,
    Unreadable,
    count_names,
    find_common_name,
    find_name,
    parse,
)
from gpuplan.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    NodeLabels,
    Plan,
    Pool,
)
from gpuplan.policy.models import DNS_SUBDOMAIN
from gpuplan.wording import listing

_IS_SUBDOMAIN = re.compile(DNS_SUBDOMAIN).fullmatch

# --- Which nodes -------------------------------------------------------------------------------------------------


@check("GPU140", "node-in-two-pools")
def node_in_two_pools(plan: Plan) -> Iterator[Finding]:
    """A node belongs to two pools.

    ## Why
    A pool gives its nodes a MIG layout, a device-plugin configuration and taints, each by one label or key. A node in
    two pools gets two values for one label: the last writer wins, again at each reconciliation, and a node whose
    `nvidia.com/mig.config` goes back and forth destroys its GPU instances each time. Patterns are compared exactly:
    the node name in the finding is one that both pools match.

    ## Instead
    Take the node out of one of the pools, or narrow one pattern so that no name matches both.
    """
    yield from _names_shared(plan)
    yield from _names_that_match(plan)
    yield from _patterns_that_meet(plan)


def _names_shared(plan: Plan) -> Iterator[Finding]:
    first: dict[str, tuple[Pool, Origin]] = {}
    for pool in plan.pools:
        for index, name in enumerate(pool.nodes.names):
            at = pool.nodes.at / "names" / index
            owner, other_at = first.setdefault(name, (pool, at))
            if owner is not pool:
                yield _shared(name, pool, at, owner, other_at)


def _names_that_match(plan: Plan) -> Iterator[Finding]:
    """The first listed name of each other pool that a pattern matches; only names with its prefix are tried."""
    listed = sorted(
        (name, order, index) for order, pool in enumerate(plan.pools) for index, name in enumerate(pool.nodes.names)
    )
    for pool, pattern in _patterns(plan):
        met: set[int] = set()
        for place in range(bisect_left(listed, (pattern.prefix,)), len(listed)):
            name, order, index = listed[place]
            if not name.startswith(pattern.prefix):
                break
            if order not in met and pattern.matches(name):
                met.add(order)
                other = plan.pools[order]
                yield _shared(name, pool, _pattern_at(pool), other, other.nodes.at / "names" / index)


def _patterns_that_meet(plan: Plan) -> Iterator[Finding]:
    """Two patterns can meet only when the fixed beginning of one begins the other's."""
    patterns = sorted(_patterns(plan), key=lambda item: (item[1].prefix, item[0].name))
    for index, (pool, pattern) in enumerate(patterns):
        for other, other_pattern in patterns[index + 1 :]:
            if not other_pattern.prefix.startswith(pattern.prefix):
                break
            name = find_common_name(pattern, other_pattern)
            if name is not None:
                first, second = sorted((pool, other), key=lambda item: item.name)
                yield _shared(name, second, _pattern_at(second), first, _pattern_at(first))


def _shared(name: str, pool: Pool, at: Origin, other: Pool, other_at: Origin) -> Finding:
    first, second = sorted((pool.name, other.name))
    return Finding(
        at,
        f"node `{name}` belongs to the pools `{first}` and `{second}`",
        label=f"takes `{name}`",
        related=(Label(other_at, f"pool `{other.name}` takes it too"),),
        notes=("a node has one value for each label, so it can be in one pool only",),
        help=f"take `{name}` out of one of the two pools",
    )


@check("GPU141", "unreadable-name-pattern")
def unreadable_name_pattern(plan: Plan) -> Iterator[Finding]:
    """A node-name pattern is not a regular expression that gpuplan can compare with others.

    ## Why
    The NodeFeatureRule's pattern is read by Go's RE2, which has no look-around and no back-references: the rule would
    never match and the pool would have no nodes. gpuplan must also prove that no node belongs to two pools, for which
    it understands characters, classes, groups, alternatives and repetitions.

    ## Instead
    Say what the names are: `gpu-a100-[0-9]+`, `(rack1|rack2)-n[0-9]{2}`. Anchors are not needed, for the whole name
    is matched.
    """
    for pool in plan.pools:
        pattern = None if pool.nodes.name_pattern is None else parse(pool.nodes.name_pattern)
        if isinstance(pattern, Unreadable):
            yield Finding(
                _pattern_at(pool),
                f"pattern of pool `{pool.name}` cannot be read: {pattern.reason}",
                label=f"at character {pattern.column}",
                notes=("gpuplan compares patterns to prove that no node belongs to two pools",),
                help=pattern.instead,
            )


@check("GPU142", "pattern-matches-no-node")
def pattern_matches_no_node(plan: Plan) -> Iterator[Finding]:
    """A node-name pattern matches no name that a node can have.

    ## Why
    A node's name is a DNS subdomain: lower-case letters, digits, `-` and `.`, at most 253 of them, with a letter or a
    digit at both ends of each part. A pattern that asks for anything else leaves its pool without nodes.

    ## Instead
    Write the pattern in lower case, with `-` instead of `_`. It must match the whole name.
    """
    for pool, pattern in _patterns(plan):
        if find_name(pattern) is None:
            yield Finding(
                _pattern_at(pool),
                f"pattern of pool `{pool.name}` matches no node name",
                label="matches nothing",
                notes=tuple(_why_nothing(pattern)),
                help=_lower_case(pattern) or "the pattern must match the whole name, such as `gpu-a100-[0-9]+`",
            )


def _why_nothing(pattern: NodePattern) -> Iterator[str]:
    yield f"node names have lower-case letters, digits, `-` and `.`, and at most {LONGEST_NAME} characters"
    if pattern.foreign:
        yield f"no node name has {listing(tuple(pattern.foreign), len(pattern.foreign))}"


def _lower_case(pattern: NodePattern) -> str:
    text = pattern.text.lower().replace("_", "-")
    better = parse(text)
    return f"write `{text}`" if isinstance(better, NodePattern) and find_name(better) else ""


@check("GPU143", "pattern-matches-too-few-nodes")
def pattern_matches_too_few_nodes(plan: Plan) -> Iterator[Finding]:
    """A node-name pattern matches fewer names than the pool has nodes.

    ## Why
    Capacity is counted with `count`. When the pattern can match only eight names, the other nodes never join the pool,
    and quotas promise GPUs that do not exist.

    ## Instead
    Widen the pattern, or lower `count`.
    """
    for pool, pattern in _patterns(plan):
        count = count_names(pattern, pool.nodes.count)
        if 0 < count < pool.nodes.count:
            yield Finding(
                pool.nodes.at / "count",
                f"pool `{pool.name}` has {pool.nodes.count} nodes, but its pattern matches {_times(count, 'name')}",
                label=f"at most {count}",
                related=(Label(_pattern_at(pool), f"matches {_times(count, 'name')}"),),
                help=f"widen the pattern, or write `count: {count}`",
            )


@check("GPU144", "node-count-differs")
def node_count_differs(plan: Plan) -> Iterator[Finding]:
    """A pool lists more or fewer nodes than it counts.

    ## Why
    Capacity is counted with `count`; labels are put on the nodes that are listed. Where the two differ, quotas promise
    GPUs that do not exist, or some lie idle.

    ## Instead
    Write the number of the listed nodes, or list them all.
    """
    for pool in plan.pools:
        listed = len(set(pool.nodes.names))
        if listed and pool.nodes.count not in (listed, len(pool.nodes.names)):
            yield Finding(
                pool.nodes.at / "count",
                f"pool `{pool.name}` counts {_times(pool.nodes.count, 'node')} and lists {listed}",
                label=f"{listed} listed",
                related=(Label((pool.nodes.at / "names").key, f"lists {_times(listed, 'node')}"),),
                help=f"write `count: {listed}`, or correct the list",
            )


@check("GPU145", "node-named-twice")
def node_named_twice(plan: Plan) -> Iterator[Finding]:
    """A pool lists a node twice.

    ## Why
    It is one node, however often it is listed. Most likely another name was meant.

    ## Instead
    Remove the name, or write the one that was meant.
    """
    for pool in plan.pools:
        first: dict[str, int] = {}
        for index, name in enumerate(pool.nodes.names):
            if first.setdefault(name, index) != index:
                yield Finding(
                    pool.nodes.at / "names" / index,
                    f"pool `{pool.name}` lists node `{name}` twice",
                    label="listed before",
                    related=(Label(pool.nodes.at / "names" / first[name], "the first time"),),
                    help="remove it, or write the name that was meant",
                )


@check("GPU146", "names-and-pattern")
def names_and_pattern(plan: Plan) -> Iterator[Finding]:
    """A pool has both a list of node names and a pattern.

    ## Why
    Two descriptions of the same nodes disagree sooner or later: a node that one names and the other does not is in the
    pool for one reader and not for another.

    ## Instead
    Keep `names` where nodes are fixed, `namePattern` where they come and go.
    """
    for pool in plan.pools:
        if pool.nodes.names and pool.nodes.name_pattern is not None:
            yield Finding(
                _pattern_at(pool).key,
                f"pool `{pool.name}` has both `names` and `namePattern`",
                label="says again which nodes",
                related=(Label((pool.nodes.at / "names").key, "the nodes by name"),),
                help="keep `names` where nodes are fixed, `namePattern` where they come and go",
            )


@check("GPU147", "invalid-node-name")
def invalid_node_name(plan: Plan) -> Iterator[Finding]:
    """A pool lists a name that no node can have.

    ## Why
    A node's name is a DNS subdomain of at most 253 characters: lower-case letters, digits, `-` and `.`, with a letter
    or a digit at both ends of each part. Cloud providers and hosts write names in upper case or with `_` that
    Kubernetes then lowers or refuses.

    ## Instead
    Use the name that `kubectl get nodes` shows.
    """
    for pool in plan.pools:
        for index, name in enumerate(pool.nodes.names):
            if len(name) > LONGEST_NAME or not _IS_SUBDOMAIN(name):
                yield Finding(
                    pool.nodes.at / "names" / index,
                    f"`{name}` is not a node name",
                    label="not a DNS subdomain",
                    notes=("node names have lower-case letters, digits, `-` and `.`, and at most 253 characters",),
                    help="use the name that `kubectl get nodes` shows",
                )


# --- Labels ------------------------------------------------------------------------------------------------------


@check("GPU148", "invalid-node-label")
def invalid_node_label(plan: Plan) -> Iterator[Finding]:
    """A node label's key or value has a form that Kubernetes does not take.

    ## Why
    A key is a name of at most 63 characters, with an optional prefix that is a DNS subdomain: `example.com/rack`. A
    value has at most 63 characters: letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends. The API
    server refuses the whole Node for one bad label; NFD drops the label and logs it.

    ## Instead
    Correct the key or the value as the finding says.
    """
    for pool in plan.pools:
        for key, value in pool.node_labels.items():
            at = pool.at / "nodeLabels" / key
            if fault := key_fault(key):
                yield Finding(at.key, f"`{key}` is not a label key: {fault}", label=fault, help=_KEY_HELP)
            elif fault := _value_fault(value):
                yield Finding(at, f"`{value}` is not a label value: {fault}", label=fault, help=_VALUE_HELP)


_OWN_LABELS = {
    POOL_LABEL: "the pool's name",
    DEVICE_PLUGIN_CONFIG_LABEL: "the key of the pool's device-plugin configuration",
    MIG_CONFIG_LABEL: "the pool's MIG layout",
}


@check("GPU149", "node-label-with-two-values")
def node_label_with_two_values(plan: Plan) -> Iterator[Finding]:
    """A pool sets a node label that gpuplan sets itself, to another value.

    ## Why
    `gpuplan.dev/pool`, `nvidia.com/mig.config` and `nvidia.com/device-plugin.config` follow from the policy. A label
    has one value: another one here would point nodes at a layout or configuration that does not exist, for which
    mig-manager reports `failed` and the device plugin publishes no GPUs.

    ## Instead
    Remove the label; change `sharing` to change what nodes get.
    """
    for pool in plan.pools:
        for key, value in pool.node_labels.items():
            if key in _OWN_LABELS and value != pool.labels[key]:
                yield Finding(
                    pool.at / "nodeLabels" / key,
                    f"node label `{key}` would have two values",
                    label=f"gpuplan writes `{pool.labels[key]}`",
                    notes=(f"it stands for {_OWN_LABELS[key]} and follows from the policy",),
                    help="remove the label; change `sharing` to change what nodes get",
                )


_DISCOVERED = re.compile(
    r"nvidia\.com/(gpu\.(product|family|memory|count|replicas|compute\.(major|minor)|machine|mode|sharing-strategy|clique)"
    r"|mig-.+|mig\.(capable|strategy|config\.state)|mps\.capable|(cuda|gfd|vgpu)\..+)"
)
"""What GPU feature discovery (k8s-device-plugin `internal/lm`) and mig-manager write on nodes."""


@check("GPU150", "discovered-node-label")
def discovered_node_label(plan: Plan) -> Iterator[Finding]:
    """A pool sets a node label that the GPU Operator discovers.

    ## Why
    GPU feature discovery writes `nvidia.com/gpu.product`, `gpu.count`, `gpu.memory` and the like on each node, and
    mig-manager `mig.config.state`: two writers for one label. Their values also change with the pool's own sharing:
    time-slicing appends `-SHARED` to the product and MIG `-MIG-1g.10gb`, so whatever selects nodes by them loses its
    nodes by gpuplan's own change.

    ## Instead
    Select nodes by `gpuplan.dev/pool`, or give them a label of your own.
    """
    for pool in plan.pools:
        for key in pool.node_labels:
            if _DISCOVERED.fullmatch(key):
                yield Finding(
                    (pool.at / "nodeLabels" / key).key,
                    f"node label `{key}` is written by the GPU Operator",
                    label="two writers for one label",
                    notes=("it says what a node has, and changes when the pool's sharing changes",),
                    help=f"select nodes by `{POOL_LABEL}: {pool.name}`, or use a label of your own",
                )


@check("GPU151", "node-label-refused-by-nfd")
def node_label_refused_by_nfd(plan: Plan) -> Iterator[Finding]:
    """Node Feature Discovery does not write a label with this key.

    ## Why
    With `nodeLabels: nfd`, labels are put on nodes by a NodeFeatureRule. NFD never writes labels of `kubernetes.io` and
    its sub-domains, except `feature.node.kubernetes.io` and `profile.node.kubernetes.io`; a key without a prefix gets
    `feature.node.kubernetes.io/` put before it, or is dropped. Either way it only logs it, and the node does not have
    the label that the policy says.

    ## Instead
    Use a domain of your own, such as `example.com/rack`. Labels like `node-role.kubernetes.io/gpu` must come from
    whatever makes the nodes.
    """
    for pool in plan.pools if plan.cluster.node_labels is NodeLabels.NFD else ():
        for key in pool.node_labels:
            if not key_fault(key) and (fault := _nfd_fault(key, ("feature", "profile"))):
                yield Finding(
                    (pool.at / "nodeLabels" / key).key,
                    f"NFD does not write the label `{key}`",
                    label=fault,
                    help=_own_domain(key),
                )


# --- Taints ------------------------------------------------------------------------------------------------------


@check("GPU152", "invalid-taint")
def invalid_taint(plan: Plan) -> Iterator[Finding]:
    """A taint's key or value has a form that Kubernetes does not take.

    ## Why
    Taints follow the rules of labels: a key is a name with an optional prefix, a value has at most 63 characters.
    The API server refuses the node's update for one bad taint, and then the node has none of the others either.

    ## Instead
    Correct the key or the value as the finding says.
    """
    for pool in plan.pools:
        for taint in pool.taints:
            if fault := key_fault(taint.key):
                yield Finding(
                    taint.at / "key", f"`{taint.key}` is not a taint key: {fault}", label=fault, help=_KEY_HELP
                )
            if fault := _value_fault(taint.value):
                yield Finding(
                    taint.at / "value", f"`{taint.value}` is not a taint value: {fault}", label=fault, help=_VALUE_HELP
                )


@check("GPU153", "taint-twice")
def taint_twice(plan: Plan) -> Iterator[Finding]:
    """A pool has two taints with the same key and effect.

    ## Why
    A node can have one taint for each key and effect; the API server refuses a second one, whatever its value.

    ## Instead
    Remove one of the two, or give it another effect or key.
    """
    for pool in plan.pools:
        first: dict[tuple[str, str], Origin] = {}
        for taint in pool.taints:
            before = first.setdefault((taint.key, taint.effect), taint.at)
            if before is not taint.at:
                yield Finding(
                    taint.at / "key",
                    f"pool `{pool.name}` has the taint `{taint.key}:{taint.effect}` twice",
                    label="the second",
                    related=(Label(before / "key", "the first"),),
                    notes=("a node has one taint for each key and effect, whatever the values",),
                    help="remove one of the two, or give it another effect or key",
                )


@check("GPU154", "taint-refused-by-nfd")
def taint_refused_by_nfd(plan: Plan) -> Iterator[Finding]:
    """Node Feature Discovery does not write a taint with this key.

    ## Why
    With `nodeLabels: nfd`, taints are put on nodes by a NodeFeatureRule. NFD drops a taint whose key has no prefix or
    one of `kubernetes.io` and its sub-domains, except `feature.node.kubernetes.io`. It only logs it, and pods that
    have no business there are scheduled to the pool.

    ## Instead
    Use `nvidia.com/gpu`, which the GPU Operator's own pods tolerate, or a domain of your own.
    """
    for pool in plan.pools if plan.cluster.node_labels is NodeLabels.NFD else ():
        for taint in pool.taints:
            if not key_fault(taint.key) and (fault := _nfd_fault(taint.key, ("feature",))):
                yield Finding(
                    taint.at / "key",
                    f"NFD does not write the taint `{taint.key}`",
                    label=fault,
                    help=_own_domain(taint.key),
                )


# --- Keys and values ---------------------------------------------------------------------------------------------

_NAME_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_KEY_HELP = (
    "a key is a name of letters, digits, `-`, `_` and `.`, with an optional domain before it: `example.com/rack`"
)
_VALUE_HELP = "a value has letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends"
_LONGEST_PART = 63


def key_fault(key: str) -> str:
    """Why the key is not a qualified name as Kubernetes has them (`IsQualifiedName`), or an empty text."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= LONGEST_NAME and _IS_SUBDOMAIN(prefix)):
        return "its prefix is not a DNS subdomain"
    if not name:
        return "it has no name"
    return _value_fault(name)


def _value_fault(value: str) -> str:
    if len(value) > _LONGEST_PART:
        return f"{len(value)} characters, {_LONGEST_PART} are allowed"
    if not value or _NAME_PART.fullmatch(value):
        return ""
    odd = sorted({character for character in value if not _NAME_PART.fullmatch(f"a{character}a")})
    return f"not allowed: {listing(odd)}" if odd else "it does not begin and end with a letter or a digit"


def _nfd_fault(key: str, allowed: tuple[str, ...]) -> str:
    """Why NFD refuses the key (`pkg/apis/nfd/validate` of node-feature-discovery v0.19), or an empty text."""
    prefix, slash, _ = key.rpartition("/")
    if not slash:
        return "it has no prefix"
    open_domains = tuple(f"{name}.node.kubernetes.io" for name in allowed)
    if not f".{prefix}".endswith(".kubernetes.io") or f".{prefix}".endswith(tuple(f".{name}" for name in open_domains)):
        return ""
    return "`kubernetes.io` is closed to it"


def _own_domain(key: str) -> str:
    return f"use a domain of your own: `example.com/{key.rpartition('/')[2]}`"


# --- Shared ------------------------------------------------------------------------------------------------------


def _patterns(plan: Plan) -> Iterator[tuple[Pool, NodePattern]]:
    """The pools whose nodes are those that a readable pattern matches."""
    for pool in plan.pools:
        if pool.nodes.name_pattern is not None and not pool.nodes.names:
            pattern = parse(pool.nodes.name_pattern)
            if isinstance(pattern, NodePattern):
                yield pool, pattern


def _pattern_at(pool: Pool) -> Origin:
    return pool.nodes.at / "namePattern"


def _times(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


CHECKS: tuple[Check, ...] = (
    node_in_two_pools,
    unreadable_name_pattern,
    pattern_matches_no_node,
    pattern_matches_too_few_nodes,
    node_count_differs,
    node_named_twice,
    names_and_pattern,
    invalid_node_name,
    invalid_node_label,
    node_label_with_two_values,
    discovered_node_label,
    node_label_refused_by_nfd,
    invalid_taint,
    taint_twice,
    taint_refused_by_nfd,
)
