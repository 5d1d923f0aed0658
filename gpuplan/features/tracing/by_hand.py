"""What hand-written Components say of objects: values in patches, and objects of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.compiler.base.diagnostics import Origin, Path
from gpuplan.compiler.base.plain import text
from gpuplan.compiler.base.trees import leaves
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests import Identity, Manifest
from gpuplan.compiler.manifests.provenance import How
from gpuplan.compiler.planning.hand_files import Object
from gpuplan.compiler.planning.plan import Component, Plan
from gpuplan.features.components import Folder, Patched
from gpuplan.features.tracing.model import Source, TracedValue
from gpuplan.features.tracing.routes import spelled

_NAMES: tuple[Path, ...] = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))


class HandValue(NamedTuple):
    """A value that a hand-written file gives an object, and where it says so."""

    route: Path
    value: object
    at: Origin


def patches_of(plan: Plan, components: Sequence[Component], manifest: Manifest) -> tuple[HandValue, ...]:
    """What the Components of an object's folder change in it, as far as their patches say so by themselves."""
    if not components:
        return ()
    folder = Folder(manifest.folder, tuple(components), (manifest,))
    parts = Patched(plan, (folder,)).parts(folder, manifest.identity)
    return tuple(value for part in parts for value in _said(part) if value.route not in _NAMES)


def objects_of(plan: Plan) -> Iterator[tuple[Identity, tuple[HandValue, ...]]]:
    """The objects that Components add."""
    for item in Patched(plan, ()).files.objects:
        if not item.is_patch and item.name:
            identity = Identity(item.group, item.kind, text(item.metadata.get("namespace")), item.name)
            yield identity, tuple(_said(item))


def _said(item: Object) -> Iterator[HandValue]:
    """In the order of the file; an empty kind is one that a patch does not say."""
    found = [HandValue(route, value, item.place(*route)) for route, value in leaves(item.body)]
    found.sort(key=lambda value: value.at.locate().span.start.line)
    yield from (value for value in found if value.value or value.route != ("kind",))


def traced(plan: Plan, title: str, found: HandValue) -> TracedValue:
    """A value that a Component says, as one that comes from its file."""
    source = source_of(found)
    cluster, value = plan.cluster.name, found.at.locate().file.confidential.shown(found.value)
    return TracedValue(
        cluster, title, source.file, source.line, spelled(found.route), value, (source,), is_by_hand=True
    )


def source_of(found: HandValue) -> Source:
    location = found.at.locate()
    title = found.at.source.title
    return Source(How.COPIED, location.file.path, location.span.start.line, spelled(found.at.path), title)
