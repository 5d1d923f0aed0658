"""Checks on the labels of pools' nodes, and their taints (GPU128, GPU148-154)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import repeats
from gpuplan.compiler.planning.discovered import DISCOVERED_LABELS, PAUSING_LABELS
from gpuplan.compiler.planning.node_pattern_syntax import LONGEST_NAME
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    MIG_MANAGER_LABEL,
    POOL_LABEL,
    DynamicMig,
    Mig,
    Plan,
    Pool,
    RetainedNodes,
    with_places,
)
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL
from gpuplan.compiler.policy.models import NodeLabels, Taint
from gpuplan.compiler.policy.names import DNS_SUBDOMAIN

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
        yield from label_faults(pool.at / "nodeLabels", pool.spec.node_labels, _KEY_HELP, _VALUE_HELP)
    for kept in _kept(plan):
        yield from label_faults(kept.at / "labels", kept.spec.labels, _KEY_HELP, _VALUE_HELP)


def _kept(plan: Plan) -> Iterator[RetainedNodes]:
    return (item.what for item in plan.retained if isinstance(item.what, RetainedNodes))


_OWN_LABELS = {
    POOL_LABEL: "the pool's name",
    DEVICE_PLUGIN_CONFIG_LABEL: "the key of the pool's device-plugin configuration",
    MIG_CONFIG_LABEL: "the pool's MIG layout",
    MIG_MANAGER_LABEL: "mig-manager, which is kept off where partitions are made on demand,",
    NODE_POOL_LABEL: "the pool's shard of KAI-Scheduler",
}


@check("GPU149", "node-label-with-two-values")
def node_label_with_two_values(plan: Plan) -> Iterator[Finding]:
    """A pool sets a node label that gpuplan sets itself, to another value.

    ## Why
    `gpuplan.dev/pool`, `nvidia.com/mig.config` and `nvidia.com/device-plugin.config` follow from the policy, and
    with KAI-Scheduler so does `kai.scheduler/node-pool`. A label has one value: another one here would point nodes at a
    layout, a configuration or a shard that does not exist. mig-manager then reports `failed`, the device plugin
    publishes no GPUs, and nothing is placed on the nodes. Where partitions are made on demand,
    `nvidia.com/gpu.deploy.mig-manager` follows as well.

    ## Instead
    Remove the label; change `sharing` to change what nodes get.
    """
    for pool in plan.pools:
        for key, value in pool.spec.node_labels.items():
            # What gpuplan gives the label hides what the policy says; nodes of a GPU without MIG get no layout.
            is_dynamic = isinstance(pool.sharing, DynamicMig)
            is_whole = is_dynamic or (not pool.gpu.supports_mig and not isinstance(pool.sharing, Mig))
            own = None if key == MIG_CONFIG_LABEL and is_whole else pool.labels[key]
            is_own = key in _OWN_LABELS and (is_dynamic or key != MIG_MANAGER_LABEL)
            if is_own and value != own:
                none = f"pool `{pool.name}` has no layout" if is_dynamic else f"{pool.gpu.id} has no MIG to configure"
                more = "" if key == NODE_POOL_LABEL else "; change `sharing` to change what nodes get"
                yield Finding(
                    pool.at / "nodeLabels" / key,
                    f"node label `{key}` would have two values" if own else none,
                    label=f"gpuplan writes `{own}`" if own else "gpuplan writes no such label here",
                    notes=(f"it stands for {_OWN_LABELS[key]} and follows from the policy",),
                    help=f"remove the label{more}",
                )


@check("GPU150", "discovered-node-label")
def discovered_node_label(plan: Plan) -> Iterator[Finding]:
    """A pool sets a node label that the GPU Operator discovers.

    ## Why
    GPU feature discovery writes `nvidia.com/gpu.product`, `gpu.count`, `gpu.memory` and the like on each node, and
    mig-manager `mig.config.state`: two writers for one label. Their values also change with the pool's own sharing:
    time-slicing appends `-SHARED` to the product and MIG `-MIG-1g.10gb`, so whatever selects nodes by them loses its
    nodes by gpuplan's own change. By `nvidia.com/gpu.deploy.device-plugin` and the like mig-manager stops pods while it
    repartitions: with another writer they would be started in the middle of it.

    ## Instead
    Select nodes by `gpuplan.dev/pool`, or give them a label of your own.
    """
    for pool in plan.pools:
        for key in pool.spec.node_labels:
            is_switch = PAUSING_LABELS.fullmatch(key)
            if is_switch or DISCOVERED_LABELS.fullmatch(key):
                yield Finding(
                    (pool.at / "nodeLabels" / key).key,
                    f"node label `{key}` is written by the GPU Operator",
                    label="two writers for one label",
                    notes=(
                        "mig-manager stops and starts pods by it while it repartitions"
                        if is_switch
                        else "it says what a node has, and changes when the pool's sharing changes",
                    ),
                    help="remove the label"
                    if is_switch
                    else f"select nodes by `{POOL_LABEL}: {pool.name}`, or use a label of your own",
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
    Use a domain of your own, such as `example.com/rack`. Where the key must be as it is, as `workload-type` or
    `node-role.kubernetes.io/gpu`, something else has to label the nodes: with `nodeLabels: node` parts of Node objects
    are applied, with `nodeLabels: external` whoever makes the nodes takes the labels from a table.
    """
    for pool in plan.pools:
        labels = [((pool.at / "nodeLabels" / key).key, key) for key in pool.spec.node_labels]
        yield from _refused_by_nfd(plan, labels, "label", ("feature", "profile"))
    for kept in _kept(plan):
        labels = [((kept.at / "labels" / key).key, key) for key in kept.spec.labels]
        yield from _refused_by_nfd(plan, labels, "label", ("feature", "profile"))


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
    for _, taints in _tainted(plan):
        for at, taint in taints:
            if fault := key_fault(taint.key):
                yield Finding(at / "key", f"`{taint.key}` is not a taint key: {fault}", label=fault, help=_KEY_HELP)
            if fault := value_fault(taint.value):
                yield Finding(
                    at / "value", f"`{taint.value}` is not a taint value: {fault}", label=fault, help=_VALUE_HELP
                )


