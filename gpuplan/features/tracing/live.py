"""Objects of a cluster, as kubectl prints them, beside what is written for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, Final

from gpuplan.compiler.base.confidential import Confidential, confidential_in
from gpuplan.compiler.base.diagnostics import GpuplanError, Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.trees import ABSENT, leaves
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.documents.printed import Printed, is_json, objects_in, read_json, read_plain
from gpuplan.compiler.manifests import Identity, Manifest, gvk_of, identity_of, is_object
from gpuplan.compiler.manifests.merging.applied import find_live, is_same
from gpuplan.compiler.manifests.shapes import shape_of
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.tracing.engine import Written, trace_artifact, written_for
from gpuplan.features.tracing.forward import (
    HandValue,
    Places,
    objects_of,
    patches_of,
    text_of,
    traced_by_hand,
    values_of,
)
from gpuplan.features.tracing.lines import Lines, leads_to, spelled
from gpuplan.features.tracing.model import TracedValue, Unwritten

LIST: Final = "kubectl get KIND NAME -o yaml"

_Body = Mapping[str, Any]


class _Answer(NamedTuple):
    """The traced values of one object, and the others that are in it."""

    values: tuple[TracedValue, ...]
    unwritten: tuple[Unwritten, ...]


def trace_live(
    plans: Sequence[Plan], text: str, path: str
) -> tuple[tuple[TracedValue, ...], tuple[Unwritten, ...], tuple[str, ...]]:
    """Return the values of the objects in a text, for the cluster whose objects are most like them."""
    bodies = read_objects(text)
    answers = [(plan, *_of_plan(plan, bodies, path)) for plan in plans]
    if not answers:
        return (), (), ()
    ranks = [(known, -sum(value.differs for one in mine for value in one.values)) for _, known, mine in answers]
    best = [answer for answer, rank in zip(answers, ranks, strict=True) if rank == max(ranks)]
    _, known, objects = best[0]
    notes: tuple[str, ...] = ()
    if not known:
        notes = ("gpuplan writes none of these objects",)
    elif len(best) > 1:
        names = listing([plan.cluster.name for plan, _, _ in best], None)
        notes = (f"clusters {names} have the same: `--cluster` says which is meant",)
    values = tuple(value for one in objects for value in one.values)
    return values, tuple(part for one in objects for part in one.unwritten), notes


# --- Reading -----------------------------------------------------------------------------------------------------


def read_objects(text: str) -> tuple[_Body, ...]:
    """Return the objects of a text, those of lists one by one; trouble if there is anything else, or nothing."""
    bodies = [_as_json(part.data) for document in _documents(text) for part in objects_in(document)]
    if not bodies:
        raise GpuplanError("there is no object on stdin", f"pass what `{LIST}` prints")
    for body in bodies:
        if not is_object(body):  # its values may be secret
            keys = listing([str(key) for key in body]) if isinstance(body, Mapping) and body else ""
            kind = "a list" if isinstance(body, list) else "an item that is no mapping"
            outline = (f"what has {keys}" if keys else "an empty mapping") if isinstance(body, Mapping) else kind
            raise GpuplanError(f"{outline} is no object", f"pass what `{LIST}` prints")
    return tuple(body for body in bodies if isinstance(body, dict))


def _documents(text: str) -> Sequence[Printed]:
    if is_json(text):
        with suppress(ValueError):
            return read_json("stdin", text)
    documents, problems = read_plain("stdin", text)
    if problems:
        raise GpuplanError(f"cannot read stdin: {problems[0].shown.message}", f"pass what `{LIST}` prints")
    if not documents and text.strip():
        raise GpuplanError("stdin has no Kubernetes object", f"pass what `{LIST}` prints")
    return documents


_HALF: Final = regex("[\ud800-\udfff]")
"""One half of a character, which no text may hold."""


def _as_json(value: object) -> object:
    """Return a value that JSON and YAML can hold: other keys, numbers and characters become text."""
    match value:
        case Mapping():
            return {_HALF.sub("\ufffd", str(key)): _as_json(inner) for key, inner in value.items()}
        case list():
            return [_as_json(inner) for inner in value]
        case float() if not isfinite(value):
            return str(value)
        case None | bool() | int() | float():
            return value
        case _:
            return _HALF.sub("\ufffd", str(value))


# --- Comparing ---------------------------------------------------------------------------------------------------


def _of_plan(plan: Plan, bodies: Sequence[_Body], path: str) -> tuple[int, list[_Answer]]:
    """Return how many of the objects a cluster has, and the answer for each object."""
    wanted = {identity_of(body) for body in bodies}
    ours = {
        written.artifact.identity: written
        for written in written_for(plan)
        if isinstance(written.artifact, Manifest) and written.artifact.identity in wanted
    }
    by_hand = {identity: values for identity, values in objects_of(plan) if identity in wanted}
    places = Places()
    return len(wanted & {*ours, *by_hand}), [_of_object(plan, body, ours, by_hand, path, places) for body in bodies]


def _of_object(
    plan: Plan,
    body: _Body,
    ours: Mapping[Identity, Written],
    by_hand: Mapping[Identity, tuple[HandValue, ...]],
    path: str,
    places: Places,
) -> _Answer:
    identity = identity_of(body)
    title = str(identity._replace(group=""))
    hidden = confidential_in("", body)
    written, hand = ours.get(identity), by_hand.get(identity, ())
    traced_at: dict[Path, TracedValue] = {}
    if written is not None and isinstance(written.artifact, Manifest):
        traced_at = dict(_compared(plan, written, body, hidden, places))
        hand = patches_of(plan, written.components, written.artifact)
    elif not hand:
        return _Answer((), (Unwritten("", title, "gpuplan does not write this object", ()),))
    shape = shape_of(gvk_of(body), plan.cluster.spec.kubernetes)
    for value in hand:
        live = find_live(body, body, shape, value.route)
        said = traced_by_hand(plan, title, value)
        traced_at[value.route] = (
            said if is_same(value.value, live.live, live.shape) else _differing(said, hidden, live.live)
        )
    chosen = tuple(value for route, value in traced_at.items() if not path or leads_to(path, route))
    known = {route[:end] for route in traced_at for end in range(len(route) + 1)}  # a text may be traced by line
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for route, _ in leaves(body):
        if route not in known and (not path or leads_to(path, route)):
            groups[_group(route)].append(spelled(route))
    return _Answer(
        chosen, tuple(Unwritten(plan.cluster.name, title, group, tuple(routes)) for group, routes in groups.items())
    )


def _compared(
    plan: Plan, written: Written, body: _Body, hidden: Confidential, places: Places
) -> Iterator[tuple[Path, TracedValue]]:
    """Yield each value that is written, by its route in the live object."""
    artifact = trace_artifact(plan, written.path, written.artifact)
    lines = Lines(text_of(written.artifact))
    at_lines = [(leaf, lines.find(leaf.path).first) for leaf in artifact.leaves]
    shape = shape_of(gvk_of(body), plan.cluster.spec.kubernetes)
    ours = artifact.artifact.body if isinstance(artifact.artifact, Manifest) else {}
    for (leaf, _), value in zip(at_lines, values_of(artifact, at_lines, places), strict=True):
        live = find_live(ours, body, shape, leaf.path)
        yield live.route, value if is_same(leaf.value, live.live, live.shape) else _differing(value, hidden, live.live)


def _differing(value: TracedValue, hidden: Confidential, live: object) -> TracedValue:
    """Return a value with the one that the live object has in its place. Both may have stars."""
    return value._replace(live=hidden.shown(None if live is ABSENT else live), differs=True)


# --- What gpuplan does not write ---------------------------------------------------------------------------------

_OF_SERVER: Final = frozenset(("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"))
_NOTES: Final = ("kubectl.kubernetes.io/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "app.kubernetes.io/")
"""Beginnings of the labels and annotations by which those that apply an object know it again."""


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
