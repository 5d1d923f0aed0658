"""Checks on what is retained (GPU722-727, GPU745-748): it must be what it was, and be found where it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import TypeVar

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.plain import inside, text, value_at
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.checks.formats.faults import LABEL_VALUE, plugin_errors
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import mistyped
from gpuplan.compiler.manifests import identity_of
from gpuplan.compiler.manifests.kinds import assume_kind
from gpuplan.compiler.planning.hand_files import are_parts_unsure, parts_of
from gpuplan.compiler.planning.node_patterns import NodePattern, find_common_name, parse
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Mig,
    Nodes,
    Plan,
    RetainedDevicePluginConfig,
    RetainedLayout,
    RetainedNodes,
    RetainedObject,
    Stage,
)
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.compiler.policy.names import DNS_LABEL

T = TypeVar("T")

# --- Entries that nodes name -------------------------------------------------------------------------------------


@check("GPU722", "retained-layout-differs", ignorable=False)
def retained_layout_differs(plan: Plan) -> Iterator[Finding]:
    """A retained layout is not the one that its name stands for.

    ## Why
    The name of an entry that gpuplan wrote ends in a hash of what the layout says, so that a node whose label has the
    name is divided as the entry says. With anything else under that name, the MIG manager would find such a node to be
    wrong at its next start and divide it again, which is what the document is to prevent. A name without such a hash is
    one that somebody else gave: gpuplan takes your word for what it stands for. It stands for one division, and
    `all-disabled` is there anyway.

    ## Instead
    Write the layout as it was when nodes got the name; `gpuplan retain` does. Under a name of your own, write what the
    old file says under it.
    """
    named: dict[str, RetainedLayout] = {}
    for what in _each(plan, RetainedLayout):
        name, own = what.spec.config_name, what.layout.config_name
        if name == ALL_DISABLED:
            yield Finding(
                what.at / "configName",
                f"`{ALL_DISABLED}` is always in the file, and says what the GPU Operator means by it",
                label="nothing to retain",
                help="delete the document",
            )
        elif name != own and _OWN_NAME.fullmatch(name):
            yield Finding(
                what.at / "configName",
                f"`{name}` is not the name of this layout",
                label=f"its name would be `{own}`",
                notes=("the last eight digits are a hash of how the GPUs are divided",),
                help="write the layout as it was when nodes got the name; `gpuplan retain` finds it in Git",
            )
        elif (other := named.setdefault(name, what)).layout.config_name != own:
            yield Finding(
                what.at / "configName",
                f"two documents retain `{name}`, and divide GPUs in different ways",
                label="another layout here",
                related=(Label(other.at / "configName", "it stands for this one, too"),),
                help="keep one of them; give nodes of the other the label of a pool first",
            )


_OWN_NAME = re.compile(r".+-[0-9a-f]{8}")
"""The names that gpuplan gives to entries: a layout's name and a hash."""


def _each(plan: Plan, kind: type[T]) -> Iterator[T]:
    """Yield what is retained of a kind."""
    return (item.what for item in plan.retained if isinstance(item.what, kind))


@check("GPU723", "retained-name-not-selectable", ignorable=False)
def retained_name_not_selectable(plan: Plan) -> Iterator[Finding]:
    """An entry is retained, or keeps its name, under one that no node label can have.

    ## Why
    Nodes choose an entry by the value of a label: at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit
    at both ends. No node names anything else, and the API server takes few other keys in a ConfigMap.

    ## Instead
    Write the name as nodes have it: `kubectl get nodes -L nvidia.com/mig.config,nvidia.com/device-plugin.config`.
    """
    configs = _each(plan, RetainedDevicePluginConfig)
    names = [(what.at / "configName", what.spec.config_name, MIG_CONFIG_LABEL) for what in _each(plan, RetainedLayout)]
    names += ((what.at / "key", what.spec.key, DEVICE_PLUGIN_CONFIG_LABEL) for what in configs)
    names += _kept_names(plan)
    for at, name, label in names:
        if not LABEL_VALUE.fullmatch(name):
            yield Finding(
                at,
                f"no node can have the label `{label}: {name}`",
                label="not the value of a label",
                notes=("at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",),
                help=f"write a name that `kubectl get nodes -L {label}` shows",
            )


