"""How a board that NVML describes differs from what the catalog says of its model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from gpuplan.compiler.catalog.models import Gpu, Profile

_NVIDIA: Final = 0x10DE
_MOST_OFF: Final = 0.01
"""How far the total of memory may be off: it depends on the driver, and on GDDR on whether ECC is on."""
_MOST_OFF_OF_INSTANCE: Final = 0.05
"""What is usable of an instance depends on the driver more than that."""


class Instances(NamedTuple):
    """A profile as NVML tells of it, with the places where an instance may be: each a start and a size.

    It has no name where MIG is off.
    """

    name: str
    compute_slices: int
    max_instances: int
    sm: int
    ce: int
    dec: int
    enc: int
    jpeg: int
    ofa: int
    memory_mib: int
    placements: Sequence[tuple[int, int]]


class Board(NamedTuple):
    """A board as NVML tells of it; ``pci`` is its device above its vendor.

    ``is_mig_on`` is None where the board has no MIG.
    """

    name: str
    pci: int
    memory_mib: int
    compute_capability: tuple[int, int]
    driver: str
    is_mig_on: bool | None
    profiles: Sequence[Instances] = ()

    @property
    def label(self) -> str:
        """As GPU Feature Discovery has it in `nvidia.com/gpu.product` (`internal/lm/resource.go` there)."""
        return self.name.replace(" ", "-")

    @property
    def device(self) -> str:
        return f"0x{self.pci >> 16:04X}"


def find_model(board: Board, models: Sequence[Gpu]) -> Gpu | None:
    """The model that a board is of, by its name or by its PCI device."""
    by_name = (gpu for gpu in models if board.label in _labels(gpu))
    by_device = (gpu for gpu in models if board.device in _devices(gpu))
    return next(chain(by_name, by_device), None)


def differences(board: Board, gpu: Gpu) -> list[str]:
    """What the two say differently, each with both sides; nothing of what one of them does not say."""
    return [*_of_board(board, gpu), *(_of_profiles(board, gpu) if board.profiles and gpu.is_complete else ())]


def _labels(gpu: Gpu) -> set[str]:
    return {product.label for product in gpu.products}


def _devices(gpu: Gpu) -> set[str]:
    return {f"0x{int(device.device, 16):04X}" for device in gpu.pci}


def _of_board(board: Board, gpu: Gpu) -> Iterator[str]:
    if board.label not in _labels(gpu):
        yield f"product: the board is {board.label}, {gpu.id} is {_listed(_labels(gpu))}"
    if board.pci & 0xFFFF != _NVIDIA or board.device not in _devices(gpu):
        yield f"pci: the board is {board.device}, {gpu.id} is {_listed(_devices(gpu))}"
    if gpu.memory_mib is not None and abs(board.memory_mib - gpu.memory_mib) > _MOST_OFF * gpu.memory_mib:
        yield f"memory: the board has {board.memory_mib} MiB, {gpu.id} {gpu.memory_mib} MiB"
    if board.compute_capability != gpu.compute_capability:
        yield f"compute capability: the board has {board.compute_capability}, {gpu.id} {gpu.compute_capability}"
    if (board.is_mig_on is not None) != gpu.supports_mig:
        yield f"MIG: the board {'has it' if board.is_mig_on is not None else 'has none'}, {gpu.id} says otherwise"


def _of_profiles(board: Board, gpu: Gpu) -> Iterator[str]:
    told = {gpu.current_name(profile.name): profile for profile in board.profiles if profile.name}
    for found in (profile for profile in board.profiles if not profile.name):
        if all(any(_of_profile(found, known)) for known in gpu.profiles):
            yield f"a profile of {found.compute_slices} slices, {found.max_instances} times: {gpu.id} has none like it"
    for name, found in told.items():
        known = gpu.find_profile(name)
        if known is None:
            yield f"{name}: {gpu.id} has no such profile"
        else:
            yield from (f"{name}: {text}" for text in _of_profile(found, known))
    for profile in gpu.profiles if told else ():
        if profile.name not in told and not _is_too_new(profile.name, board, gpu):
            yield f"{profile.name}: the board has no such profile with driver {board.driver}"


def _is_too_new(name: str, board: Board, gpu: Gpu) -> bool:
    """Whether a profile needs a driver that the board's is older than."""
    needed, present = (
        [int(part) for part in re.findall("[0-9]+", text)] for text in (_needed(name, gpu), board.driver)
    )
    return present < needed


def _needed(name: str, gpu: Gpu) -> str:
    """A release such as `550.90.07`, or a branch such as `R525`."""
    return gpu.min_drivers.get(name, "")


def _of_profile(found: Instances, known: Profile) -> Iterator[str]:
    for field in ("compute_slices", "max_instances", "sm", "ce", "dec", "enc", "jpeg", "ofa"):
        is_, said = getattr(found, field), getattr(known, field)
        if said is not None and is_ != said:
            yield f"{field} {is_}, and not {said}"
    if (
        known.memory_mib is not None
        and abs(found.memory_mib - known.memory_mib) > _MOST_OFF_OF_INSTANCE * known.memory_mib
    ):
        yield f"memory {found.memory_mib} MiB, and not {known.memory_mib}"
    places = sorted(found.placements)
    wanted = sorted((placement.start, placement.size) for placement in known.placements)
    if places and places != wanted:
        yield f"placements {places}, and not {wanted}"


def _listed(names: set[str]) -> str:
    return " or ".join(sorted(names))
