"""The effects of changes of documents that no pool or tenant tells of: Kubernetes objects, unused layouts, GPU models.

That no pool uses a layout is said of policies. Nodes name the entry that they had until their label moves, which is as
late as somebody approves it, and the MIG manager fails on a node whose label names no entry of its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from gpuplan.compiler.backends.gpu_operator import mig_parted
from gpuplan.compiler.backends.partitions import kept_name
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.disturbance import ChangeClass, worst
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.manifests import Identity, Subject, identity_of
from gpuplan.compiler.planning.layouts import content_hash
from gpuplan.compiler.planning.node_patterns import find_other_name, find_pattern, has_node
from gpuplan.compiler.planning.plan import (
    MIG_CONFIG_LABEL,
    Component,
    HandWritten,
    Layout,
    Mig,
    Nodes,
    Plan,
    Pool,
    Retained,
    RetainedDevicePluginConfig,
    RetainedLayout,
    RetainedNodes,
    RetainedObject,
)
from gpuplan.compiler.policy.parse import document_of
from gpuplan.compiler.policy.walking import changed_fields
from gpuplan.features.changes.kinds import Pair, class_of, class_of_departure, class_of_stage
from gpuplan.features.changes.model import NOTHING_RUNS, Change, division, from_to, names, of, who_names
from gpuplan.features.changes.nodes import impact, patterns_of
from gpuplan.features.changes.step import Step, changes_of, means_same, successors

_RESTARTS = f"mig-manager restarts with another file; {NOTHING_RUNS}"
"""It reads its file when it starts, so an entry more or less makes it start again."""


def layout_changes(step: Step) -> Iterator[Change]:
    return changes_of(step, successors(step.before.layouts, step.after.layouts, _is_alike), _added, _removed, _changed)


def _added(step: Step, new: Layout) -> Iterator[Change]:
    yield Change(*of(step.after, new), ChangeClass.PLUGIN_RESTART, "layout is added", _RESTARTS)


def _removed(step: Step, old: Layout) -> Iterator[Change]:
    if not _is_used(step.before, old):
        yield Change(*of(step.before, old), *_judged(step, old, "unused layout is removed"))


def _changed(step: Step, old: Layout, new: Layout) -> Iterator[Change]:
    if old.name != new.name:
        what = f"layout `{old.name}` is called `{new.name}`"
    elif _is_alike(old, new):
        what = f"the entry of an unused layout is called `{new.config_name}`"
    else:
        what = f"unused layout is edited: {from_to(division(old), division(new))}"
    is_same = (old.name, old.config_name) == (new.name, new.config_name) and _is_alike(old, new)
    if not _is_used(step.before, old) and not is_same:
        yield Change(*of(step.after, new), *_judged(step, old, what))


def _is_alike(one: Layout, other: Layout) -> bool:
    return one.gpu.id == other.gpu.id and means_same(one.entries, other.entries)


def _is_used(plan: Plan, layout: Layout) -> bool:
    sharings = (part.sharing for part in plan.parts)
    return any(isinstance(item, Mig) and item.layout.config_name == layout.config_name for item in sharings)


def _judged(step: Step, was: Layout, words: str) -> tuple[ChangeClass, str, str]:
    """The class, and what comes of it that the entry of a layout may go."""
    name = was.config_name
    by = step.naming(MIG_CONFIG_LABEL, name)
    is_kept = name in mig_parted.configuration(step.after)["mig-configs"]
    if by == () or is_kept or not step.before.may_be_divided_by(was):
        return ChangeClass.PLUGIN_RESTART, words, _RESTARTS
    found = (
        f"`kubectl get nodes -l {MIG_CONFIG_LABEL}={name}` must list none (`--nodes FILE` shows it)"
        if by is None
        else who_names(by)
    )
    effect = f"`{name}` vanishes, and a node that still names it fails as its mig-manager restarts: {found}"
    return ChangeClass.TWO_STEP, words, effect


def gpu_changes(step: Step) -> Iterator[Change]:
    """Yield the changes of the platform's own GPU models. Changes of pools and of tenants say the units."""
    for old, new in successors(step.before.gpus, step.after.gpus):
        if old is not None and new is None:
            yield Change(*of(step.before, old), ChangeClass.METADATA, "GPU model is described no more")
        elif old is None and new is not None:
            yield Change(*of(step.after, new), ChangeClass.METADATA, "GPU model is described")
        elif old and new and (fields := dict.fromkeys(change.words for change in changed_fields(old.spec, new.spec))):
            what = f"GPU model is described otherwise: {joined([*fields])}"
            yield Change(*of(step.after, new), ChangeClass.METADATA, what)


