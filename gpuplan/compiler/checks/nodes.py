"""Checks on which nodes belong to a pool (GPU140-147, GPU165-169)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter, itemgetter

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.checks.node_labels import label_faults
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import repeats
from gpuplan.compiler.planning.node_pattern_syntax import LONGEST_NAME, Unreadable
from gpuplan.compiler.planning.node_patterns import NodePattern, count_names, find_common_name, find_name, parse
from gpuplan.compiler.planning.node_pools import find_names
from gpuplan.compiler.planning.plan import Nodes, Plan, Pool, RetainedNodes, with_places
from gpuplan.compiler.policy.models import NodeLabels
from gpuplan.compiler.policy.names import DNS_SUBDOMAIN

_SUBDOMAIN = regex(DNS_SUBDOMAIN)


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
    for (name, pool, at), (_, owner, other_at) in repeats(_listed(plan), itemgetter(0)):
        if owner is not pool:
            yield _shared(name, pool, at, owner, other_at)
    # The first listed name of each other pool that a pattern matches. Only names with its prefix are tried.
    listed = sorted(_listed(plan), key=lambda each: (each[0], each[1].name))
    for pool, pattern in _patterns(plan):
        met: set[str] = set()
        for name, other, at in islice(listed, bisect_left(listed, pattern.prefix, key=itemgetter(0)), None):
            if not name.startswith(pattern.prefix):
                break
            if other.name not in met and pattern.matches(name):
                met.add(other.name)
                yield _shared(name, pool, _pattern_at(pool), other, at)
    yield from _patterns_that_meet(plan)


def _listed(plan: Plan) -> Iterator[tuple[str, Pool, Origin]]:
    """Yield the nodes that pools name, with their places, or those of a rollout if a pool says nothing of its nodes."""
    for pool in plan.pools:
        names, at = pool.nodes.names, pool.nodes.at / "names"
        if not names and pool.nodes.name_pattern is None and pool.rollout:
            names, at = pool.rollout.nodes, pool.rollout.at / "nodes"
        yield from ((name, pool, at / index) for index, name in enumerate(names))


def _patterns_that_meet(plan: Plan) -> Iterator[Finding]:
    """Find patterns that meet, which they can only if the fixed beginning of one begins the other's."""
    patterns = sorted(_patterns(plan), key=lambda each: (each[1].prefix, each[0].name))
    for index, (pool, pattern) in enumerate(patterns):
        for other, other_pattern in patterns[index + 1 :]:
            if not other_pattern.prefix.startswith(pattern.prefix):
                break
            name = find_common_name(pattern, other_pattern)
            if name is not None:
                first, second = sorted((pool, other), key=attrgetter("name"))
                yield _shared(name, second, _pattern_at(second), first, _pattern_at(first))