def _kept_names(plan: Plan) -> Iterator[tuple[Origin, str, str]]:
    """Yield the places, names and labels of entries that layouts and pools keep for nodes."""
    layouts = (*plan.layouts, *(part.sharing.layout for part in plan.parts if isinstance(part.sharing, Mig)))
    kept = {layout.at: layout for layout in layouts if layout.keeps_name}
    yield from ((at / "configName", layout.config_name, MIG_CONFIG_LABEL) for at, layout in kept.items())
    for pool in plan.pools:
        if (key := pool.spec.names.device_plugin_config) is not None:
            yield pool.at / "names" / "devicePluginConfig", key, DEVICE_PLUGIN_CONFIG_LABEL
    operator = plan.cluster.gpu_operator
    if (default := operator.spec.default_device_plugin_config) is not None:
        yield operator.at / "defaultDevicePluginConfig", default, DEVICE_PLUGIN_CONFIG_LABEL


@check("GPU724", "retained-config-refused")
def retained_config_refused(plan: Plan) -> Iterator[Finding]:
    """A retained configuration of the device plugin is one that it refuses.

    ## Why
    The device plugin checks its file when it starts (`api/config/v1` of NVIDIA/k8s-device-plugin) and exits when it
    refuses it: nodes that still name the entry hand out no GPUs. gpuplan has never written such an entry.

    ## Instead
    Write what the entry was; `gpuplan retain` does.
    """
    for what in _each(plan, RetainedDevicePluginConfig):
        for problem in plugin_errors(what.config, plan.cluster.gpu_operator.spec.mig_strategy):
            at = what.at / "config" / problem.route
            yield problem.finding(at, "nodes with this entry would hand out no GPUs", what.spec.key)


# --- Objects -----------------------------------------------------------------------------------------------------


@check("GPU725", "retained-object-incomplete", ignorable=False)
def retained_object_incomplete(plan: Plan) -> Iterator[Finding]:
    """A retained object is no Kubernetes object.

    ## Why
    What has no `apiVersion`, `kind` and `metadata.name`, or none that an API can have, cannot be applied: kustomize or
    the API server refuses the whole folder.

    ## Instead
    Write the object as it was; `gpuplan retain` does.
    """
    for what in _each(plan, RetainedObject):
        for route, is_right in _IDENTITY.items():
            *above, last = route
            at, name = what.at / "manifest" / route, ".".join(route)
            if last not in inside(what.spec.manifest, *above):
                if route not in _OPTIONAL:
                    message, label = f"the retained object has no `{name}`", "not a Kubernetes object"
                    yield Finding(at.key, message, label=label, help=f"add `{name}`")
            elif not is_right(value_at(what.spec.manifest, route)):
                message, label = f"`{name}` of the retained object is none that an object can have", "no API takes this"
                yield Finding(at, message, label=label, help=f"write `{name}` as the object had it")


def _matches(pattern: str) -> Callable[[object], bool]:
    matches = re.compile(pattern).fullmatch
    return lambda value: bool(matches(text(value)))


def _is_mapping_of_text(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values())


_IDENTITY: Mapping[tuple[str, ...], Callable[[object], bool]] = {
    ("apiVersion",): _matches(r"([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?v[0-9][a-z0-9]*"),
    ("kind",): _matches(r"[A-Z][A-Za-z0-9]*"),
    ("metadata", "name"): _matches(r"(?!\.\.?$)[^/%\s]{1,253}"),
    ("metadata", "namespace"): _matches(DNS_LABEL),
    ("metadata", "annotations"): _is_mapping_of_text,
    ("metadata", "labels"): _is_mapping_of_text,
}
"""The fields that every object has, with how they are spelt. Names of some kinds have colons."""
_OPTIONAL = (("metadata", "namespace"), ("metadata", "annotations"), ("metadata", "labels"))


