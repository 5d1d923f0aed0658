"""The guarantees, shares, queues and places that a first sync takes from those who have them (GPU817)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction as Ratio
from math import floor
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Diagnostic, Severity
from gpuplan.compiler.base.plain import grouped, inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.manifests.selectors import matches
from gpuplan.compiler.planning.discovered import GPU_RESOURCE, MIG_RESOURCES
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import report
from gpuplan.features.live.first_sync.worlds import (
    ABSENT_FILE,
    MIG,
    OPERANDS,
    PLUGIN,
    Operand,
    World,
    Worlds,
    file_of,
    shares,
    strategy_of,
)
from gpuplan.features.live.places import Body, Node, Obstacle, asked, needed, obstacles, placed_by, pods_of
from gpuplan.features.live.work.pods import is_owned

_KUEUE: Final = "kueue.x-k8s.io"


class Harm(NamedTuple):
    """A harm, and whether work stops by it; else something is taken away."""

    diagnostic: Diagnostic
    stops: bool = False


def harms(dump: Dump, seen: Worlds) -> Iterator[Harm]:
    """Yield what a first sync stops or takes away, by comparing what each has before with what it has after."""
    yield from _caps(dump, seen.before, seen.after)
    yield from _orders(seen)
    yield from _flavors_first(dump, seen)
    yield from _units(seen)
    yield from _queues(dump, seen.before, seen.after)
    yield from _places(dump, seen.before, seen.after)


# --- Numbers that fall -------------------------------------------------------------------------------------------

Amounts = Mapping[tuple[str, str], Ratio]
"""Amounts by who has them and of what; None where nothing bounds them."""


def _caps(dump: Dump, before: World, after: World) -> Iterator[Harm]:
    """Yield the caps of namespaces that fall: of several ResourceQuotas that count the same, the least holds."""
    places = {item.namespace: item.at for item in dump.objects if item.namespace}
    places |= {item.name: item.at for item in dump.of_kind("", "Namespace")}
    old, new = _quotas(before), _quotas(after)
    whole: defaultdict[str, int] = defaultdict(int)
    for node in before.nodes:
        for resource, number in node.units.items():
            whole[resource] += number
    used = grouped(
        (item.namespace, resource) for item in dump.objects for _, pod in pods_of(item) for resource in asked(pod)
    )
    ample: defaultdict[tuple[str, Ratio], list[str]] = defaultdict(list)
    for (namespace, key), cap in sorted(new.items()):
        had = old.get((namespace, key))
        resource = key.removeprefix("requests.")
        bounds = [bound for bound in (had, Ratio(whole[resource]) if "/" in resource else None) if bound is not None]
        if namespace not in places or (bounds and cap >= min(bounds)):
            if namespace in places and had is None and whole[resource]:
                ample[key, cap].append(namespace)
            continue
        item = _quota_with(dump, namespace, key)
        at = item.at / "spec" / "hard" / key if item else places[namespace]
        field = _FIELDS.get(resource, "limit")
        was = "nothing capped it" if had is None else f"it was {_shown(had)}"
        is_unused = had is None and "/" in resource and resource not in used.get(namespace, ())
        severity = Severity.WARNING if is_unused else None
        less = _shown(cap)
        finding = report(
            "cap-falls", at, severity=severity, namespace=namespace, key=key, cap=less, was=was, field=field
        )
        yield Harm(finding)
    for (key, cap), namespaces in ample.items():
        names = joined([f"`{name}`" for name in namespaces])
        yield Harm(report("cap-of-all", places[namespaces[0]], names=names, key=key, cap=_shown(cap)))


_FIELDS: Final = {"cpu": "cpu", "memory": "memory", "pods": "pods"}
"""The fields of a tenant's quota by what they cap; `limit` for units."""


def _quotas(world: World) -> Amounts:
    """Return the caps of namespaces; quotas with scopes count some pods alone."""
    found: dict[tuple[str, str], Ratio] = {}
    for identity, body in world.of_kind("", "ResourceQuota"):
        spec = inside(body, "spec")
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue
        for key, value in mapping(spec.get("hard")).items():
            at = identity.namespace, _CANONICAL.get(key, key)
            if (amount := _amount(value)) is not None:
                amount = Ratio(floor(amount)) if "/" in at[1] else amount
                found[at] = min(amount, found.get(at, amount))
    return found


