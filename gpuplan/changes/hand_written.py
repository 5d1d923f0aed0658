"""What changes of documents do that hold Kubernetes objects: hand-written ones, and what is retained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpuplan.changes.kinds import class_of, class_of_stage
from gpuplan.changes.meaning import means_same
from gpuplan.changes.model import Change, ChangeClass, change_of, worst
from gpuplan.changes.wording import NOTHING_RUNS, REVERT
from gpuplan.manifests import Identity, Subject, identity_of
from gpuplan.planning.plan import Component, HandWritten, Plan, Retained, RetainedObject

_KUSTOMIZATIONS = frozenset(("Component", "Kustomization"))


def hand_written_changes(before: Plan, after: Plan) -> Iterator[Change]:
    """One for each object or patch that differs, and one for each Component that comes or goes.

    What comes of a patch is not known here: it is taken for the object that it changes.
    """
    yield from _components(before, after)
    old, new = (_by_name(plan.hand_written) for plan in (before, after))
    for key in sorted({*old, *new}):
        one, other = old.get(key, []), new.get(key, [])
        if [_content(item.body) for item in one] != [_content(item.body) for item in other]:
            yield _document(after, key, one, other)


_Key = tuple[str, Identity]


def _by_name(documents: Iterable[HandWritten]) -> dict[_Key, list[HandWritten]]:
    found: dict[_Key, list[HandWritten]] = {}
    for item in documents:
        found.setdefault((item.stage, identity_of(item.body)), []).append(item)
    return found


def _content(body: object) -> object:
    """A kustomization without the names of files beside it: what is in them is compared by itself."""
    if not isinstance(body, Mapping) or body.get("kind") not in _KUSTOMIZATIONS:
        return body
    resources = body.get("resources")
    remote = [item for item in resources if "://" in str(item)] if isinstance(resources, list) else resources
    return {**body, "resources": remote}


def _document(after: Plan, key: _Key, old: list[HandWritten], new: list[HandWritten]) -> Change:
    stage, identity = key
    verb = "is added" if not old else "is removed" if not new else "changes"
    if identity.kind in _KUSTOMIZATIONS:
        return _change(after, class_of_stage(stage), stage, f"{identity.kind} {verb}", (new or old)[0])
    return _change(
        after,
        worst(_classes(stage, identity, old, new)),
        stage,
        f"{identity} {verb}" if identity.kind else f"a patch {verb}",
        (new or old)[0],
    )


def _classes(stage: str, identity: Identity, old: list[HandWritten], new: list[HandWritten]) -> Iterator[ChangeClass]:
    yield ChangeClass.METADATA
    for index in range(max(len(old), len(new))):
        one, other = (items[index].body if index < len(items) else None for items in (old, new))
        if all(body is None or isinstance(body, Mapping) for body in (one, other)):
            yield class_of(stage, identity, _body(one), _body(other))
        elif one != other:
            yield class_of_stage(stage)


def _body(found: object) -> Mapping[str, object] | None:
    return found if isinstance(found, Mapping) else None


def _components(before: Plan, after: Plan) -> Iterator[Change]:
    old, new = ({item.folder: item for item in plan.components} for plan in (before, after))
    documents = {plan_stage.stage for plan in (before, after) for plan_stage in plan.hand_written}
    for folder in sorted({*old, *new}):
        one, other = old.get(folder), new.get(folder)
        place = other or one
        if place is not None and (one is None) != (other is None) and place.stage not in documents:
            yield _component(after, place, "is added" if one is None else "is removed")


def _component(after: Plan, place: Component, verb: str) -> Change:
    at = place.at if place.at is not None else after.cluster.at
    return Change(
        after.cluster.name,
        class_of_stage(place.stage),
        Subject("Component", place.folder),
        f"hand-written Component {verb}",
        "objects are patched otherwise",
        REVERT,
        at,
        folders=(f"{place.stage}/{place.part}" if place.part is not None else place.stage,),
    )


def _change(after: Plan, change_class: ChangeClass, stage: str, what: str, document: HandWritten) -> Change:
    return Change(
        after.cluster.name,
        change_class,
        Subject("Component", stage),
        f"hand-written {what}",
        f"objects of the folder {stage} differ",
        REVERT,
        document.at,
        folders=(stage,),
    )


# --- Retained ----------------------------------------------------------------------------------------------------


def retained_changes(before: Plan, after: Plan) -> Iterator[Change]:
    """Of definitions nothing but that they are there: what is in the operator's files is said of the operator."""
    old, new = ({item.name: item for item in plan.retained} for plan in (before, after))
    for name in sorted({*old, *new}):
        one, other = old.get(name), new.get(name)
        if not means_same(one and one.what, other and other.what):
            yield _retained(after, one, other)


def _retained(after: Plan, old: Retained | None, new: Retained | None) -> Change:
    place = new or old
    assert place is not None  # noqa: S101 - one of them is there, or there were no name
    verb = "is retained" if old is None else "is no longer retained" if new is None else "is retained otherwise"
    objects = [item.what for item in (old, new) if item is not None and isinstance(item.what, RetainedObject)]
    found = ChangeClass.PLUGIN_RESTART
    if objects:
        one, other = (
            item.what.spec.manifest if item is not None and isinstance(item.what, RetainedObject) else None
            for item in (old, new)
        )
        folders = sorted({item.folder for item in objects})
        found = worst(
            (ChangeClass.METADATA, *(class_of(folder, identity_of(other or one), one, other) for folder in folders))
        )
    return change_of(after, place, found, f"definition {verb}", _effect_on_needs(found, old, new), REVERT)


def _effect_on_needs(found: ChangeClass, old: Retained | None, new: Retained | None) -> str:
    """Only the cluster knows whether something still needs what goes."""
    if old is not None and new is None:
        return f"whatever still needs it finds it no more: it may go once {old.spec.until}"
    return NOTHING_RUNS if found.rank <= ChangeClass.PLUGIN_RESTART.rank else "whatever needs it finds something else"
