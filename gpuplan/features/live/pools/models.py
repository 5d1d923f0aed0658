"""The GPU models of pools: those of the catalog, and documents for others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.discovered import bare_product, is_of_mig_devices
from gpuplan.features.live.draft import Draft
from gpuplan.features.live.pools.boards import described, find_by_pci, find_by_product, gpu_name
from gpuplan.features.live.pools.grouping import Group
from gpuplan.features.live.pools.machines import Machine
from gpuplan.features.live.pools.telling import Told
from gpuplan.features.live.rules import NODES_NOT_SAID


class Board(NamedTuple):
    """A pool's model by its name; ``gpu`` is None where the catalog lacks it."""

    name: str
    gpu: Gpu | None


def board_of(found: Group) -> Board | None:
    """The model that the table names, or most nodes have."""
    stated = next(filter(None, (part.gpu for part in found.claim.parts)), "")
    if gpu := load().find(stated):
        return Board(gpu.id, gpu)
    products = Counter(bare_product(machine.product) for machine in found.machines if machine.product)
    devices = frozenset(device for machine in found.machines for device in machine.devices)
    for product, _ in products.most_common(1):
        gpu = find_by_product(product) or find_by_pci(devices)
        return Board(gpu.id, gpu) if gpu else Board(stated or gpu_name(product), None)
    if gpu := find_by_pci(devices):
        return Board(gpu.id, gpu)
    return Board(stated, None) if stated else None


def unknown_models(groups: Sequence[Group], boards: Mapping[str, Board | None], told: Told) -> Iterator[Draft]:
    """A document for each model that the catalog lacks."""
    unknown: dict[str, list[Group]] = {}
    for found in groups:
        board = boards[found.pool]
        if board is not None and board.gpu is None:
            unknown.setdefault(board.name, []).append(found)
    for name, pools in sorted(unknown.items()):
        machines = [machine for found in pools for machine in found.machines]
        whole = [machine for machine in machines if machine.product and not is_of_mig_devices(machine.product)]
        labels = whole[0].labels if whole else {}
        products = {bare_product(machine.product) for machine in machines if machine.product}
        devices = {device for machine in machines for device in machine.devices}
        devices |= {device for found in pools for part in found.claim.parts for device in part.devices}
        spec = dict(described(labels, products, devices))
        draft = Draft("Gpu", name, spec, tuple(machine.source for machine in machines[:1]))
        _tell_of_model(draft, machines, told)
        yield draft


def _tell_of_model(draft: Draft, machines: Sequence[Machine], told: Told) -> None:
    missing = [field for field in ("memoryMiB", "computeCapability", "products", "pci") if field not in draft.spec]
    if not missing or not machines:
        return
    first = machines[0]
    help_ = "".join(
        (
            "`pci` is what `lspci -nn -d 10de:` prints there; " if "pci" in missing else "",
            f"write {', '.join(f'`{field}`' for field in missing)} into policies/gpus/{draft.name}.yaml",
        )
    )
    told.say(
        NODES_NOT_SAID,
        first.at / "metadata" / "labels",
        f"the labels of node `{first.name}` do not say all of its GPU model, which the catalog lacks",
        label=f"no {' and no '.join(f'`{field}`' for field in missing)}",
        notes=("NFD finds PCI ids: `kubectl get nodefeatures -A -o yaml` has them, and can be imported, too",),
        help=help_,
        drafts=(draft.title,),
    )
