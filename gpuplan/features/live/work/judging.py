"""Whether a guess is right: work is written as gpuplan does, patched, and compared with what is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from gpuplan.compiler.admission.policies import known_rules
from gpuplan.compiler.backends.workloads import objects, render
from gpuplan.compiler.base.diagnostics import Location, Origin, Path as Route
from gpuplan.compiler.base.plain import mapping
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.checks.generated import PATCH_CHECKS, Generated, GeneratedWork
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.manifests import Identity, gvk_of, identity_of
from gpuplan.compiler.manifests.merging.applied import is_same
from gpuplan.compiler.manifests.merging.shape import Shape
from gpuplan.compiler.manifests.merging.strategic import DIRECTIVE
from gpuplan.compiler.manifests.shapes import shape_of, shape_of_pods
from gpuplan.compiler.manifests.templates import read_rows
from gpuplan.compiler.planning.kueue import ANY_TOPOLOGY, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, TOGETHER
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.resolve import resolve_workload
from gpuplan.compiler.planning.schedulers import kueue
from gpuplan.compiler.policy import models
from gpuplan.compiler.policy.models import API_VERSION
from gpuplan.features.live.dump import Item
from gpuplan.features.live.work.pods import (
    INFERENCE_SERVICE,
    MAKERS,
    Group,
    kind_of,
    main_container,
    template_of,
    variables_of,
)

Spec = dict[str, Any]


class Judged(Value):
    """A guess and what is known of it.

    ``route`` is the first place of ``obj`` that would be written in another way; None where all would be as it is.
    ``lacking`` is an object that would be written beside, and is not there. ``problem`` is why no work can be made of
    the guess at all. ``written`` are the objects that would be.
    """

    spec: Spec
    workload: Workload | None = None
    problem: str = ""
    obj: Item | None = None
    route: Route | None = None
    lacking: Identity | None = None
    written: tuple[Identity, ...] = ()

    @property
    def is_right(self) -> bool:
        return self.workload is not None and self.route is None and self.lacking is None

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """The nearness to what is there, to report the nearest guess."""
        return self.is_right, self.workload is not None, len(self.route or ())


class _Drafted(Value, eq=False):
    """Stands for a policy that is not there yet; whatever is said of it, is said at the object it came from."""

    obj: Item
    title: str

    def locate(self, path: Route, *, on_key: bool = False) -> Location:  # noqa: ARG002 - a `Source`
        return self.obj.at.locate()


def judge(plan: Plan, group: Group, maker: Item, guess: Spec) -> Judged:
    """Return the guess with the variables that it lacks, and with a patch of its pods for what no field says."""
    bare = _made(plan, group, maker, guess)
    if bare.workload is None:
        return bare
    written = _maker_of(plan, bare.workload, maker)
    ours = variables_of(main_container(template_of(Item(maker.at, written))))
    stated = variables_of(main_container(template_of(maker)))
    variables = {name: value for name, value in stated.items() if ours.get(name) != value}
    named = _made(plan, group, maker, {**guess, "env": variables}) if variables else bare
    if named.workload is None:
        return named
    found = _compared(plan, group, named)
    if found.is_right:
        return found
    if kind_of(maker) == INFERENCE_SERVICE or kind_of(maker) not in MAKERS:
        return found
    have = template_of(Item(maker.at, _maker_of(plan, named.workload, maker)))
    changes = patch_between(have, template_of(maker), shape_of_pods(plan.cluster.spec.kubernetes))
    patch = {field: part for field in ("metadata", "spec") if (part := changes.get(field))}
    if not patch:
        return found
    patched = _made(plan, group, maker, {**named.spec, "podPatch": patch})
    if patched.workload is None:
        return patched
    if problem := _refused(plan, patched.workload):
        return max(found, Judged(patched.spec, problem=problem), key=lambda guess: guess.rank)
    return max(found, _compared(plan, group, patched), key=lambda guess: guess.rank)


def _refused(plan: Plan, workload: Workload) -> str:
    """Why a policy may not have the patch, if it may not: what other fields say is none of its business."""
    made, bare = (render(replace(plan, workloads=(item,))) for item in (workload, workload.without_patch()))
    pairs = zip(made, bare, strict=True)
    work = tuple(GeneratedWork(workload, manifest, before) for manifest, before in pairs)
    found = run_all(PATCH_CHECKS, Generated(plan, work, frozenset(known_rules())))
    return next((item.finding.message for item in found if item.is_error), "")


# --- From a guess to what is written ---------------------------------------------------------------------------------


def _made(plan: Plan, group: Group, maker: Item, guess: Spec) -> Judged:
    """Return the work that a guess is, with its fields in their order and without defaults."""
    document = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": {"name": group.name}, "spec": guess}
    try:
        policy = models.Workload.model_validate(document)
    except ValidationError as error:
        route = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
        return Judged(guess, problem=f"no policy can say its `{'.'.join(map(str, route[1:]))}`")
    found: Spec = policy.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for kind in ("training", "batch"):
        if _EACH in guess.get(kind, {}) and _ALL in guess[kind]:
            found[kind] = {**found[kind], _ALL: guess[kind][_ALL]}
    spec = found
    policy = models.Workload.model_validate({**document, "spec": spec})
    at = Origin(_Drafted(maker, f"Workload {group.name}"), ("spec",))
    workload, diagnostics = resolve_workload(plan, at, policy)
    return Judged(spec, workload, "; ".join(found.finding.message for found in diagnostics))


_ALL, _EACH = "backoffLimit", "backoffLimitPerIndex"


def _maker_of(plan: Plan, workload: Workload, like: Item) -> Mapping[str, object]:
    """Return the object that gpuplan writes to make the pods, under its name in the dump.

    A digest in the name follows from the whole content.
    """
    for _, body, _ in objects(plan, workload):
        identity = identity_of(body)
        name = main_container(template_of(Item(like.at, body))).get("name")
        is_main = name == main_container(template_of(like)).get("name") and not identity.name.endswith("-canary")
        if (identity.group, identity.kind) == kind_of(like) and is_main:
            return mapping(_renamed(body, identity.name, like.name))
    return {}


def _renamed(value: Any, name: str, other: str) -> Any:  # noqa: ANN401 - any part of an object
    """Return a part of an object with another name of the object in its texts."""
    if isinstance(value, Mapping):
        return {key: _renamed(item, name, other) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, name, other) for item in value]
    return value.replace(name, other) if isinstance(value, str) and name != other else value


# --- Comparing -------------------------------------------------------------------------------------------------------


def _compared(plan: Plan, group: Group, made: Judged) -> Judged:
    """Return the first difference between what is there and what would be written."""
    if made.workload is None:
        return made
    by_identity = {item.identity: item for item in group.items}
    bodies = [body for _, body, _ in objects(plan, made.workload)]
    written = tuple(identity_of(body) for body in bodies)
    lacking: Identity | None = None
    for identity, body in zip(written, bodies, strict=True):
        item = by_identity.get(identity)
        if item is None:
            lacking = lacking or identity
        elif (route := difference(body, item.body, shape_of(gvk_of(body), plan.cluster.spec.kubernetes))) is not None:
            return Judged(made.spec, made.workload, obj=item, route=route, written=written)
    if lacking is None:
        return Judged(made.spec, made.workload, written=written)
    like = next((item for item in group.items if kind_of(item) == lacking[:2] and item.identity not in written), None)
    route = _NAME if like else None
    return Judged(made.spec, made.workload, obj=like, route=route, lacking=lacking, written=written)


_NAME: Final = ("metadata", "name")


def patch_between(have: object, want: object, shape: Shape, route: Route = ()) -> dict[str, Any]:
    """Return a patch that may make one mapping the other; only applying it shows whether it does."""
    there, wanted = mapping(have), mapping(want)
    patch: dict[str, Any] = {}
    for key, value in wanted.items():
        place = (*route, key)
        if key not in there:
            if not is_added(value, shape.field(key), place):
                patch[key] = value
        elif difference(there[key], value, shape.field(key), place) is not None:
            patch[key] = _change(there[key], value, shape.field(key), place)
    gone = (key for key, value in there.items() if key not in wanted and value not in ("", [], {}, None))
    patch |= dict.fromkeys(gone)
    return patch


def _change(have: object, want: object, shape: Shape, route: Route) -> object:
    if isinstance(have, Mapping) and isinstance(want, Mapping):
        return patch_between(have, want, shape, route)
    if not isinstance(have, list) or not isinstance(want, list) or not (key := shape.merge_key):
        return want
    by_key = {_named(item, key): item for item in have}
    found: list[object] = []  # the items that are other ones, or new, and those that go
    for index, item in enumerate(want):
        name = _named(item, key)
        if name not in by_key:
            found.append(item)
        elif change := patch_between(by_key[name], item, shape.items, (*route, index)):
            found.append({key: mapping(item).get(key), **change})
    names = [_named(item, key) for item in want]
    gone = (item for name, item in by_key.items() if name not in names)
    return [*found, *({DIRECTIVE: "delete", key: mapping(item).get(key)} for item in gone)]


def _named(entry: object, key: str) -> str:
    """Return the value that tells an item from others."""
    return str(mapping(entry).get(key))


# --- Likeness --------------------------------------------------------------------------------------------------------
# The API server and controllers add to what they are given. Whatever nobody has written counts as well, other than for
# drift: what the policies do not say would be lost in Git. The defaults that no schema says are those of
# `pkg/apis/{core,apps,batch}/v1/defaults.go` of kubernetes/kubernetes v1.34.

_ADDED: Final = Path(__file__).with_name("added.yaml")


def difference(written: object, live: object, shape: Shape, route: Route = ()) -> Route | None:
    """Where an object first differs from what would be written; None where it is the same."""
    if written == live:
        return None
    match written, live:
        case Mapping(), Mapping():
            for key, value in written.items():
                if (inner := difference(value, live.get(key, ABSENT), shape.field(key), (*route, key))) is not None:
                    return inner
            for name, value in live.items():
                key = str(name)
                if name not in written and not is_added(value, shape.field(key), (*route, key)):
                    return (*route, key)
            return None
        case list(), list() if len(written) == len(live):
            pairs = enumerate(zip(written, live, strict=True))
            found = (difference(one, other, shape.items, (*route, index)) for index, (one, other) in pairs)
            return next((item for item in found if item is not None), None)
        case _:
            return None if is_same(written, live, shape) else route


_EMPTY: Final[tuple[object, ...]] = ("", [], {}, None)
"""The values that the API server leaves out."""


def is_added(value: object, shape: Shape, route: Route) -> bool:
    """Whether what nobody has asked for at this place is a default, or a note of whoever applies or runs the object."""
    names = [part for part in route if isinstance(part, str)]
    parent, field = names[-2] if len(names) > 1 else "", names[-1]
    if parent in ("labels", "annotations") and field.startswith(_NOTES):
        return field not in _SAID_TO_KUEUE
    known = read_rows(_ADDED).get(parent, {}).get(field, ())
    if value in _EMPTY or known == "*" or value in known:
        return True
    if shape.default is not ABSENT and difference(shape.default, value, shape, route) is None:
        return True
    return isinstance(value, Mapping) and difference({}, value, shape, route) is None


_KUEUE: Final = "kueue.x-k8s.io/"
_SAID_TO_KUEUE: Final = (
    *(kueue.QUEUE_LABEL, kueue.PRIORITY_LABEL),
    *(ANY_TOPOLOGY, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, TOGETHER),
)
"""The labels and annotations of work for Kueue; all others that begin so are notes of Kueue on work."""

_NOTES: Final = (
    "kubectl.kubernetes.io/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "app.kubernetes.io/instance",
    "deployment.kubernetes.io/",
    "batch.kubernetes.io/",
    "controller-uid",
    "job-name",
    "pv.kubernetes.io/",
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "scaledobject.keda.sh/name",
    _KUEUE,
)
"""Beginnings of labels and annotations by which those that apply or run an object know it again."""