@check("GPU726", "retained-object-in-no-folder", ignorable=False)
def retained_object_in_no_folder(plan: Plan) -> Iterator[Finding]:
    """A retained object is to be applied with a folder that the cluster does not have.

    ## Why
    Each folder of a cluster is synced by itself. A folder that no stage, pool or tenant's namespace stands for would be
    synced into nowhere, or by nobody.

    ## Instead
    Write the folder that the object was in, as `out/` of an earlier revision has it, or `scheduling`.
    """
    folders = [
        folder
        for stage in Stage
        for folder in ([f"{stage}/{part}" for part in parts_of(plan, stage)] if stage.has_parts else [stage.value])
    ]
    unsure = tuple(f"{stage}/" for stage in Stage if stage.has_parts and are_parts_unsure(plan, stage))
    for what in _each(plan, RetainedObject):
        if what.folder not in folders and not what.folder.startswith(unsure):
            yield mistyped(
                what.at / "folder",
                f"cluster `{plan.cluster.name}` has no folder `{what.folder}`",
                misspelling(what.folder, folders),
                "no such folder",
                f"write `folder: {Stage.SCHEDULING.value}`",
                f"its folders are {listing(folders, 8)}",
                write="write `folder: {}`",
            )


@check("GPU727", "retained-queue-not-on-hold", Severity.WARNING)
def retained_queue_not_on_hold(plan: Plan) -> Iterator[Finding]:
    """A retained queue of Kueue goes on taking work.

    ## Why
    Kueue lets a queue go when nothing that it admitted is left (its finalizer `kueue.x-k8s.io/resource-in-use`). A
    queue that nothing in the policies stands for any more, and that still admits work, never gets there. `Hold` admits
    nothing new and lets what runs end; `HoldAndDrain` evicts what runs as well.

    ## Instead
    Add `stopPolicy: Hold` to the queue's `spec`.
    """
    for what in _each(plan, RetainedObject):
        found = identity_of(what.spec.manifest)
        is_held = value_at(what.spec.manifest, ("spec", "stopPolicy")) in ("Hold", "HoldAndDrain")
        if assume_kind(found.group, found.kind).takes_work and not is_held:
            yield Finding(
                what.at / "manifest" / "spec" / "stopPolicy",
                f"retained {found.kind} `{found.name}` goes on taking work",
                label="not on hold",
                help="write `stopPolicy: Hold`, or `HoldAndDrain` to evict what runs in it",
            )


# --- Nodes that go to another pool -------------------------------------------------------------------------------


@check("GPU745", "kept-label-names-nothing")
def kept_label_names_nothing(plan: Plan) -> Iterator[Finding]:
    """A label that nodes keep names what is not there, or another pool.

    ## Why
    Nodes that a pool has let go keep its labels until another pool's rule labels them. Where `nvidia.com/mig.config` or
    `nvidia.com/device-plugin.config` names an entry that the GPU Operator's files do not have, the MIG manager fails
    and the device plugin hands out no GPUs, or from operator v26.3 on GPUs as if nothing shared or divided them. Where
    `gpuplan.dev/pool` is not the pool that they leave, nobody can tell
    by it whether they have reached the other one.

    ## Instead
    Write the labels as the pool's rule had them; `gpuplan retain --write` does, and retains entries that go with the
    pool.
    """
    is_unsure = plan.broken.layouts or plan.broken.pools
    entries = (layout.config_name for layout in plan.mig_layouts)
    keys = (part.labels[DEVICE_PLUGIN_CONFIG_LABEL] for part in plan.parts)
    known = {
        MIG_CONFIG_LABEL: {ALL_DISABLED, *entries, *(item.spec.config_name for item in plan.retained_layouts)},
        DEVICE_PLUGIN_CONFIG_LABEL: {*keys, *(item.spec.key for item in plan.retained_plugin_configs)},
    }
    for what in _each(plan, RetainedNodes):
        labels = what.spec.labels
        for label, names in known.items():
            if (name := labels.get(label)) is not None and name not in names and not is_unsure:
                yield Finding(
                    what.at / "labels" / label,
                    f"nodes of pool `{what.spec.pool}` keep the label `{label}: {name}`, which names nothing",
                    label="no such entry",
                    help="write the label as nodes have it, and retain the entry; `gpuplan retain --write` does",
                )
        if labels.get(POOL_LABEL) != what.spec.pool:
            has_one = POOL_LABEL in labels
            yield Finding(
                what.at / "labels" / POOL_LABEL if has_one else (what.at / "labels").key,
                f"nodes of pool `{what.spec.pool}` keep the label of "
                + (f"pool `{labels[POOL_LABEL]}`" if has_one else "no pool"),
                label="not the pool that they leave",
                help=f"write `{POOL_LABEL}: {what.spec.pool}`",
            )