_KUSTOMIZATIONS = frozenset(("Component", "Kustomization"))


def hand_written_changes(step: Step) -> Iterator[Change]:
    """One for each object or patch that differs, and one for each Component that comes or goes.

    What comes of a patch is not known here: it is taken for the object that it changes.
    """
    yield from _components(step)
    old, new = (_by_name(plan.hand_written) for plan in (step.before, step.after))
    for key in {**old, **new}:
        one, other = old.get(key, []), new.get(key, [])
        if [_content(item.body) for item in one] != [_content(item.body) for item in other]:
            stage, identity = key
            verb = "is added" if not one else "is removed" if not other else "changes"
            is_kustomization = identity.kind in _KUSTOMIZATIONS
            what = identity.kind if is_kustomization else str(identity) if identity.kind else "a patch"
            at = (other or one)[0].at
            document = document_of(at)
            components = (*step.before.components, *step.after.components)
            found = (item for item in components if document and document.file.path.startswith(f"{item.folder}/"))
            folder = next((folder_of(item) for item in found if item.part is not None), stage)
            yield _change(
                step,
                stage,
                class_of_stage(stage) if is_kustomization else worst(_classes(stage, identity, one, other)),
                f"hand-written {what} {verb}",
                f"objects of the folder {folder} differ",
                folder,
                at,
            )


_Key = tuple[str, Identity]


def _by_name(documents: Iterable[HandWritten]) -> Mapping[_Key, Sequence[HandWritten]]:
    return grouped(((item.stage, identity_of(item.body)), item) for item in documents)


def _content(body: object) -> object:
    """A kustomization without the names of files beside it: what is in them is compared by itself."""
    if not isinstance(body, Mapping) or str(body.get("kind")) not in _KUSTOMIZATIONS:
        return body
    resources = body.get("resources")
    remote = [item for item in resources if "://" in str(item)] if isinstance(resources, list) else resources
    return {**body, "resources": remote}


def folder_of(component: Component) -> str:
    """Return the folder that a Component is synced with. The policies may write nothing in that folder."""
    return component.stage if component.part is None else f"{component.stage}/{component.part}"


def _change(
    step: Step, name: str, change_class: ChangeClass, words: str, effect: str, folder: str, at: Origin | None
) -> Change:
    cluster, _, place = of(step.after, step.after.cluster, at)
    return Change(cluster, Subject("Component", name), place, change_class, words, effect, folders=(folder,))


def _classes(
    stage: str, identity: Identity, old: Sequence[HandWritten], new: Sequence[HandWritten]
) -> Iterator[ChangeClass]:
    yield ChangeClass.METADATA
    for one, other in zip_longest([item.body for item in old], [item.body for item in new]):
        if isinstance(one, Mapping | None) and isinstance(other, Mapping | None):
            yield class_of(Pair(stage, identity, one, other))
        elif one != other:
            yield class_of_stage(stage)


def _components(step: Step) -> Iterator[Change]:
    plans = step.before, step.after
    documents = {item.stage for plan in plans for item in plan.hand_written}
    old, new = ({item.folder: item for item in plan.components} for plan in plans)
    for folder, place in {**old, **new}.items():
        if (folder in old) != (folder in new) and place.stage not in documents:
            what = f"hand-written Component {'is added' if folder in new else 'is removed'}"
            found = class_of_stage(place.stage)
            yield _change(step, folder, found, what, "objects are patched otherwise", folder_of(place), place.at)


# --- Retained ----------------------------------------------------------------------------------------------------