@check("GPU153", "taint-twice")
def taint_twice(plan: Plan) -> Iterator[Finding]:
    """A pool has two taints with the same key and effect.

    ## Why
    A node can have one taint for each key and effect; the API server refuses a second one, whatever its value.

    ## Instead
    Remove one of the two, or give it another effect or key.
    """
    for pool, taints in _tainted(plan):
        for (at, taint), (before, _) in repeats(taints, lambda placed: (placed[1].key, placed[1].effect)):
            yield Finding(
                at / "key",
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
    for _, taints in _tainted(plan):
        yield from _refused_by_nfd(plan, [(at / "key", taint.key) for at, taint in taints], "taint", ("feature",))


def _tainted(plan: Plan) -> Iterator[tuple[Pool, list[tuple[Origin, Taint]]]]:
    """Yield the taints of each pool, with their places."""
    return ((pool, [*with_places(pool.at / "taints", pool.spec.taints)]) for pool in plan.pools)


def _refused_by_nfd(
    plan: Plan, keys: Sequence[tuple[Origin, str]], kind: str, allowed: tuple[str, ...]
) -> Iterator[Finding]:
    for at, key in keys if plan.cluster.spec.node_labels is NodeLabels.NFD else ():
        if not key_fault(key) and (fault := nfd_fault(key, allowed)):
            own = f"use a domain of your own: `example.com/{key.rpartition('/')[2]}`"
            as_it_is = ", or have it as it is with `nodeLabels: node` or `external`" if kind == "label" else ""
            yield Finding(at, f"NFD does not write the {kind} `{key}`", label=fault, help=f"{own}{as_it_is}")


# --- Keys and values ---------------------------------------------------------------------------------------------

_SUBDOMAIN = regex(DNS_SUBDOMAIN)
_NAME_PART = regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_KEY_HELP = (
    "a key is a name of letters, digits, `-`, `_` and `.`, with an optional domain before it: `example.com/rack`"
)
_VALUE_HELP = "a value has letters, digits, `-`, `_` and `.`, with a letter or a digit at both ends"
_LONGEST_PART = 63


def label_faults(
    at: Origin,
    labels: Mapping[str, str],
    key_help: str = "such as `example.com/a`",
    value_help: str = "letters, digits, `-_.`",
) -> Iterator[Finding]:
    """Find what the API server refuses of labels at a place."""
    for key, value in labels.items():
        if fault := key_fault(key):
            yield Finding((at / key).key, f"`{key}` is not a label key: {fault}", label=fault, help=key_help)
        elif fault := value_fault(value):
            yield Finding(at / key, f"`{value}` is not a label value: {fault}", label=fault, help=value_help)


def key_fault(key: str) -> str:
    """Return why a key is not a qualified name of Kubernetes (`IsQualifiedName`), or an empty text."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= LONGEST_NAME and _SUBDOMAIN.fullmatch(prefix)):
        return "its prefix is not a DNS subdomain"
    if not name:
        return "it has no name"
    return value_fault(name)


def value_fault(value: str) -> str:
    """Return why a text is not a label's value, or an empty text."""
    if len(value) > _LONGEST_PART:
        return f"{len(value)} characters, {_LONGEST_PART} are allowed"
    if not value or _NAME_PART.fullmatch(value):
        return ""
    odd = sorted({character for character in value if not _NAME_PART.fullmatch(f"a{character}a")})
    return f"not allowed: {listing(odd)}" if odd else "it does not begin and end with a letter or a digit"


def nfd_fault(key: str, allowed: tuple[str, ...]) -> str:
    """Return why NFD refuses a key (`pkg/apis/nfd/validate` of node-feature-discovery v0.19), or an empty text."""
    prefix, slash, _ = key.rpartition("/")
    if not slash:
        return "it has no prefix"
    own = tuple(f".{name}.node.kubernetes.io" for name in allowed)
    if not f".{prefix}".endswith(".kubernetes.io") or f".{prefix}".endswith(own):
        return ""
    return "`kubernetes.io` is closed to it"


# --- Topology ----------------------------------------------------------------------------------------------------


@check("GPU128", "topology-level-is-no-label")
def topology_level_is_no_label(plan: Plan) -> Iterator[Finding]:
    """A level of a pool's `topology` is not the key of a node label.

    ## Why
    Topology is what nodes say of their place by labels: a block, a rack, the node itself. No node can have a label
    whose key the API server refuses, so no scheduler could ever read that level. With Kueue and KAI-Scheduler GPU543
    says so, along with what else they ask of a topology.

    ## Instead
    Name the labels from the widest to the narrowest, as in `[example.com/block, example.com/rack]`.
    """
    if plan.scheduler.has_topologies:
        return
    for pool in plan.pools:
        for index, level in enumerate(pool.spec.topology):
            if fault := key_fault(level):
                yield Finding(
                    pool.at / "topology" / index,
                    f"no node of pool `{pool.name}` can say where it is by `{level}`",
                    label=f"not a label key: {fault}",
                    help="write a key such as `example.com/rack`",
                )