@check("GPU746", "nodes-kept-otherwise")
def nodes_kept_otherwise(plan: Plan) -> Iterator[Finding]:
    """Two documents have a node keep different values of one label.

    ## Why
    A node that no pool's rule labels has the labels of the document whose name is last, whatever it had before: it may
    be divided otherwise for the time between two syncs. So it is where nodes go on to a third pool before it is sure
    that they have reached the second.

    ## Instead
    Delete the earlier document first, once the nodes have the label of the second pool; `gpuplan retain --prune` says
    what to look at.
    """
    kept = [*_each(plan, RetainedNodes)]
    for what, other in combinations(kept, 2):
        labels = (MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL)
        differing = [label for label in labels if what.spec.labels.get(label) != other.spec.labels.get(label)]
        if differing and (name := _common_node(what.nodes, other.nodes)) is not None:
            yield Finding(
                other.at / "labels" / differing[0] if differing[0] in other.spec.labels else (other.at / "labels").key,
                f"node `{name}` keeps the label `{differing[0]}` of pool `{other.spec.pool}` and that of "
                f"`{what.spec.pool}`",
                label="another value here",
                related=(Label(what.at / "pool", f"pool `{what.spec.pool}` had it, too"),),
                help="delete the earlier document first, once its nodes have the label of their next pool; "
                "`gpuplan retain --prune` says what to look at",
            )


@check("GPU747", "kept-without-rules", Severity.WARNING)
def kept_without_rules(plan: Plan) -> Iterator[Finding]:
    """Nodes are to keep what no rule gave them.

    ## Why
    The document becomes a NodeFeatureRule beside that of the pool. With `nodeLabels: node` or `external` there are no
    such rules, and nobody takes a label from a node that changes its pool: the document does nothing.

    ## Instead
    Delete the document.
    """
    how = plan.cluster.spec.node_labels
    for what in _each(plan, RetainedNodes) if how is not NodeLabels.NFD else ():
        yield Finding(
            what.at / "pool",
            f"nothing writes the labels that nodes of pool `{what.spec.pool}` keep",
            label="no rule labels nodes",
            related=(Label(plan.cluster.at / "nodeLabels", f"`{how}`"),),
            help="delete the document: labels stay where they are until something else is written",
        )


@check("GPU748", "kept-nodes-in-no-pool", Severity.WARNING)
def kept_nodes_in_no_pool(plan: Plan) -> Iterator[Finding]:
    """Nodes keep what a pool gave them, and no pool has them.

    ## Why
    The document holds the labels of nodes on their way to another pool, until that one's rule labels them. Nodes that
    no pool has never get there: they hand out units for as long as the document is there, and no quota counts them.

    ## Instead
    Give the nodes to a pool. Where they are to leave for none, drain them, then delete the document.
    """
    pools = tuple(pattern for pool in plan.pools if (pattern := _pattern(pool.nodes)) is not None)
    named = {name for pool in plan.pools for name in pool.nodes.names}
    for what in _each(plan, RetainedNodes) if not plan.broken.pools else ():
        lost = [
            name for name in what.nodes.names if name not in named and not any(found.matches(name) for found in pools)
        ]
        pattern = _pattern(what.nodes)
        is_lost = pattern is not None and not any(pattern.matches(name) for name in named)
        if lost or (is_lost and pattern is not None and all(find_common_name(pattern, one) is None for one in pools)):
            yield Finding(
                what.at / ("names" if lost else "namePattern"),
                f"no pool has {listing(lost, 8) if lost else 'any of the nodes'} any more",
                label=f"kept as of pool `{what.spec.pool}`",
                help="give the nodes to a pool; or drain them, and delete the document",
            )


def _common_node(nodes: Nodes, others: Nodes) -> str | None:
    """Return a node's name that both may have, or None."""
    patterns = _pattern(nodes), _pattern(others)
    for one, other, pattern in ((nodes, others, patterns[1]), (others, nodes, patterns[0])):
        if one.names and other.names:
            return next((name for name in one.names if name in other.names), None)
        if one.names:
            names = (name for name in one.names if name not in other.moved)
            return next((name for name in names if pattern is not None and pattern.matches(name)), None)
    return find_common_name(*patterns) if patterns[0] is not None and patterns[1] is not None else None


def _pattern(nodes: Nodes) -> NodePattern | None:
    found = parse(nodes.name_pattern) if nodes.name_pattern and not nodes.names else None
    return found if isinstance(found, NodePattern) else None
