"""Which GPU model a node has: by the label that GPU Feature Discovery writes, and by PCI ids that NFD found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.catalog import Gpu, Profile, load
from gpuplan.compiler.planning.discovered import (
    COMPUTE_MAJOR_LABEL,
    COMPUTE_MINOR_LABEL,
    MEMORY_LABEL,
    NODE_OF_FEATURES_LABEL,
    PCI_LABEL,
    bare_product,
    shown_product,
    unshared_product,
)
from gpuplan.features.live.dump import Dump


@cache
def _products() -> Mapping[str, str]:
    return {product.label: gpu.id for gpu in load().all() for product in gpu.products}


def find_by_product(label: str) -> Gpu | None:
    return load().find(_products().get(bare_product(label), ""))


def find_by_pci(devices: Iterable[str]) -> Gpu | None:
    """The one model of the catalog that has all these ids, as `lspci -nn` prints them."""
    wanted = set(devices)
    found = [gpu for gpu in load().all() if wanted and wanted <= {device.spelt for device in gpu.pci}]
    return found[0] if len(found) == 1 else None


def profile_of_product(label: str, gpu: Gpu) -> Profile | None:
    """The profile of the MIG devices that the label counts; None where it counts whole GPUs."""
    product, shown = bare_product(label), unshared_product(label)
    return next((profile for profile in gpu.profiles if shown_product(product, profile=profile.name) == shown), None)


# --- What NFD found ----------------------------------------------------------------------------------------------

_NFD: Final = "nfd.k8s-sigs.io"
_ID: Final = regex(r"[0-9a-f]{4}")


def devices_by_node(dump: Dump) -> Mapping[str, frozenset[str]]:
    """The PCI ids of NVIDIA's graphics boards by node, of NFD's own objects."""
    found: dict[str, frozenset[str]] = {}
    for item in dump.of_kind(_NFD, "NodeFeature"):
        node = item.labels.get(NODE_OF_FEATURES_LABEL, item.name)
        parts = inside(item.body, "spec", "features", "instances", "pci.device")
        elements = [inside(mapping(element), "attributes") for element in sequence(parts.get("elements"))]
        found[node] = frozenset(filter(None, map(_device, elements)))
    return found


def _device(attributes: Mapping[str, object]) -> str:
    vendor, device = text(attributes.get("vendor")), text(attributes.get("device"))
    is_board = text(attributes.get("class")).startswith("03")
    return f"10de:{device}" if is_board and vendor == "10de" and _ID.fullmatch(device) else ""


def devices_of_labels(labels: Iterable[str]) -> frozenset[str]:
    return frozenset(f"10de:{match[1]}" for label in labels if (match := PCI_LABEL.fullmatch(label)))


# --- Models that the catalog lacks -------------------------------------------------------------------------------


def gpu_name(product: str) -> str:
    """What to call a model that a platform describes itself."""
    short = re.sub(r"^nvidia-", "", product.lower())
    return re.sub(r"[^a-z0-9]+", "-", short).strip("-")[:40].strip("-") or "gpu"


def described(
    labels: Mapping[str, str], products: Iterable[str], devices: Iterable[str]
) -> Iterator[tuple[str, object]]:
    """The fields of a `Gpu`, as far as a node with whole GPUs says them."""
    memory = labels.get(MEMORY_LABEL, "")
    if memory.isdigit():
        yield "memoryMiB", int(memory)
    major, minor = (labels.get(label, "") for label in (COMPUTE_MAJOR_LABEL, COMPUTE_MINOR_LABEL))
    if major.isdigit() and minor.isdigit():
        yield "computeCapability", f"{major}.{minor}"
    yield "products", sorted(set(products))
    if found := sorted(set(devices)):
        yield "pci", found
