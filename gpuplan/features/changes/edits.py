"""Changes of the policies that a step is: which files, and what they say after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from gpuplan.compiler.base.plain import section
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents import Document, Layer, find_folders
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.pipeline import writing
from gpuplan.compiler.pipeline.editing import with_fields
from gpuplan.compiler.pipeline.loading import OVERLAYS, load
from gpuplan.compiler.planning.plan import DEVICE_PLUGIN_CONFIG_LABEL, Plan, Pool


class Action(StrEnum):
    """The action on a file."""

    WRITE = "write"
    """It has this text and no other."""
    REMOVE = "remove"
    """It goes."""
    CHANGE = "change"
    """It has more than this; this part of it becomes the text."""


class Edit(NamedTuple):
    """The edit of a file for a step. ``path`` is relative to the repository's root.

    With a change, ``whole`` is what the file says after it. It is None where only a person can make the change.
    """

    path: str
    action: Action
    text: str
    whole: str | None = None

    @property
    def is_by_hand(self) -> bool:
        return self.action is Action.CHANGE and self.whole is None


def write(root: Path, edits: Sequence[Edit]) -> None:
    """Make the edits of a step: all of them or none. None may be by hand."""
    if by_hand := [edit.path for edit in edits if edit.is_by_hand]:
        raise ValueError(by_hand)
    texts = {edit.path: edit.text if edit.action is Action.WRITE else edit.whole for edit in edits}
    writing.write_all(root, texts)


def patch_of(pool: Pool, layer: Layer | None, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a layer has to say so that the pool is as wanted: all of it where that defines the pool."""
    base = document_of(pool).layers[0]
    return writing.merge_patch({} if layer is base else parts_of(base.data), wanted)


def changed(pool: Pool, layer: Layer, wanted: Mapping[str, Any]) -> Iterator[Edit]:
    """Yield the edit that makes a layer say this, if it does not."""
    patch, now = patch_of(pool, layer, wanted), parts_of(layer.data)
    if patch != now:
        fields: dict[tuple[str | int, ...], Any] = {
            ("spec", key): patch.get(key) for key in PARTS if patch.get(key) != now.get(key)
        }
        document = document_of(pool)
        whole = with_fields(document, document.layers.index(layer), fields)
        yield Edit(layer.file.path, Action.CHANGE, snippet(pool, layer, patch), whole)


def snippet(pool: Pool, layer: Layer | None, patch: Mapping[str, Any]) -> str:
    """Return the document of a layer for people to read, and which of its fields go."""
    gone = [key for key in (parts_of(layer.data) if layer else ()) if key not in patch]
    notes = "".join(f"  # and no `{key}` any more\n" for key in gone)
    return to_yaml(writing.document("Pool", pool.name, patch)) + notes


def settled(root: Path, plan: Plan, pool: Pool, wanted: Mapping[str, Any]) -> Iterator[Edit]:
    """Yield the edit of the policy that people read.

    That is what defines the pool or, where other clusters have it, too, the overlay's `pools.yaml`.
    """
    defining = document_of(pool).layers[0]
    if _is_of_one_cluster(root, plan, pool):
        yield from changed(pool, defining, wanted)
        return
    path = f"{OVERLAYS}/{plan.cluster.name}/pools.yaml"
    if not (patch := patch_of(pool, None, wanted)):
        return
    text = to_yaml(writing.document("Pool", pool.name, patch))
    if (before := writing.read(root, path)) is None:
        yield Edit(path, Action.WRITE, text)
    else:
        yield Edit(path, Action.CHANGE, text, f"{before.decode().rstrip()}\n---\n{text}")


def with_key(root: Path, plan: Plan, pool: Pool) -> tuple[Edit, ...]:
    """Return the edits with which the pool keeps the key of the device plugin's file that its nodes have."""
    data = document_of(pool).data
    names = {**section(data["spec"], "names"), "devicePluginConfig": pool.labels[DEVICE_PLUGIN_CONFIG_LABEL]}
    wanted = {**parts_of(data), "names": names}
    layer = layer_of(plan, pool)
    return (*(settled(root, plan, pool, wanted) if layer is None else changed(pool, layer, wanted)),)


def _is_of_one_cluster(root: Path, plan: Plan, pool: Pool) -> bool:
    if find_folders(root, OVERLAYS) == (plan.cluster.name,):
        return True
    defining = document_of(pool).layers[0]
    having = [name for name, documents in load(root).documents.items() if any(defining in d.layers for d in documents)]
    return having == [plan.cluster.name]


def layer_of(plan: Plan, pool: Pool) -> Layer | None:
    """Return the layer of the cluster's own overlay for the pool, or None."""
    layer = document_of(pool).layers[-1]
    return layer if layer.file.path.startswith(f"{OVERLAYS}/{plan.cluster.name}/") else None


def document_of(pool: Pool) -> Document:
    """Return what a pool is read from."""
    if not isinstance(pool.at.source, Document):
        raise TypeError(pool.at.source)
    return pool.at.source


PARTS: Final = ("sharing", "rollout", "names")
"""The fields of a pool that a rollout changes."""


def parts_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return these fields of a document's data."""
    spec = data.get("spec") or {}
    return {key: spec[key] for key in PARTS if key in spec}
