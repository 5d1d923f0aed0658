"""What of a guess is right: the work is written as gpuplan would, and compared with what is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from gpuplan.compiler.admission import known_rules
from gpuplan.compiler.backends.workloads import objects, render
from gpuplan.compiler.base.diagnostics import Location, Origin, Path
from gpuplan.compiler.base.plain import mapping
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.checks.generated import PATCH_CHECKS, Generated, GeneratedWork
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.manifests import Gvk, Identity, identity_of
from gpuplan.compiler.manifests.merging.shape import Shape
from gpuplan.compiler.manifests.shapes import shape_of, shape_of_pods
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.resolve import resolve_workload
from gpuplan.compiler.policy import models
from gpuplan.compiler.policy.models import API_VERSION
from gpuplan.features.live.dump import Item
from gpuplan.features.live.work.groups import INFERENCE_SERVICE, MAKERS, Group, kind_of, main_container, template_of
from gpuplan.features.live.work.likeness import difference
from gpuplan.features.live.work.patching import patch_between
from gpuplan.features.live.work.pods import said

Spec = dict[str, Any]


class Judged(Value):
    """A guess and what is known of it.

    ``route`` is the first place of ``item`` that would be written in another way; None where all would be as it is.
    ``lacking`` is an object that would be written beside, and is not there. ``problem`` is why no work can be made of
    the guess at all. ``written`` are the objects that would be.
    """

    spec: Spec
    workload: Workload | None = None
    problem: str = ""
    item: Item | None = None
    route: Path | None = None
    lacking: Identity | None = None
    written: tuple[Identity, ...] = ()

    @property
    def is_right(self) -> bool:
        return self.workload is not None and self.route is None and self.lacking is None

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """How near it is, to tell of the nearest."""
        return self.is_right, self.workload is not None, len(self.route or ())


class _Drafted(Value, eq=False):
    """Stands for a policy that is not there yet; whatever is said of it, is said at the object it came from."""

    item: Item
    title: str

    def locate(self, path: Path, *, on_key: bool = False) -> Location:  # noqa: ARG002 - a `Source`
        return self.item.at.locate()


def judge(plan: Plan, group: Group, maker: Item, guess: Spec) -> Judged:
    """The guess with the variables that it lacks, and with a patch of its pods for what no field says."""
    bare = _made(plan, group, maker, guess)
    if bare.workload is None:
        return bare
    variables = _variables(maker, _maker_of(plan, bare.workload, maker))
    named = _made(plan, group, maker, {**guess, "env": variables}) if variables else bare
    if named.workload is None:
        return named
    found = _compared(plan, group, named)
    if found.is_right:
        return found
    patch = _patch(plan, maker, _maker_of(plan, named.workload, maker))
    if not patch:
        return found
    patched = _made(plan, group, maker, {**named.spec, "podPatch": patch})
    if patched.workload is None:
        return patched
    if problem := _refused(plan, patched.workload):
        return max(found, Judged(patched.spec, problem=problem), key=lambda item: item.rank)
    return max(found, _compared(plan, group, patched), key=lambda item: item.rank)


def _refused(plan: Plan, workload: Workload) -> str:
    """Why a policy may not have the patch, if it may not: what other fields say is none of its business."""
    made, bare = (render(replace(plan, workloads=(item,))) for item in (workload, workload.without_patch()))
    pairs = zip(made, bare, strict=True)
    work = tuple(GeneratedWork(workload, manifest, before) for manifest, before in pairs)
    found = run_all(PATCH_CHECKS, Generated(plan, work, frozenset(known_rules())))
    return next((item.finding.message for item in found if item.is_error), "")


# --- From a guess to what is written ---------------------------------------------------------------------------------


def _made(plan: Plan, group: Group, maker: Item, guess: Spec) -> Judged:
    """The work that a guess is, with its fields in their order and without defaults."""
    document = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": {"name": group.name}, "spec": guess}
    try:
        policy = models.Workload.model_validate(document)
    except ValidationError as error:
        route = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
        return Judged(guess, problem=f"no policy can say its `{'.'.join(map(str, route[1:]))}`")
    spec = _tidy(policy.spec, guess)
    policy = models.Workload.model_validate({**document, "spec": spec})
    at = Origin(_Drafted(maker, f"Workload {group.name}"), ("spec",))
    workload, diagnostics = resolve_workload(plan, at, policy)
    return Judged(spec, workload, "; ".join(found.finding.message for found in diagnostics))


def _tidy(model: BaseModel, guess: Spec) -> Spec:
    """The same without what is so anyway; but a number of tries counts for being said."""
    found: Spec = model.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for kind in ("training", "batch"):
        if _EACH in guess.get(kind, {}) and _ALL in guess[kind]:
            found[kind] = {**found[kind], _ALL: guess[kind][_ALL]}
    return found


_ALL, _EACH = "backoffLimit", "backoffLimitPerIndex"


def _maker_of(plan: Plan, workload: Workload, like: Item) -> Mapping[str, object]:
    """What would make its pods, under the name that it has in the dump: a digest follows from all that it is."""
    for _, body, _ in objects(plan, workload):
        identity = identity_of(body)
        if (identity.group, identity.kind) == kind_of(like) and _is_maker(like, body):
            return mapping(_renamed(body, identity.name, like.name))
    return {}


def _is_maker(like: Item, body: Mapping[str, Any]) -> bool:
    found = main_container(template_of(Item(like.at, body))).get("name")
    return found == main_container(template_of(like)).get("name") and not identity_of(body).name.endswith("-canary")


def _renamed(value: Any, name: str, other: str) -> Any:  # noqa: ANN401 - any part of an object
    """A part of an object with another name of the object in its texts."""
    if isinstance(value, Mapping):
        return {key: _renamed(item, name, other) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, name, other) for item in value]
    return value.replace(name, other) if isinstance(value, str) and name != other else value


def _variables(maker: Item, written: Mapping[str, object]) -> Spec:
    """Those that somebody has said: gpuplan would not write them by itself, or in another way."""
    ours = said(main_container(template_of(Item(maker.at, written))))
    found = said(main_container(template_of(maker)))
    return {name: value for name, value in found.items() if ours.get(name) != value}


def _patch(plan: Plan, maker: Item, written: Mapping[str, object]) -> Spec:
    """What makes the pods that would be written those that are there."""
    shape = shape_of_pods(plan.cluster.spec.kubernetes)
    have, want = template_of(Item(maker.at, written)), template_of(maker)
    if kind_of(maker) == INFERENCE_SERVICE or kind_of(maker) not in MAKERS:
        return {}
    found = patch_between(have, want, shape)
    return {field: part for field in ("metadata", "spec") if (part := found.get(field))}


# --- Comparing -------------------------------------------------------------------------------------------------------


def _compared(plan: Plan, group: Group, made: Judged) -> Judged:
    """The first difference between what is there and what would be written."""
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
        elif (route := difference(body, item.body, _shape(plan, body))) is not None:
            return Judged(made.spec, made.workload, item=item, route=route, written=written)
    if lacking is None:
        return Judged(made.spec, made.workload, written=written)
    like = _like(lacking, group.items, written)
    route = _NAME if like else None
    return Judged(made.spec, made.workload, item=like, route=route, lacking=lacking, written=written)


def _shape(plan: Plan, body: Mapping[str, Any]) -> Shape:
    group, _, version = body["apiVersion"].rpartition("/")
    return shape_of(Gvk(group, version, body["kind"]), plan.cluster.spec.kubernetes)


_NAME: Final = ("metadata", "name")


def _like(identity: Identity, items: Iterable[Item], written: tuple[Identity, ...]) -> Item | None:
    """What has another name in the place of an object, if anything has."""
    return next((item for item in items if kind_of(item) == identity[:2] and item.identity not in written), None)