_CANONICAL: Final = {"cpu": "requests.cpu", "memory": "requests.memory", "count/pods": "pods"}


def _quota_with(dump: Dump, namespace: str, key: str) -> Item | None:
    found = (item for item in dump.of_kind("", "ResourceQuota") if item.namespace == namespace)
    return next((item for item in found if key in inside(item.body, "spec", "hard")), None)


def _amount(value: object) -> Ratio | None:
    found = parse_quantity(str(value)) if isinstance(value, str | int | float) and value is not True else None
    return None if found is None else Ratio(found)


def _shown(amount: Ratio) -> str:
    for unit, name in ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi")):
        if amount and amount % unit == 0:
            return f"{amount // unit}{name}"
    return str(amount) if amount.denominator == 1 else f"{float(amount):g}"


def _units(seen: Worlds) -> Iterator[Harm]:
    """Yield the nodes that hand out fewer units afterwards, of any resource of NVIDIA's."""
    for resources, nodes in _grouped(
        (tuple(_fewer(_spelt(seen.before, old), new.units)), old)
        for index, (old, new) in enumerate(zip(seen.before.nodes, seen.after.nodes, strict=True))
        if old.pool is not None and not _is_told_the_same(seen, index)
    ):
        for resource, had, has in resources:
            names, pool = listing([node.name for node in nodes]), nodes[0].pool
            at = nodes[0].item.at / "status" / "allocatable" / resource
            yield Harm(report("units-fall", at, resource=resource, had=had, has=has, names=names, pool=pool))


def _is_told_the_same(seen: Worlds, index: int) -> bool:
    """Whether a node is told afterwards what it is told today: what it lacks of that, no sync takes away."""
    strategies = {strategy_of(world, world.nodes[index]) for world in (seen.before, seen.after)} - {""}
    return len(strategies) <= 1 and all(_is_read_alike(seen, index, operand) for operand in OPERANDS)


def _is_read_alike(seen: Worlds, index: int, operand: Operand) -> bool:
    """Whether an operand reads the same before and after; where the dump lacks its file, by the label of the node."""
    is_named = operand is MIG or inside(seen.before.settings, operand.section, "config").get("name")
    say = _label if is_named and seen.before.config_map(operand) is None else _meaning
    return say(seen.before, index, operand) == say(seen.after, index, operand)


def _label(world: World, index: int, operand: Operand) -> object:
    return world.nodes[index].labels.get(operand.label, "")


def _spelt(world: World, node: Node) -> Mapping[str, int]:
    """Return what a node hands out; with `single`, MIG devices are GPUs from the next start of the plugin on."""
    if strategy_of(world, node) != "single":
        return node.units
    mig = sum(number for resource, number in node.units.items() if resource.startswith(MIG_RESOURCES))
    rest = {resource: number for resource, number in node.units.items() if not resource.startswith(MIG_RESOURCES)}
    return {**rest, GPU_RESOURCE: rest.get(GPU_RESOURCE, 0) + mig} if mig else rest