def _shared(name: str, pool: Pool, at: Origin, other: Pool, other_at: Origin) -> Finding:
    first, second = sorted((pool.name, other.name))
    return Finding(
        at,
        f"node `{name}` belongs to the pools `{first}` and `{second}`",
        label=f"takes `{name}`",
        related=(Label(other_at, f"pool `{other.name}` takes it too"),),
        notes=(_ONE_POOL,),
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
    for chosen in _chosen(plan):
        pattern = None if chosen.nodes.name_pattern is None else parse(chosen.nodes.name_pattern)
        if isinstance(pattern, Unreadable):
            yield Finding(
                chosen.nodes.at / "namePattern",
                f"pattern of {chosen.title} cannot be read: {pattern.reason}",
                label=f"at character {pattern.column}",
                notes=("gpuplan compares patterns to prove that no node belongs to two pools",),
                help=_instead_of_glob(chosen.nodes) or pattern.instead,
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
    for chosen in _chosen(plan):
        pattern = _pattern(chosen.nodes)
        if pattern is not None and find_name(pattern) is None:
            foreign = listing(tuple(pattern.foreign), len(pattern.foreign))
            text = pattern.text.lower().replace("_", "-")
            better = parse(text)
            has_better = isinstance(better, NodePattern) and find_name(better)
            yield Finding(
                chosen.nodes.at / "namePattern",
                f"pattern of {chosen.title} matches no node name",
                label="matches nothing",
                notes=(
                    f"{_NODE_NAMES} {LONGEST_NAME} characters",
                    *((f"no node name has {foreign}",) if pattern.foreign else ()),
                ),
                help=_instead_of_glob(chosen.nodes)
                or (f"write `{text}`" if has_better else "")
                or "the pattern must match the whole name, such as `gpu-a100-[0-9]+`",
            )


_NODE_NAMES = "node names have lower-case letters, digits, `-` and `.`, and at most"


@check("GPU143", "pattern-matches-too-few-nodes")
def pattern_matches_too_few_nodes(plan: Plan) -> Iterator[Finding]:
    """A node-name pattern matches fewer names than the pool has nodes, or others than it seems to.

    ## Why
    Capacity is counted with `count`. When the pattern can match only eight names, the other nodes never join the pool,
    and quotas promise GPUs that do not exist. Patterns are regular expressions, not file patterns: `*` repeats the
    character before it, so that `gpu-a100-*` matches `gpu-a100` and no node of the pool.

    ## Instead
    Widen the pattern: `gpu-a100-.*` is any name that begins so, `gpu-a100-[0-9]+` one that ends in a number.
    """
    for pool, pattern in _patterns(plan):
        wanted = pool.nodes.count
        matched, glob = count_names(pattern, wanted), _instead_of_glob(pool.nodes)
        if matched >= wanted and glob and _ENDS_AS_GLOB.search(pattern.text):
            yield Finding(
                _pattern_at(pool),
                f"pattern of pool `{pool.name}` ends in `*`, which repeats `{pattern.text[-2]}`",
                label="not any rest of a name",
                help=glob,
                severity=Severity.WARNING,
            )
        if 0 < matched < wanted:
            yield Finding(
                pool.nodes.at / "count",
                f"pool `{pool.name}` has {wanted} nodes, but its pattern matches {count(matched, 'name')}",
                label=f"at most {matched}",
                related=(Label(_pattern_at(pool), f"matches {count(matched, 'name')}"),),
                help=glob or f"widen the pattern until it matches the names of all {wanted} nodes",
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
                f"pool `{pool.name}` counts {count(pool.nodes.count, 'node')} and lists {listed}",
                label=f"{listed} listed",
                related=(Label((pool.nodes.at / "names").key, f"lists {count(listed, 'node')}"),),
                help=f"list the nodes of the pool, all {pool.nodes.count}; if these are all, `count: {listed}` says so",
            )


@check("GPU145", "node-named-twice")
def node_named_twice(plan: Plan) -> Iterator[Finding]:
    """A pool lists a node twice.

    ## Why
    It is one node, however often it is listed. Most likely another name was meant.

    ## Instead
    Remove the name, or write the one that was meant.
    """
    for title, nodes in _chosen(plan):
        for (at, name), (first, _) in repeats(with_places(nodes.at / "names", nodes.names), itemgetter(1)):
            yield Finding(
                at,
                f"{title} lists node `{name}` twice",
                label="listed before",
                related=(Label(first, "the first time"),),
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
    for _, nodes in _chosen(plan):
        listed = [*with_places(nodes.at / "names", nodes.names), *with_places(nodes.at / "exceptNames", nodes.moved)]
        for at, name in listed:
            if len(name) > LONGEST_NAME or not _SUBDOMAIN.fullmatch(name):
                yield Finding(
                    at,
                    f"`{name}` is not a node name",
                    label="not a DNS subdomain",
                    notes=(f"{_NODE_NAMES} {LONGEST_NAME} characters",),
                    help="use the name that `kubectl get nodes` shows",
                )


@check("GPU167", "node-selector-is-no-label")
def node_selector_is_no_label(plan: Plan) -> Iterator[Finding]:
    """A pool chooses nodes by a label that no node can have.

    ## Why
    Labels of nodes have a name with an optional prefix, and a value of at most 63 characters. What is spelt otherwise
    is on no node, and the pool has none.

    ## Instead
    Copy the label as `kubectl get nodes --show-labels` prints it.
    """
    for pool in plan.pools:
        as_printed = "copy it as `kubectl get nodes --show-labels` prints it"
        yield from label_faults(pool.nodes.at / "selector", pool.nodes.selector, as_printed, as_printed)


@check("GPU165", "nodes-cannot-be-chosen-by-label")
def nodes_cannot_be_chosen_by_label(plan: Plan) -> Iterator[Finding]:
    """A pool chooses nodes by labels, and what labels the nodes of this cluster sees none.

    ## Why
    With `nodeLabels: nfd` rules choose nodes: Node Feature Discovery hands its rules what its worker finds on the node,
    such as the name and the boards, and not the labels that the kubelet or a cloud has given it. With
    `nodeLabels: node` there is an object for each node, by its name.

    ## Instead
    Choose by name: clouds name nodes after their node pool, as `gke-<cluster>-<node pool>-...` and
    `aks-<node pool>-<number>-vmss...`. Or by board, with `matchBoards: true`, where the pool has all nodes with one. Or
    write `nodeLabels: external`, and let the owner of the node pools label the
    nodes by `partitions/node-groups.yaml`, which has the command for GKE, EKS and AKS and the part of each MachineSet.
    """
    mode = plan.cluster.spec.node_labels
    for pool in plan.pools if mode is not NodeLabels.EXTERNAL else ():
        if pool.nodes.selector:
            is_named = bool(pool.nodes.names) or pool.nodes.name_pattern is not None
            names = None if is_named else find_names(pool.nodes.selector)
            if is_named:
                by_name = f"keep `{'names' if pool.nodes.names else 'namePattern'}` alone, "
            elif names:
                by_name = f"write `namePattern: {names.pattern}` in its place, as the cloud names such nodes, "
            else:
                by_name = "write `namePattern` or `names` in its place, "
            yield Finding(
                (pool.nodes.at / "selector").key,
                f"`nodeLabels: {mode.value}` cannot choose the nodes of pool `{pool.name}` by labels",
                label="sees no labels of nodes",
                related=(Label(plan.cluster.at / "nodeLabels", "labels nodes by what it sees"),),
                notes=(names.others,) if names and names.others else (),
                help=f"{by_name}or `nodeLabels: external`, where the owner of the nodes labels them",
            )


@check("GPU166", "node-selectors-meet")
def node_selectors_meet(plan: Plan) -> Iterator[Finding]:
    """All nodes that one pool chooses by labels are another pool's as well.

    ## Why
    A pool gives its nodes one layout and one configuration by labels that have one value: a node of two pools has those
    of the pool that was labelled last.

    ## Instead
    Add a label that tells the nodes apart, or give each pool a node pool of its own.
    """
    chosen = [pool for pool in plan.pools if pool.nodes.selector and not pool.nodes.names]
    for number, pool in enumerate(chosen):
        for other in chosen[:number]:
            one, another = (item.nodes.selector.items() for item in (pool, other))
            if (one <= another or another <= one) and pool.nodes.name_pattern == other.nodes.name_pattern:
                yield Finding(
                    (pool.nodes.at / "selector").key,
                    f"nodes of the pools `{other.name}` and `{pool.name}` have the same labels",
                    label=f"chooses nodes of pool `{other.name}`",
                    related=(Label((other.nodes.at / "selector").key, f"pool `{other.name}` chooses them too"),),
                    help=_apart(pool, other),
                )


def _apart(pool: Pool, other: Pool) -> str:
    """Return how to tell two selectors apart: by a label that both have, with different values."""
    one, another = pool.nodes.selector, other.nodes.selector
    wider, narrower = (pool, other) if len(one) < len(another) else (other, pool)
    if more := sorted(narrower.nodes.selector.keys() - wider.nodes.selector.keys()):
        return f"add `{more[0]}` to pool `{wider.name}`, with another value than in pool `{narrower.name}`"
    return "add a label to both that their nodes have with different values"


@check("GPU168", "boards-choose-nodes-twice")
def boards_choose_nodes_twice(plan: Plan) -> Iterator[Finding]:
    """A pool takes all nodes that have its board, and another pool has nodes with the same board.

    ## Why
    With `matchBoards: true` and nothing else that says which nodes are meant, each node that has a board of the model
    is the pool's, whatever it is called: those of another pool of that model are as well, or of one that shares a PCI
    id with it. They get two values for each label, and the last writer wins.

    ## Instead
    Tell the pools of one model apart by `names` or `namePattern`. One pool of each model can be by board alone.
    """
    for index, pool in enumerate(plan.pools):
        for other in plan.pools[:index]:
            if not (pool.nodes.are_by_board or other.nodes.are_by_board):
                continue
            if common := _common_boards(pool, other):
                places = {
                    each.name: each.nodes.at / "matchBoards" if each.nodes.are_by_board else each.nodes.at.key
                    for each in (pool, other)
                }
                taker = pool if pool.nodes.are_by_board else other
                met = other if taker is pool else pool
                yield Finding(
                    places[taker.name],
                    f"pool `{taker.name}` takes every node with a board of {taker.gpu.id}, those of pool `{met.name}` "
                    "too",
                    label="by board alone",
                    related=(Label(places[met.name], f"pool `{met.name}` has such nodes"),),
                    notes=(
                        f"both models have the PCI id {listing(common, 4)}" if pool.gpu is not other.gpu else _ONE_POOL,
                    ),
                    help="add `namePattern` or `names` to both",
                )


_ONE_POOL = "a node has one value for each label, so it can be in one pool only"


def _common_boards(pool: Pool, other: Pool) -> tuple[str, ...]:
    """Return the PCI ids of boards of both pools. An id without a subsystem is that of every board of the device."""
    met = (
        max(one.spelt, another.spelt, key=len)
        for one in pool.gpu.pci
        for another in other.gpu.pci
        if one.device.lower() == another.device.lower() and len({one.subsystem, another.subsystem, ""}) < 3
    )
    return tuple(sorted({*met}))


@check("GPU169", "boards-seen-by-nobody")
def boards_seen_by_nobody(plan: Plan) -> Iterator[Finding]:
    """A pool chooses nodes by their boards, and nothing that labels nodes sees these.

    ## Why
    The PCI ids of a node's boards are what Node Feature Discovery's worker finds there, and its rules read them
    (`nodeLabels: nfd`). With `nodeLabels: node` there is an object for each node, by its name, and with `external`
    somebody else labels the nodes. A `Gpu` document without `pci` has no ids to ask for.

    ## Instead
    Take `matchBoards` away and say which nodes are meant, or have Node Feature Discovery label them. Add `pci` to the
    `Gpu` document, as `lspci -nn -d 10de:` prints the ids.
    """
    mode, cluster = plan.cluster.spec.node_labels, plan.cluster
    for pool in plan.pools if mode is NodeLabels.NFD else ():
        if not pool.gpu.pci and (pool.spec.nodes.match_boards or cluster.spec.match_boards):
            asks = pool.nodes if pool.spec.nodes.match_boards else cluster
            yield Finding(
                (asks.at / "matchBoards").key,
                f"GPU model `{pool.gpu.id}` of pool `{pool.name}` has no PCI id",
                label="chooses nodes by PCI ids",
                related=(Label(pool.at / "gpu", "the model"),),
                help=f'add `pci: ["10de:..."]` to the Gpu `{pool.gpu.id}`, as `lspci -nn -d 10de:` prints it on a node',
            )
    for pool in plan.pools if mode is not NodeLabels.NFD else ():
        if pool.nodes.boards:
            by_names = "names, one for each node" if mode is NodeLabels.NODE else "a `selector` for the nodes' owner"
            yield Finding(
                (pool.nodes.at / "matchBoards").key,
                f"`nodeLabels: {mode.value}` sees no boards of nodes of pool `{pool.name}`",
                label="chooses nothing",
                related=(Label(plan.cluster.at / "nodeLabels", "labels nodes otherwise"),),
                help=f"remove it and write {by_names}; or write `nodeLabels: nfd`",
            )


class _Chosen(NamedTuple):
    """Nodes, and the title of what chooses them."""

    title: str
    nodes: Nodes


def _chosen(plan: Plan) -> Iterator[_Chosen]:
    yield from (_Chosen(f"pool `{pool.name}`", pool.nodes) for pool in plan.pools)
    for item in plan.retained:
        if isinstance(item.what, RetainedNodes):
            yield _Chosen(f"Retained `{item.name}`", item.what.nodes)


def _patterns(plan: Plan) -> Iterator[tuple[Pool, NodePattern]]:
    """Yield the pools whose nodes are those that a readable pattern matches."""
    for pool in plan.pools:
        if (pattern := _pattern(pool.nodes)) is not None:
            yield pool, pattern


def _pattern(nodes: Nodes) -> NodePattern | None:
    found = parse(nodes.name_pattern) if nodes.name_pattern is not None and not nodes.names else None
    return found if isinstance(found, NodePattern) else None


def _pattern_at(pool: Pool) -> Origin:
    return pool.nodes.at / "namePattern"


def _instead_of_glob(nodes: Nodes) -> str:
    """Return what to write for a file pattern, in which `*` and `?` repeat nothing, or an empty text."""
    text = nodes.name_pattern or ""
    if not _GLOB.search(text):
        return ""
    better = _GLOB.sub(lambda sign: ".*" if sign[0] == "*" else ".", text)
    pattern = parse(better)
    if not isinstance(pattern, NodePattern) or count_names(pattern, nodes.count) < nodes.count:
        return ""
    return f"`*` repeats the character before it; for any rest of a name write `{better}`"


_GLOB = regex(r"(?:^|(?<=[A-Za-z0-9-]))[*?](?![*?])")
_ENDS_AS_GLOB = regex(r"[A-Za-z0-9-]\*$")
