"""The values that hand-written Components give to objects: by patches, or in objects that they add."""

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
    """Return the values that patches of the Components of an object's folder give it, as far as they say so alone."""
    if not components:
        return ()
    folder = Folder(manifest.folder, tuple(components), (manifest,))
    parts = Patched(plan, (folder,)).parts(folder, manifest.identity)
    return tuple(value for part in parts for value in _values(part) if value.route not in _NAMES)


def objects_of(plan: Plan) -> Iterator[tuple[Identity, tuple[HandValue, ...]]]:
    """Yield the objects that Components add, with their values."""
    for added in Patched(plan, ()).files.objects:
        if not added.is_patch and added.name:
            identity = Identity(added.group, added.kind, text(added.metadata.get("namespace")), added.name)
            yield identity, tuple(_values(added))


def _values(written: Object) -> Iterator[HandValue]:
    """Yield values in the order of the file. A kind that a patch does not say is empty, and no value."""
    values = [HandValue(route, value, written.place(*route)) for route, value in leaves(written.body)]
    values.sort(key=lambda value: value.at.locate().span.start.line)
    yield from (value for value in values if value.value or value.route != ("kind",))


def traced(plan: Plan, title: str, hand: HandValue) -> TracedValue:
    """Return a value of a Component, as one that comes from its file."""
    source = source_of(hand)
    cluster, value = plan.cluster.name, hand.at.locate().file.confidential.shown(hand.value)
    return TracedValue(cluster, title, source.file, source.line, spelled(hand.route), value, (source,), is_by_hand=True)


def source_of(hand: HandValue) -> Source:
    location, title = hand.at.locate(), hand.at.source.title
    return Source(How.COPIED, location.file.path, location.span.start.line, spelled(hand.at.path), title)
