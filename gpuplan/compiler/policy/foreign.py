"""Files of other programs among the policies: what to write in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gpuplan.compiler.policy.models.pool import TimeSlicing
from gpuplan.compiler.policy.shapes import as_line, mapping
from gpuplan.compiler.policy.turns import divided, turn

if TYPE_CHECKING:
    from gpuplan.compiler.documents import Document


def help_on_file(document: Document) -> str:
    """Return help on a document that is none of gpuplan's, by its name and its fields; nothing if it is unknown."""
    folder, _, name = document.file.path.rpartition("/")
    data, stem = document.data, name.lower().rpartition(".")[0]
    if "mig-configs" in data:
        return _layouts(mapping(data["mig-configs"]))
    if "sharing" in data and not data.keys() - _OF_DEVICE_PLUGIN:
        return _sharing(mapping(data["sharing"]))
    if stem == "kustomization" or document.kind in ("Kustomization", "Component"):
        reads = f"gpuplan reads all of {folder}/ by itself"
        parts = "a Component goes to overlays/<cluster>/kustomize/<name>/"
        return f"delete it: {reads}, where a document changes that of its kind and name; {parts}"
    if stem in ("values", "chart") or data.keys() & _OF_CHART:
        values = as_line({"values": dict(data)})[1:-1]
        what = f"write `{values}`" if values and stem != "chart" else "write what it says as `values`"
        return f"{what} below `spec.gpuOperator` of the Cluster, and delete the file"
    return ""


_OF_DEVICE_PLUGIN: Final = {"version", "flags", "resources", "sharing"}
_OF_CHART: Final = {"operator", "toolkit", "migManager", "dcgmExporter", "nfd", "validator"}
"""Fields at the top of the values of the GPU Operator's chart, as no other file has them."""


def _layouts(configs: Mapping[str, object]) -> str:
    """Return the MigLayouts that a file of the MIG manager means, the first with its content."""
    name, entries = next(iter(configs.items()), ("...", []))
    division = divided(entries)
    spec = as_line(division)[1:-1] or f"{next(iter(division))}:"
    others = ", and one for each of the other entries" if configs.keys() - {name} else ""
    return f"write a MigLayout named `{name}` with `{spec}`{others} in place of this file"


def _sharing(sharing: Mapping[str, object]) -> str:
    """Return the sharing of a Pool that a file of the device plugin means."""
    kind = next((kind for kind in ("timeSlicing", "mps") if kind in sharing), "timeSlicing")
    shares = turn(TimeSlicing, "resources", mapping(sharing.get(kind))) if mapping(sharing.get(kind)) else {}
    replicas = shares.get("replicas", "...")
    return f"write `sharing: {{{kind}: {{replicas: {replicas}}}}}` in the Pool, and delete the file"
