"""The pools that nodes make: those that something claims, and else nodes that are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Final

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.discovered import NODE_POOL_LABELS, bare_product, is_of_mig_devices, unshared_product
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL as SHARD_LABEL
from gpuplan.features.live.drafts import Draft, policy_name
from gpuplan.features.live.dump import grouped
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
    alike = grouped((_key(machine, told[machine.name]), machine) for machine in left)
    taken = {claim.pool for claim in claims}
    for found in alike.values():
        first, known = found[0], called.get(found[0].name, "")
        wish = policy_name(known) if known else _name(first)
        names = chain((wish,), (f"{wish}-{number}" for number in count(2)))
        name = first.pool or next(one for one in names if one not in taken)
        taken.add(name)
        taints = Counter(taint for machine in found for taint in machine.taints)
        selector = selector_of(first) if are_labelled_by_others else {}
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


_NAMED_WELL: Final = 40


def _name(machine: Machine) -> str:
    """After the shard of KAI-Scheduler or the node pool of a managed service, else after the board and what it is told.

    A shard is called as its pool, so that nodes keep the label.
    """
    if shard := machine.labels.get(SHARD_LABEL):
        return policy_name(shard)
    selector = selector_of(machine)
    if selector:
        return policy_name(next(iter(selector.values())))[:_NAMED_WELL].strip("-")
    product = policy_name(bare_product(machine.product).removeprefix("NVIDIA-")) if machine.product else "gpus"
    config = machine.labels.get(MIG_CONFIG_LABEL, "")
    told = policy_name(config) if config and config != "all-disabled" else ""
    if not config and any(_unlabelled(machine)):
        told = "mig"
    key = machine.labels.get(DEVICE_PLUGIN_CONFIG_LABEL, "")
    shared = policy_name(key) if key and not told else ""
    mark = told or shared
    return "-".join(filter(None, (product, mark if mark != product else "")))[:_NAMED_WELL].strip("-")


# --- Models --------------------------------------------------------------------------------------------------------


class Board(NamedTuple):
    """A pool's model by its name; ``gpu`` is None where the catalog lacks it."""

    name: str
    gpu: Gpu | None


def board_of(group: Group) -> Board | None:
    """Return the model that the table names, or most nodes have."""
    stated = next(filter(None, (part.gpu for part in group.claim.parts)), "")
    if gpu := load().find(stated):
        return Board(gpu.id, gpu)
    products = Counter(bare_product(machine.product) for machine in group.machines if machine.product)
    devices = frozenset(device for machine in group.machines for device in machine.devices)
    for product, _ in products.most_common(1):
        gpu = find_by_product(product) or find_by_pci(devices)
        return Board(gpu.id, gpu) if gpu else Board(stated or gpu_name(product), None)
    if gpu := find_by_pci(devices):
        return Board(gpu.id, gpu)
    return Board(stated, None) if stated else None


def unknown_models(groups: Sequence[Group], boards: Mapping[str, Board | None], reports: Reports) -> Iterator[Draft]:
    """Yield a document for each model that the catalog lacks."""
    models = ((boards[found.pool], found) for found in groups)
    unknown = grouped((board.name, found) for board, found in models if board is not None and board.gpu is None)
    for name, pools in sorted(unknown.items()):
        machines = [machine for found in pools for machine in found.machines]
        whole = [machine for machine in machines if machine.product and not is_of_mig_devices(machine.product)]
        labels = whole[0].labels if whole else {}
        products = {bare_product(machine.product) for machine in machines if machine.product}
        devices = {device for machine in machines for device in machine.devices}
        devices |= {device for found in pools for part in found.claim.parts for device in part.devices}
        spec = dict(described(labels, products, devices))
        draft = Draft("Gpu", name, spec, tuple(machine.source for machine in machines[:1]))
        missing = [field for field in ("memoryMiB", "computeCapability", "products", "pci") if field not in spec]
        if missing and machines:
            at, names = machines[0].at / "metadata" / "labels", [f"`{field}`" for field in missing]
            help_ = f"write {', '.join(names)} into policies/gpus/{name}.yaml"
            if "pci" in missing:
                help_ = f"`pci` is what `lspci -nn -d 10de:` prints there; {help_}"
            fields = " and no ".join(names)
            reports.say("model-in-part", at, draft.title, fields=fields, first=machines[0], help=help_)
        yield draft
