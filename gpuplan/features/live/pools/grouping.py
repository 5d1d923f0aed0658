"""The pools that nodes make: those that something claims, and else nodes that are alike."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, count
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.discovered import (
    COUNT_LABEL,
    INSTANCE_TYPE_LABEL,
    NODE_POOL_LABELS,
    PRODUCT_LABEL,
    bare_product,
    is_of_mig_devices,
    unshared_product,
)
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL as SHARD_LABEL
from gpuplan.features.live.drafts import Draft, policy_name
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.pools.nodes import Claim, Machine, Part, described, find_by_pci, find_by_product, gpu_name


class Group(Value):
    """A pool to be: its name, what claims its nodes, and those of the dump that are in it."""

    pool: str
    claim: Claim
    machines: tuple[Machine, ...]
    is_claimed: bool = False

    @property
    def source(self) -> str:
        return self.claim.first.source


def group(
    claims: Sequence[Claim],
    machines: Sequence[Machine],
    flavors: Mapping[str, tuple[str, ...]],
    called: Mapping[str, str],
    *,
    are_labelled_by_others: bool,
) -> Iterator[Group]:
    """Claimed pools first, each with its nodes; nodes that nobody claims by what they are and what they are told.

    ``flavors`` are names of ResourceFlavors by node: nodes of two flavors are two pools. Nodes are ``called`` as people
    call their pool. Where nodes are labelled by whoever makes them, the label of their node pool chooses them.
    """
    members: dict[str, list[Machine]] = {claim.pool: [] for claim in claims}
    left: list[Machine] = []
    by_name = {name: claim.pool for claim in reversed(claims) for part in claim.parts for name in part.names}
    for machine in machines:
        pool = by_name.get(machine.name) or (
            machine.pool
            if machine.pool in members
            else next((claim.pool for claim in claims if any(part.has(machine) for part in claim.parts)), "")
        )
        members.get(pool, left).append(machine)
    yield from (Group(claim.pool, claim, tuple(members[claim.pool]), is_claimed=True) for claim in claims)
    told = {machine.name: (*flavors.get(machine.name, ()), called.get(machine.name, "")) for machine in left}
    alike = [*grouped((_key(machine, told[machine.name]), machine) for machine in left).values()]
    selectors = _selectors(alike) if are_labelled_by_others else [{} for _ in alike]
    taken = {claim.pool for claim in claims}
    for found, wish, selector in zip(alike, _names(alike, called), selectors, strict=True):
        first = found[0]
        names = chain((wish,), (f"{wish}-{number}" for number in count(2)))
        name = first.pool or next(one for one in names if one not in taken)
        taken.add(name)
        taints = Counter(taint for machine in found for taint in machine.taints)
        part = Part(
            at=first.at,
            source=first.source,
            labels=first.labels,
            taints=tuple(sorted(taint for taint, number in taints.items() if number == len(found))),
            names=() if selector else tuple(sorted(machine.name for machine in found)),
            selector=selector,
            count=len(found),
        )
        yield Group(name, Claim(name, (part,)), found)


def _key(machine: Machine, flavors: tuple[str, ...]) -> tuple[object, ...]:
    if machine.pool:
        return (machine.pool,)
    told = tuple(machine.labels.get(label, "") for label in (MIG_CONFIG_LABEL, DEVICE_PLUGIN_CONFIG_LABEL, SHARD_LABEL))
    selector = tuple(sorted(selector_of(machine).items()))
    product = bare_product(machine.product) or tuple(sorted(machine.devices))
    shown = "" if machine.labels.get(DEVICE_PLUGIN_CONFIG_LABEL) else repr(machine.shared)
    return (product, machine.counted, *told, shown, _unlabelled(machine), machine.taints, selector, flavors)


def _unlabelled(machine: Machine) -> tuple[object, ...]:
    """Return the MIG devices of a node that names no entry: what it is divided into is all that one knows of it."""
    if machine.labels.get(MIG_CONFIG_LABEL):
        return ()
    mode = unshared_product(machine.product) if is_of_mig_devices(machine.product) else ""
    return (mode, *(sorted(machine.published.items()) if machine.has_mig_devices else ()))


def selector_of(machine: Machine) -> dict[str, str]:
    """Return the label by which a managed service tells the nodes of one group."""
    return next(({label: machine.labels[label]} for label in NODE_POOL_LABELS if machine.labels.get(label)), {})


_TELLING: Final = (
    INSTANCE_TYPE_LABEL,
    *NODE_POOL_LABELS,
    PRODUCT_LABEL,
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    COUNT_LABEL,
)
"""Labels that tell nodes of one node pool apart, those that change least first."""


def _selectors(groups: Sequence[Sequence[Machine]]) -> list[dict[str, str]]:
    """Return a selector for each group, so that none chooses the nodes of another; empty where no labels do that.

    Groups of one node pool have the fewest further labels that all of them have, with values that differ.
    """
    pools = [tuple(selector_of(found[0]).items()) for found in groups]
    chosen: dict[object, tuple[str, ...] | None] = {}
    for pool in dict.fromkeys(pools):
        members = [found for found, own in zip(groups, pools, strict=True) if own == pool]
        uniform = [label for label in _TELLING if all(_common(found, label) for found in members)]
        tries = (labels for size in range(len(uniform) + 1) for labels in combinations(uniform, size))
        chosen[pool] = next(
            (
                labels
                for labels in tries
                if len({tuple(_common(found, label) for label in labels) for found in members}) == len(members)
            ),
            None,
        )
    return [
        dict(pool) | {label: _common(found, label) for label in labels} if pool and labels is not None else {}
        for found, pool in zip(groups, pools, strict=True)
        for labels in (chosen[pool],)
    ]


def _common(machines: Sequence[Machine], label: str) -> str:
    """Return the value of a label that all nodes have, else nothing."""
    values = {machine.labels.get(label, "") for machine in machines}
    return values.pop() if len(values) == 1 else ""


# --- Names -------------------------------------------------------------------------------------------------------

_NAMED_WELL: Final = 40
_OF_PEOPLE: Final = regex(r"(?:[a-z0-9.-]+/)?(?:gpu|accelerator|node)[-._]?(?:type|pool|class|group|model)")
"""Keys by which people tell kinds of nodes, such as `gpu-type` and `example.com/node-pool`."""


def _names(groups: Sequence[Sequence[Machine]], called: Mapping[str, str]) -> list[str]:
    """Return a name for each group; groups that would have one name have their model or their sharing at its end."""
    wishes = [_name(found, called) for found in groups]
    marks = [(_model(found[0]), _mark_of(found[0])) for found in groups]
    names: list[str] = []
    for wish, mark in zip(wishes, marks, strict=True):
        alike = [other for other, named in zip(marks, wishes, strict=True) if named == wish]
        ends = [part for place, part in enumerate(mark) if len({other[place] for other in alike}) > 1]
        name = "-".join(filter(None, (wish, *(end for end in ends if end not in wish))))
        names.append(name[:_NAMED_WELL].strip("-"))
    return names


def _name(machines: Sequence[Machine], called: Mapping[str, str]) -> str:
    """After the shard of KAI-Scheduler, what nodes are called, a label of people's own or the node pool of a managed
    service, else after the board and what it is told.

    A shard is called as its pool, so that nodes keep the label.
    """
    first = machines[0]
    if shard := first.labels.get(SHARD_LABEL):
        return policy_name(shard)
    own = sorted(label for label in first.labels if _OF_PEOPLE.fullmatch(label) and label not in NODE_POOL_LABELS)
    values = [value for label in own if (value := _common(machines, label)) not in ("", "true", "gpu")]
    named = next(filter(None, (called.get(first.name), *values, *selector_of(first).values())), "")
    if named:
        return policy_name(named)[:_NAMED_WELL].strip("-")
    product, mark = _model(first) or "gpus", _mark_of(first)
    return "-".join(filter(None, (product, mark if mark != product else "")))[:_NAMED_WELL].strip("-")


def _model(machine: Machine) -> str:
    return policy_name(bare_product(machine.product).removeprefix("NVIDIA-")) if machine.product else ""


def _mark_of(machine: Machine) -> str:
    """Return a name for what a node is told to be, or is divided into."""
    config = machine.labels.get(MIG_CONFIG_LABEL, "")
    if config and config != "all-disabled":
        return policy_name(config)
    if not config and any(_unlabelled(machine)):
        return "mig"
    key = machine.labels.get(DEVICE_PLUGIN_CONFIG_LABEL, "")
    return policy_name(key) if key else ""


# --- Models --------------------------------------------------------------------------------------------------------


class Board(NamedTuple):
    """A pool's model by its name; ``gpu`` is None where the catalog and the policies lack it."""

    name: str
    gpu: Gpu | None