def retained_changes(step: Step) -> Iterator[Change]:
    """Yield the changes of retained documents. The operator's changes say the content of the operator's files."""
    for old, new in successors(step.before.retained, step.after.retained):
        place = new or old
        if place is not None and not means_same(old and old.what, new and new.what):
            found = _class_of_retained(step, old, new)
            verb = "is retained" if old is None else "is retained otherwise" if new else "is no longer retained"
            if isinstance(place.what, RetainedNodes):
                yield _kept_nodes(step, old, new, place, place.what)
                continue
            if _is_divided_otherwise(old, new):
                # mig-manager applies what a node's label names when it starts, and starts with each new file.
                yield Change(
                    *of(step.after, place),
                    ChangeClass.REPARTITION,
                    "definition is retained otherwise, under the same name",
                    "mig-manager divides the GPUs of each node again whose label names it, and drains none: pods that "
                    "hold them must end first",
                    "reverting divides the same nodes again, which needs them drained again",
                    needs_drain=True,
                )
                continue
            is_quiet = found.rank <= ChangeClass.PLUGIN_RESTART.rank
            effect = NOTHING_RUNS if is_quiet else "its users find another definition"
            if old is not None and new is None:  # only the cluster knows whether something still needs it
                needing = step.needing(old)
                effect = f"it is gone while {who_names(needing)}" if needing else f"no node names it; {NOTHING_RUNS}"
                if needing is None:
                    effect = f"objects that still need the definition do not find it: delete it once {old.spec.until}"
                found = worst((found, ChangeClass.TWO_STEP)) if needing else found
            yield Change(*of(step.after, place), found, f"definition {verb}", effect)


def _is_divided_otherwise(old: Retained | None, new: Retained | None) -> bool:
    """Whether a name means another division than before, as one can that somebody else gave."""
    one, other = (item.what if item is not None else None for item in (old, new))
    if not isinstance(one, RetainedLayout) or not isinstance(other, RetainedLayout):
        return False
    names_same = one.spec.config_name == other.spec.config_name
    return names_same and content_hash(one.layout.entries) != content_hash(other.layout.entries)


def _kept_nodes(step: Step, old: Retained | None, new: Retained | None, place: Retained, kept: RetainedNodes) -> Change:
    """Nodes on their way to another pool; neither Flux nor `kubectl apply` deletes a rule."""
    nodes, pool, until = kept.nodes, kept.spec.pool, f"the document may go once {place.spec.until}"
    needing = step.needing(place) if new is None else ()
    who = names(nodes.names) if nodes.names else f"nodes that match `{nodes.name_pattern}`"
    what = f"{who} {'keeps' if len(nodes.names) == 1 else 'keep'} labels of pool `{pool}`"
    if new is None:
        rules = kept_name(step.before.cluster, place.name)
        what += " no longer"
        effect = "each of them has the label of another pool by now"
        if needing is None:
            effect = f"where no other pool's rule labels them yet, they lose their labels: {until}"
        elif needing:
            have = "has" if len(needing) == 1 else "have"
            effect = f"{names(needing)} {have} no other pool's label yet, and no labels then"
        effect += (
            "; Argo CD deletes the rule with a sync that prunes, when somebody confirms it; with Flux or kubectl run "
        )
        effect += f"`kubectl delete nodefeaturerule {rules}`"
    else:
        what += "" if old is None else " otherwise"
        effect = f"they have these until the rule of another pool says more, and no taints in between; {until}"
    is_lost = bool(needing) or (needing is None and not _are_in_pools(kept.nodes, step.after.pools))
    found = class_of_departure(kept.spec.labels) if is_lost else ChangeClass.ADMISSION
    return Change(*of(step.after, place), found, what, effect, nodes=impact(nodes) if nodes.names else None)


def _are_in_pools(nodes: Nodes, pools: Sequence[Pool]) -> bool:
    if nodes.names:
        return all(any(has_node(pool.nodes, name) for pool in pools) for name in nodes.names)
    pattern = find_pattern(nodes.name_pattern)
    return pattern is None or find_other_name(pattern, patterns_of(pools)) is None


def _class_of_retained(step: Step, old: Retained | None, new: Retained | None) -> ChangeClass:
    objects = [item.what if item and isinstance(item.what, RetainedObject) else None for item in (old, new)]
    folders = {item.folder for item in objects if item is not None}
    one, other = (item and item.spec.manifest for item in objects)
    classes = [class_of(Pair(folder, identity_of(other or one), one, other)) for folder in folders]
    is_quiet = step.keeps_plugin_file and all(
        isinstance(item.what, RetainedDevicePluginConfig) for item in (old, new) if item is not None
    )
    return worst((ChangeClass.METADATA, *classes)) if folders or is_quiet else ChangeClass.PLUGIN_RESTART