def _fewer(old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    for resource, number in sorted(old.items()):
        if new.get(resource, 0) < number:
            yield resource, number, new.get(resource, 0)


# --- Orders of the sync ------------------------------------------------------------------------------------------


def _orders(seen: Worlds) -> Iterator[Harm]:
    """Yield the nodes that read a wrong file between the operator's sync and their labels, in both orders."""
    for operand in OPERANDS:
        found = (
            (problems, node)
            for index, node in enumerate(seen.before.nodes)
            if node.pool is not None and all(problems := _between(seen, index, operand))
        )
        for (first, second), nodes in _grouped(found):
            names, pool, key = listing([node.name for node in nodes]), nodes[0].pool, operand.label
            at = nodes[0].item.at / "metadata" / "labels"
            yield Harm(report("no-safe-order", at, names=names, pool=pool, key=key, first=first, second=second))


def _flavors_first(dump: Dump, seen: Worlds) -> Iterator[Harm]:
    """Yield the ClusterQueues whose flavors find no node if queues are synced before the labels of nodes."""
    flavors = {
        key.name: inside(body, "spec", "nodeLabels") for key, body in seen.after.of_kind(_KUEUE, "ResourceFlavor")
    }
    waiting = []
    for item in dump.of_kind(_KUEUE, "ClusterQueue"):
        groups = map(mapping, sequence(inside(seen.after.objects[item.identity], "spec").get("resourceGroups")))
        named = [text(mapping(flavor).get("name")) for group in groups for flavor in sequence(group.get("flavors"))]
        own = [flavors[name] for name in named if name in flavors]
        if any(_matched(seen.after, labels) and not _matched(seen.before, labels) for labels in own):
            waiting.append(item)
    if waiting:
        names = listing([item.name for item in waiting])
        yield Harm(report("flavors-before-labels", waiting[0].at / "spec", names=names))


def _between(seen: Worlds, index: int, operand: Operand) -> tuple[str, str]:
    """Return what is wrong if the operator's folder is first, and if labels are first; empty where nothing is."""
    old, new = (_meaning(world, index, operand) for world in (seen.before, seen.after))
    found: list[str] = []
    for world in (seen.operator_first, seen.labels_first):
        here = _meaning(world, index, operand)
        if here in (old, new) or world.config_map(operand) is None:
            found.append("")
        elif here == ABSENT_FILE:
            found.append(f"their label names `{_label(world, index, operand)}`, which no file has")
        else:
            found.append("they read a file that divides GPUs in another way")
    return found[0], found[1]


def _meaning(world: World, index: int, operand: Operand) -> object:
    node = world.nodes[index]
    file = file_of(world, node, operand)
    if file == ABSENT_FILE or operand is not PLUGIN:
        return file
    has_mig = any(resource.startswith(MIG_RESOURCES) for resource in node.units)
    return {name: divided for name, divided in shares(file).items() if name.startswith(MIG_RESOURCES) <= has_mig}


# --- Queues ------------------------------------------------------------------------------------------------------


def _queues(dump: Dump, before: World, after: World) -> Iterator[Harm]:
    for item in dump.of_kind(_KUEUE, "LocalQueue"):
        route = ("spec", "clusterQueue")
        was, becomes = (text(inside(world.objects[item.identity], "spec").get(route[-1])) for world in (before, after))
        if was != becomes:
            yield Harm(report("queue-moves", item.at / route, item=item, was=was, becomes=becomes), stops=True)
    new_queues = {key for key, _ in after.of_kind(_KUEUE, "LocalQueue")} - before.objects.keys()
    for namespace in sorted(key.namespace for key in new_queues if key.name == "default"):
        work = next((item for item in dump.objects if _is_queued_by_default(item, namespace)), None)
        if work:
            yield Harm(report("queue-by-default", work.at, item=work, namespace=namespace))
    for kind, amounts in _AMOUNTS.items():
        for item in dump.of_kind(*kind):
            old, new = (amounts(world, item) for world in (before, after))
            for what, number in sorted(new.items()):
                had = old.get(what)
                if number is not None and what in old and (had is None or number < had):
                    shown = "nothing bounds it" if had is None else f"it is {_shown(had)}"
                    at = item.at / "spec"
                    yield Harm(report("queue-shrinks", at, item=item, what=what, number=_shown(number), was=shown))
    for item in dump.of_kind(_KUEUE, "ResourceFlavor"):
        old_nodes, new_nodes = (
            _matched(world, inside(world.objects[item.identity], "spec", "nodeLabels")) for world in (before, after)
        )
        if lost := [name for name in old_nodes if name not in new_nodes]:
            at = item.at / "spec"
            yield Harm(report("flavor-loses-nodes", at, item=item, names=listing(lost)), stops=not new_nodes)


def _is_queued_by_default(item: Item, namespace: str) -> bool:
    """Whether Kueue gives an object the LocalQueue `default` of its namespace: what makes pods and names no queue.

    (`ApplyDefaultLocalQueue` in `pkg/controller/jobframework/defaults.go` of Kueue.)
    """
    names_one = "kueue.x-k8s.io/queue-name" in item.labels
    is_here = item.namespace == namespace and not is_owned(item) and not item.kind.endswith(_NO_WORK)
    return is_here and not names_one and any(asked(pod) for _, pod in pods_of(item))


def _matched(world: World, labels: Body) -> list[str]:
    return [node.name for node in world.nodes if matches({"matchLabels": labels}, node.labels) is True]


def _cluster_queue(world: World, item: Item) -> Mapping[str, Ratio | None]:
    """Return what a ClusterQueue has of each resource, over its flavors: its own, and with what it may borrow.

    Without a cohort it borrows nothing, and without a limit all that the cohort has.
    """
    own: defaultdict[str, Ratio] = defaultdict(Ratio)
    most: dict[str, Ratio | None] = {}
    spec = inside(world.objects[item.identity], "spec")
    is_alone = not (spec.get("cohort") or spec.get("cohortName"))
    for group in map(mapping, sequence(spec.get("resourceGroups"))):
        for flavor in map(mapping, sequence(group.get("flavors"))):
            for resource in map(mapping, sequence(flavor.get("resources"))):
                name, nominal = text(resource.get("name")), _amount(resource.get("nominalQuota")) or Ratio(0)
                limit = Ratio(0) if is_alone else _amount(resource.get("borrowingLimit"))
                own[f"`{name}`"] += nominal
                key, there = f"`{name}` with what it borrows", most.get(f"`{name}` with what it borrows", Ratio(0))
                most[key] = None if limit is None or there is None else there + nominal + limit
    return {**own, **most}


def _kai_queue(world: World, item: Item) -> Mapping[str, Ratio | None]:
    """Return the quotas and limits of a Queue, over those of all node pools that are shown by its name.

    -1 bounds nothing (`pkg/apis/scheduling/v2/queue_types.go` of KAI-Scheduler).
    """
    found: dict[str, Ratio | None] = {}
    for identity, body in world.of_kind(item.group, item.kind):
        if item.name not in (identity.name, inside(body, "spec").get("displayName")):
            continue
        for resource, value in inside(body, "spec", "resources").items():
            for field in ("quota", "limit"):
                what, amount = f"`{resource}.{field}`", _amount(mapping(value).get(field))
                there = found.get(what, Ratio(0))
                found[what] = None if amount is None or amount < 0 or there is None else there + amount
    return found


_AMOUNTS: Final = {(_KUEUE, "ClusterQueue"): _cluster_queue, ("scheduling.run.ai", "Queue"): _kai_queue}


# --- Places for pods ---------------------------------------------------------------------------------------------


def _places(dump: Dump, before: World, after: World) -> Iterator[Harm]:
    """Yield the work that has fewer nodes to run on afterwards, or none."""
    known: dict[str, _Moved] = {}  # most pods of a cluster are placed alike
    for item in dump.objects:
        if not item.namespace or is_owned(item) or item.kind.endswith(_NO_WORK):
            continue
        for marks, there in pods_of(item):
            # A scheduler puts a pod that is made again on a node anew.
            pod = {**there, "nodeName": ""} if item.kind == "Pod" else there
            if (key := placed_by(pod, marks)) not in known:
                known[key] = _moved(before, after, pod, marks)
            lost, why, is_left = known[key]
            if lost and (needed(pod, marks) or not is_left):
                names = listing(lost)
                loses = f"runs no longer on {names}" if is_left else "finds no node after the first sync"
                notes, help_ = [obstacle.reason for obstacle in why], why[0].help
                found = report(
                    "work-loses-nodes", item.at, notes=notes, item=item, loses=loses, names=names, help=help_
                )
                yield Harm(found, stops=not is_left)
                break


class _Moved(NamedTuple):
    """The nodes that pods lose, why they lose the first, and whether any node is left."""

    lost: tuple[str, ...]
    why: tuple[Obstacle, ...]
    is_left: bool


def _moved(before: World, after: World, pod: Body, marks: Mapping[str, str]) -> _Moved:
    lost: dict[str, tuple[Obstacle, ...]] = {}
    for old, new in zip(before.nodes, after.nodes, strict=True):
        if new is not old and (why := tuple(obstacles(new, pod, marks))) and not any(obstacles(old, pod, marks)):
            lost[new.name] = why
    is_left = bool(lost) and any(not any(obstacles(node, pod, marks)) for node in after.nodes)
    return _Moved(tuple(lost), next(iter(lost.values()), ()), is_left)


_NO_WORK: Final = ("Revision", "ReplicaSet", "Runtime")


def _grouped(pairs: Iterable[tuple[Any, Node]]) -> Iterator[tuple[Any, tuple[Node, ...]]]:
    """Yield the nodes of each pool of which the same is said."""
    for (said, _), nodes in grouped(((said, node.pool and node.pool.name), node) for said, node in pairs).items():
        yield said, nodes