class Own(NamedTuple):
    """A model that a document of the repository describes, and the document's spec."""

    gpu: Gpu
    spec: Mapping[str, object]


def board_of(group: Group, models: Sequence[Own] = ()) -> Board | None:
    """Return the model that the table names, or most nodes have."""
    stated = next(filter(None, (part.gpu for part in group.claim.parts)), "")
    if gpu := load().find(stated):
        return Board(gpu.id, gpu)
    products = Counter(bare_product(machine.product) for machine in group.machines if machine.product)
    devices = frozenset(device for machine in group.machines for device in machine.devices)
    for product, _ in products.most_common(1):
        gpu = find_by_product(product, (item.gpu for item in models)) or find_by_pci(devices)
        return Board(gpu.id, gpu) if gpu else Board(stated or gpu_name(product), None)
    if gpu := find_by_pci(devices):
        return Board(gpu.id, gpu)
    return Board(stated, None) if stated else None


class Described(NamedTuple):
    """Documents of models that the catalog lacks, and the names of those that nothing describes enough."""

    drafts: tuple[Draft, ...]
    lacking: frozenset[str]


def unknown_models(
    groups: Sequence[Group], boards: Mapping[str, Board | None], known: Sequence[Own], reports: Reports
) -> Described:
    """Return a document for each model that the catalog lacks; one that the repository has is as it is there."""
    models = ((boards[found.pool], found) for found in groups)
    unknown = grouped((board.name, found) for board, found in models if board is not None and board.gpu is None)
    named = {board.name for board in boards.values() if board is not None}
    drafts = [Draft("Gpu", item.gpu.id, item.spec) for item in known if item.gpu.id in named]
    lacking: set[str] = set()
    for name, pools in sorted(unknown.items()):
        machines = [machine for found in pools for machine in found.machines]
        whole = [machine for machine in machines if machine.product and not is_of_mig_devices(machine.product)]
        labels = whole[0].labels if whole else {}
        products = {bare_product(machine.product) for machine in machines if machine.product}
        devices = {device for machine in machines for device in machine.devices}
        devices |= {device for found in pools for part in found.claim.parts for device in part.devices}
        spec = dict(described(labels, products, devices))
        draft = Draft("Gpu", name, spec, tuple(machine.source for machine in machines[:1]))
        missing = {field: form for field, form in _FORMS.items() if field not in spec}
        if missing and machines:
            at, fields = machines[0].at / "metadata" / "labels", " and no ".join(f"`{field}`" for field in missing)
            first, file = machines[0], f"policies/gpus/{name}.yaml"
            if set(missing) == {"pci"}:
                reports.say("model-without-pci", at, draft.title, first=first, fields=fields, file=file)
            else:
                lacking.add(name)
                written = ", ".join(f"{field}: {json.dumps((missing | spec)[field])}" for field in _FORMS)
                left = joined([f"`{found.pool}`" for found in pools])
                reports.say(
                    "model-in-part", at, first=first, fields=fields, file=file, name=name, spec=written, pools=left
                )
        if name not in lacking:
            drafts.append(draft)
    return Described(tuple(drafts), frozenset(lacking))


_FORMS: Final[Mapping[str, object]] = {
    "memoryMiB": 49140,
    "computeCapability": "8.6",
    "products": ["NVIDIA-RTX-A6000"],
    "pci": ["10de:2230"],
}
"""The fields of a `Gpu`, each with a value in the form that it has."""
