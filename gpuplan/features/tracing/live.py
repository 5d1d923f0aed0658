"""Objects of a cluster, as kubectl prints them, beside what is written for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, Final

from gpuplan.compiler.base.confidential import confidential_in
from gpuplan.compiler.base.diagnostics import GpuplanError, Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.documents.printed import Printed, is_json, objects_in, read_json, read_plain
from gpuplan.compiler.manifests import Identity, Manifest, gvk_of, identity_of, is_object
from gpuplan.compiler.manifests.merging.applied import find_live, is_same
from gpuplan.compiler.manifests.shapes import shape_of
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.tracing.by_hand import HandValue, objects_of, patches_of, traced
from gpuplan.features.tracing.engine import Written, trace_artifact, written_for
from gpuplan.features.tracing.forward import Places, text_of, values_of
from gpuplan.features.tracing.lines import Lines
from gpuplan.features.tracing.model import TracedValue, Unwritten
from gpuplan.features.tracing.routes import leads_to, spelled

LIST: Final = "kubectl get KIND NAME -o yaml"

_Body = Mapping[str, Any]


class _Found(NamedTuple):
    """What is said of one object: of its values, and of what else is in it."""

    values: tuple[TracedValue, ...]
    unwritten: tuple[Unwritten, ...]

    @property
    def differing(self) -> int:
        return sum(value.differs for value in self.values)


def trace_live(
    plans: Sequence[Plan], text: str, path: str
) -> tuple[tuple[TracedValue, ...], tuple[Unwritten, ...], tuple[str, ...]]:
    """The values of the objects in a text, as the cluster has them that they are most like."""
    bodies = read_objects(text)
    answers = [(plan, *_of_plan(plan, bodies, path)) for plan in plans]
    if not answers:
        return (), (), ()
    ranks = [(known, -sum(item.differing for item in found)) for _, known, found in answers]
    best = [index for index, rank in enumerate(ranks) if rank == max(ranks)]
    _, known, found = answers[best[0]]
    names = [answers[index][0].cluster.name for index in best]
    notes = (
        (f"clusters {listing(names, None)} have the same: `--cluster` says which is meant",) if len(best) > 1 else ()
    )
    if not known:
        notes = ("gpuplan writes none of these objects",)
    values = tuple(value for item in found for value in item.values)
    return values, tuple(part for item in found for part in item.unwritten), notes


# --- Reading -----------------------------------------------------------------------------------------------------


def read_objects(text: str) -> tuple[_Body, ...]:
    """The objects of a text, those of lists one by one; trouble where there is anything else, or nothing."""
    bodies = [_as_json(item.data) for document in _documents(text) for item in objects_in(document)]
    if not bodies:
        raise GpuplanError("there is no object on stdin", f"pass what `{LIST}` prints")
    for body in bodies:
        if not is_object(body):
            raise GpuplanError(f"{_outline(body)} is no object", f"pass what `{LIST}` prints")
    return tuple(body for body in bodies if isinstance(body, dict))


def _documents(text: str) -> Sequence[Printed]:
    if is_json(text):
        with suppress(ValueError):
            return read_json("stdin", text)
    documents, problems = read_plain("stdin", text)
    if problems:
        raise GpuplanError(
            f"what is on stdin cannot be read: {problems[0].shown.message}", f"pass what `{LIST}` prints"
        )
    if not documents and text.strip():
        raise GpuplanError("what is on stdin is no object", f"pass what `{LIST}` prints")
    return documents


def _outline(body: object) -> str:
    """What it is, without its values: some are secret."""
    if isinstance(body, Mapping):
        return f"what has {listing([str(key) for key in body])}" if body else "an empty mapping"
    return "a list" if isinstance(body, list) else "an item that is no mapping"


_HALF: Final = regex("[\ud800-\udfff]")
"""One half of a character, which no text may hold."""


def _as_json(value: object) -> object:
    """What can be written again as JSON and as YAML: other keys, numbers and characters than those are text."""
    match value:
        case Mapping():
            return {_HALF.sub("\ufffd", str(key)): _as_json(item) for key, item in value.items()}
        case list():
            return [_as_json(item) for item in value]
        case float() if not isfinite(value):
            return str(value)
        case None | bool() | int() | float():
            return value
        case _:
            return _HALF.sub("\ufffd", str(value))


# --- Comparing ---------------------------------------------------------------------------------------------------


def _of_plan(plan: Plan, bodies: Sequence[_Body], path: str) -> tuple[int, list[_Found]]:
    """How many of the objects a cluster has, and what is said of each."""
    wanted = {identity_of(body) for body in bodies}
    ours: dict[Identity, Written] = {}
    for item in written_for(plan):
        if isinstance(item.artifact, Manifest) and item.artifact.identity in wanted:
            ours[item.artifact.identity] = item
    by_hand = {identity: values for identity, values in objects_of(plan) if identity in wanted}
    places = Places()
    found = [_of_object(plan, body, ours, by_hand, path, places) for body in bodies]
    return len(wanted & {*ours, *by_hand}), found


def _of_object(
    plan: Plan,
    body: _Body,
    ours: Mapping[Identity, Written],
    by_hand: Mapping[Identity, tuple[HandValue, ...]],
    path: str,
    places: Places,
) -> _Found:
    identity = identity_of(body)
    title = str(identity._replace(group=""))
    item = ours.get(identity)
    told: dict[Path, TracedValue] = {}
    if item is None or not isinstance(item.artifact, Manifest):
        hand = by_hand.get(identity, ())
        if not hand:
            return _Found((), (Unwritten("", title, "gpuplan does not write this object", ()),))
    else:
        told = dict(_compared(plan, item, body, places))
        hand = patches_of(plan, item.components, item.artifact)
    for value in hand:
        told |= _by_hand(plan, title, body, value)
    chosen = tuple(value for route, value in told.items() if not path or leads_to(path, route))
    known = {route[:end] for route in told for end in range(len(route) + 1)}  # a text may be told line by line
    rest = [route for route in _routes(body, ()) if route not in known and (not path or leads_to(path, route))]
    return _Found(chosen, tuple(_summed_up(plan.cluster.name, title, rest)))


def _compared(plan: Plan, item: Written, body: _Body, places: Places) -> Iterator[tuple[Path, TracedValue]]:
    """What is written, by where it is in the live object."""
    found = trace_artifact(plan, item.path, item.artifact)
    lines = Lines(text_of(item.artifact))
    leaves = [(leaf, lines.find(leaf.path).first) for leaf in found.leaves]
    values = values_of(found, leaves, places)
    shape = shape_of(gvk_of(body), plan.cluster.spec.kubernetes)
    hidden = confidential_in("", body)
    written = found.artifact.body if isinstance(found.artifact, Manifest) else {}
    for (leaf, _), value in zip(leaves, values, strict=True):
        there = find_live(written, body, shape, leaf.path)
        is_it = is_same(leaf.value, there.live, there.shape)
        yield there.route, value if is_it else value._replace(live=hidden.shown(_plain(there.live)), differs=True)


def _by_hand(plan: Plan, title: str, body: _Body, value: HandValue) -> dict[Path, TracedValue]:
    """What a Component says: the live object has it, or something else in its place; both may have stars."""
    shape = shape_of(gvk_of(body), plan.cluster.spec.kubernetes)
    there = find_live(body, body, shape, value.route)
    said = traced(plan, title, value)
    if is_same(value.value, there.live, there.shape):
        return {value.route: said}
    live = confidential_in("", body).shown(_plain(there.live))
    return {value.route: said._replace(live=live, differs=True)}


def _plain(live: object) -> object:
    return None if live is ABSENT else live


# --- What gpuplan does not write ---------------------------------------------------------------------------------

_OF_SERVER: Final = frozenset(("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"))
_NOTES: Final = ("kubectl.kubernetes.io/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "app.kubernetes.io/")
"""Beginnings of the labels and annotations by which those that apply an object know it again."""


def _summed_up(cluster: str, title: str, routes: Iterable[Path]) -> Iterator[Unwritten]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for route in routes:
        groups[_group(route)].append(spelled(route))
    for what, paths in groups.items():
        yield Unwritten(cluster, title, what, tuple(paths))


def _group(route: Path) -> str:
    match route:
        case ("status", *_):
            return "status"
        case ("metadata", "managedFields", *_):
            return "managedFields"
        case ("metadata", str(name)) if name in _OF_SERVER:
            return "set by the API server"
        case ("metadata", "labels" | "annotations", str(key)) if key.startswith(_NOTES):
            return "notes of what applies it"
        case _:
            return "defaults of the API server, or set by others"


def _routes(value: object, route: Path) -> Iterator[Path]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _routes(item, (*route, str(key)))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _routes(item, (*route, index))
    else:
        yield route
