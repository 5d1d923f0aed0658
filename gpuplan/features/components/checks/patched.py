"""Checks on what hand-written Components make of generated folders (GPU627, GPU645, GPU682, GPU684-689)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from gpuplan.compiler.base.diagnostics import Family, Finding, Origin, Severity
from gpuplan.compiler.base.plain import grouped, inside, mapping, sequence, text, value_at
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import closest, listing, misspelling
from gpuplan.compiler.checks.registry import check, same_rule
from gpuplan.compiler.checks.wording import in_yaml
from gpuplan.compiler.documents import file_of
from gpuplan.compiler.manifests import Identity, Manifest
from gpuplan.compiler.manifests.kinds import assume_kind
from gpuplan.compiler.planning.hand_files import HandFiles, Object, read, sync_options
from gpuplan.compiler.planning.plan import (
    DEVICE_PLUGIN_CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    POOL_LABEL,
    Component,
    Plan,
    Stage,
)
from gpuplan.compiler.planning.sync_names import FLUX_PRUNE, FLUX_SSA, SYNC_OPTIONS
from gpuplan.features.components.checks.components import (
    cluster_policy_contradicted,
    decided_fields,
    origin_of,
    transformer_reaches_generated_objects,
)


class Folder(Value):
    """A folder that is delivered by itself, before and after its Components.

    ``after`` is what kustomize built, or None where it was not built: it has no Components, or they are in the way.
    """

    path: str
    components: tuple[Component, ...]
    before: tuple[Manifest, ...]
    after: tuple[Manifest, ...] | None = None

    @cached_property
    def generated(self) -> Mapping[Identity, Manifest]:
        return {manifest.identity: manifest for manifest in self.before}

    @cached_property
    def built(self) -> Mapping[Identity, Manifest]:
        return {manifest.identity: manifest for manifest in self.after or ()}

    @cached_property
    def changed(self) -> Mapping[Identity, Mapping[str, object]]:
        """The generated objects that are no longer what they were: what they were, as plain data."""
        kept: dict[Identity, Mapping[str, object]] = {
            identity: json.loads(json.dumps(before.body, default=dict))
            for identity, before in self.generated.items()
            if identity in self.built
        }
        return {identity: body for identity, body in kept.items() if body != self.built[identity].body}

    def holds(self, at: Origin) -> bool:
        """Whether a place is in a file of its Components."""
        path = file_of(at).path
        return any(path.startswith(f"{component.folder}/") for component in self.components)


class Change(NamedTuple):
    """A generated object as it was, in plain data, and as kustomize built it; ``place`` is where a part was changed."""

    folder: Folder
    identity: Identity
    old: Mapping[str, object]
    new: Mapping[str, object]
    place: Callable[..., Origin]

    def lost(
        self, at: Origin, field: str, old: object, new: object, fix: str, *notes: str, severity: Severity | None = None
    ) -> Finding:
        """A field is gone, or has another value than the policy says."""
        return Finding(
            at,
            f"generated {self.identity} {'loses' if new is None else 'gets another'} `{field}`",
            label=f"`{field}` is gone" if new is None else f"`{field}: {in_yaml(new)}` instead of `{in_yaml(old)}`",
            notes=notes,
            help=fix,
            severity=severity,
        )


class Patched(Value):
    """A cluster's folders, those without Components included."""

    plan: Plan
    folders: tuple[Folder, ...]

    @cached_property
    def files(self) -> HandFiles:
        return read(self.plan)

    @property
    def cluster_names(self) -> tuple[str, ...]:
        return self.plan.cluster_names

    def changed(self, *kinds: str) -> Iterator[Change]:
        """The generated objects of some kinds, or all, that are no longer what they were."""
        for folder in self.folders:
            for identity, old in folder.changed.items():
                if not kinds or identity.kind in kinds:
                    place = partial(self.place, folder, identity)
                    yield Change(folder, identity, old, folder.built[identity].body, place)

    def results(self) -> Iterator[tuple[Folder, Manifest, Object]]:
        """The objects of built folders that are not as gpuplan generated them."""
        for folder in self.folders:
            for identity, after in folder.built.items():
                before = folder.generated.get(identity)
                if before is None or identity in folder.changed:
                    # What is added may be part of an object that somebody else makes.
                    options = sync_options(inside(after.body, "metadata", "annotations"))
                    is_partial = before.is_partial if before else options.get("ServerSideApply") == "true"
                    made = replace(
                        self.home(folder, identity),
                        body=after.body,
                        is_patch=before is not None,
                        parts=self.parts(folder, identity),
                        before=folder.changed.get(identity),
                    )
                    yield folder, replace(after, is_partial=is_partial), made

    def place(self, folder: Folder, identity: Identity, *route: str | int) -> Origin:
        """Where a folder's Components add or change an object; the last Component as such where that cannot be told."""
        return self.home(folder, identity).place(*route)

    def home(self, folder: Folder, identity: Identity) -> Object:
        """The part of a file that is about an object, or else the patch that is for it as such."""
        targets = ((at, target) for item in self.files.kustomizations for at, _, target in item.patches if target)
        aimed = (at for at, target in targets if selects(target, identity) and folder.holds(at))
        named = next(self._named(folder, identity), None)
        return named or Object(next(aimed, origin_of(folder.components[-1])), {}, "", "", is_inline=True)

    def parts(self, folder: Folder, identity: Identity) -> tuple[Object, ...]:
        """The parts of files that an object is made of."""
        aimed = (item for item in self.files.objects if item.target and selects(item.target, identity))
        return (*self._named(folder, identity), *(item for item in aimed if folder.holds(item.at)))

    def _named(self, folder: Folder, identity: Identity) -> Iterator[Object]:
        """Those of the kind and name; a patch may leave out the namespace."""
        for item in self._objects_by_name.get((identity.kind, identity.name), ()):
            if text(item.metadata.get("namespace")) in ("", identity.namespace) and folder.holds(item.at):
                yield item

    @cached_property
    def _objects_by_name(self) -> Mapping[tuple[str, str], Sequence[Object]]:
        return grouped(((item.kind, item.name), item) for item in self.files.objects)

    def component_of(self, at: Origin) -> str:
        """The folder of the innermost Component that a place is in."""
        path = file_of(at).path
        folders = (component.folder for component in self.plan.components)
        return max((folder for folder in folders if path.startswith(f"{folder}/")), key=len, default="")


def selects(target: Mapping[str, object], identity: Identity) -> bool:
    """Whether a patch's target may mean an object; labels and annotations that it asks for are not looked at.

    Its fields are regular expressions for the whole of a value, and left out they mean any.
    """
    asked = {key: text(target.get(key)) for key in ("group", "kind", "namespace", "name")}
    for key, pattern in asked.items():
        try:
            if pattern and not re.fullmatch(pattern, getattr(identity, key)):
                return False
        except re.error:  # Go's dialect differs
            continue
    return True


# --- Objects that are there twice, or no more --------------------------------------------------------------------


@check("GPU682", "object-in-two-folders", family=Family.OBJECTS)
def object_in_two_folders(patched: Patched) -> Iterator[Finding]:
    """With its Components, one object is in two folders of a cluster.

    ## Why
    Every folder is delivered by itself. Two Applications that have one object each undo what the other does, or Argo CD
    reports it as shared; and a build of the whole cluster fails with an already registered id. The Component of a stage
    is included by the folder of each namespace or pool, so that what it adds comes up in all of them.

    ## Instead
    Put the object into one Component: of one namespace, of one pool, or of the stage `workloads`.
    """
    homes: dict[Identity, list[Folder]] = {}
    for folder in patched.folders:
        for identity in folder.generated if folder.after is None else folder.built:
            homes.setdefault(identity, []).append(folder)
    for identity, folders in homes.items():
        adding = [item for item in folders if item.after is not None and identity not in item.generated]
        if len(folders) > 1 and adding:
            paths, folder, help_ = [item.path for item in folders], adding[0], "remove it from one of them"
            if "/" in folder.path and any(component.part is None for component in folder.components):
                stage = folder.path.partition("/")[0]
                others = f"the Component of another folder of `{stage}`, or to `workloads/`"
                help_ = f"move it to the Component `{folder.path}/`, to {others}"
            yield Finding(
                patched.place(adding[0], identity, "metadata", "name"),
                f"{identity} is in {len(paths)} folders",
                label=f"in {listing(paths, 3)}",
                notes=("each folder is delivered by itself, and an object can be in one of them only",),
                help=help_,
            )


@check("GPU684", "generated-object-gone", Severity.WARNING, family=Family.OBJECTS)
def generated_object_gone(patched: Patched) -> Iterator[Finding]:
    """A Component removes or renames an object that gpuplan writes.

    ## Why
    What the policy promises rests on the object: a quota that is gone caps nobody, a renamed ConfigMap is not found
    under the name that others call it by. Without the labels of its pool a node is told `all-disabled` by the GPU
    Operator, which takes its partitions down: for Nodes and NodeFeatureRules it is an error.

    ## Instead
    Say it in the policy. Where the removal is meant, ignore the finding with a comment that says why.
    """
    told = {patched.component_of(found.at) for found in transformer_reaches_generated_objects.find(patched.plan)}
    for folder in patched.folders:
        for identity in sorted(folder.generated.keys() - folder.built.keys()) if folder.after is not None else ():
            at = patched.place(folder, identity)
            if patched.component_of(at) not in told:
                labels_nodes = identity.kind in ("Node", "NodeFeatureRule")
                added = folder.built.keys() - folder.generated.keys()
                close = misspelling(identity.name, {item.name for item in added if item.kind == identity.kind})
                yield Finding(
                    at,
                    f"generated {identity} is no longer in `{folder.path}`",
                    label="removed or renamed here",
                    notes=(f"there is a {identity.kind} `{close}` instead",) if close else (),
                    help="say it in the policy, or patch the object and leave its name",
                    severity=Severity.ERROR if labels_nodes else None,
                )


# --- Objects that are no longer what they were -------------------------------------------------------------------

_STRONGEST = {"false": 2, "confirm": 1}


@check("GPU685", "protection-removed", Severity.WARNING, family=Family.OBJECTS)
def protection_removed(patched: Patched) -> Iterator[Finding]:
    """A Component weakens what protects a generated object from being deleted or overwritten.

    ## Why
    Annotations make Argo CD ask a person before it deletes what would take nodes, partitions or whole namespaces along,
    and make Flux leave it. A patch of `argocd.argoproj.io/sync-options` replaces all of the annotation, not an option.
    A Node that may be deleted is an error.

    ## Instead
    Repeat the generated options in the patch, and add your own to them.
    """
    for _, identity, before, after, place in patched.changed():
        old, new = (inside(body, "metadata", "annotations") for body in (before, after))
        if lost := list(_lost(old, new)):
            yield Finding(
                place("metadata", "annotations", lost[0][0]),
                f"generated {identity} loses its protection {listing([what for _, what in lost])}",
                label="weaker than generated",
                notes=(f"the generated options are `{old[SYNC_OPTIONS]}`",) if SYNC_OPTIONS in old else (),
                help="repeat the generated options in the patch",
                severity=Severity.ERROR if identity.kind == "Node" else None,
            )


def _lost(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The annotations that protect less than they did, with what is gone."""
    had, has = sync_options(old), sync_options(new)
    for key in ("Prune", "Delete"):
        if _STRONGEST.get(has.get(key, ""), 0) < _STRONGEST.get(had.get(key, ""), 0):
            yield SYNC_OPTIONS, f"{key}={had[key]}"
    if had.get("ServerSideApply") == "true" and has.get("ServerSideApply") != "true":
        yield SYNC_OPTIONS, "ServerSideApply=true"
    for key in (FLUX_PRUNE, FLUX_SSA):
        if key in old and new.get(key) != old[key]:
            yield key, f"{key}: {old[key]}"


_SWITCHES = (POOL_LABEL, DEVICE_PLUGIN_CONFIG_LABEL, MIG_CONFIG_LABEL)

_OTHER_PARTS = (
    ("taints", "other taints", "taints"),
    ("matchFeatures", "another choice of nodes", "nodes"),
    ("matchAny", "another choice of nodes", "nodes"),
)
"""Parts of a rule, what a change of one is called, and the pool's field that it comes from."""


@check("GPU686", "pool-labels-changed", family=Family.OBJECTS)
def pool_labels_changed(patched: Patched) -> Iterator[Finding]:
    """A Component changes the labels or taints that a pool's nodes get, or which nodes they are.

    ## Why
    The labels `nvidia.com/mig.config` and `nvidia.com/device-plugin.config` choose how GPUs are divided. A node that
    loses the first is told `all-disabled` by the GPU Operator, and with another value it publishes other resources than
    were planned; quotas and admission policies stay as they are. Other labels, taints and the choice of nodes are a
    warning.

    ## Instead
    Change the pool in the policy: `sharing`, `nodeLabels`, `taints`, `nodes`. More labels can be patched in.
    """
    for change in patched.changed("Node", "NodeFeatureRule"):
        _, identity, before, after, place = change
        old, new = _labels(identity, before), _labels(identity, after)
        for key, value in old.items():
            if new.get(key) != value:
                where = ("metadata", "labels") if identity.kind == "Node" else ("spec", "rules", 0, "labels")
                disturbs = ("the GPU Operator repartitions a node when this label changes or goes",)
                notes, severity = (
                    disturbs if key == MIG_CONFIG_LABEL else (),
                    None if key in _SWITCHES else Severity.WARNING,
                )
                help_ = "change the pool in the policy instead"
                yield change.lost(place(*where, key), key, value, new.get(key), help_, *notes, severity=severity)
        for part, what, field in _OTHER_PARTS:
            planned, found = ([mapping(rule).get(part) for rule in _rules(body)] for body in (before, after))
            if planned != found:
                yield Finding(
                    place("spec", "rules"),
                    f"generated {identity} has {what} than planned",
                    label="changed here",
                    notes=("the plan follows what the policy says of the pool",),
                    help=f"change `{field}` of the pool instead",
                    severity=Severity.WARNING,
                )


def _rules(body: Mapping[str, object]) -> Sequence[object]:
    return sequence(value_at(body, ("spec", "rules")))


def _labels(identity: Identity, body: Mapping[str, object]) -> Mapping[str, object]:
    if identity.kind == "Node":
        return inside(body, "metadata", "labels")
    return {key: value for rule in _rules(body) for key, value in mapping(mapping(rule).get("labels")).items()}


@check("GPU687", "quota-changed", Severity.WARNING, family=Family.OBJECTS)
def quota_changed(patched: Patched) -> Iterator[Finding]:
    """A Component changes what a generated quota caps, or what an admission policy lets through.

    ## Why
    The numbers of a ResourceQuota follow from the tenant's grants, whose sums are proven against the pools. What a
    patch makes of them is in no sum, and no report shows it. Keys that the quota does not have may be added.

    The grants themselves are in a ConfigMap beside the quota, and a ValidatingAdmissionPolicy with its bindings keeps
    pods to them. With a validation less, or with `Audit` in place of `Deny`, a tenant reaches every pool. Validations
    may be added.

    ## Instead
    Change the tenant: `quotas`, `priorityClasses`, `allow`. Where it is meant, ignore the finding with a comment that
    says why.
    """
    for change in patched.changed("ResourceQuota"):
        old, new = inside(change.old, "spec", "hard"), inside(change.new, "spec", "hard")
        for key, value in old.items():
            if str(new.get(key)) != str(value):
                help_ = "change `quotas` of the tenant instead"
                note = "the number is the tenant's by the policy, and counted in no other"
                yield change.lost(change.place("spec", "hard", key), key, value, new.get(key), help_, note)
    for folder, identity, before, after, place in patched.changed():
        field = assume_kind(identity.group, identity.kind).admits_by
        is_map = identity.kind == "ConfigMap"
        if not field or (is_map and not folder.path.startswith(f"{Stage.NAMESPACES}/")):
            continue
        old, new = inside(before, field), inside(after, field)
        for key in old if is_map else sorted({*old, *new}):
            is_kept = old.get(key) == new.get(key)
            if key in _MAY_GROW:  # a list is no weaker for having more
                is_kept = all(item in sequence(new.get(key)) for item in sequence(old.get(key)))
            if not is_kept:
                yield Finding(
                    place(field, key),
                    f"generated {identity} {'loses' if key not in new else 'gets other'} `{key}`",
                    label=f"`{key}` is not what the policy says",
                    notes=("the policy decides on a tenant's units",),
                    help="change the tenant instead",
                )


_MAY_GROW = ("auditAnnotations", "validationActions", "validations", "variables")


@check("GPU688", "cluster-policy-changed", family=Family.OBJECTS)
def cluster_policy_changed(patched: Patched) -> Iterator[Finding]:
    """With its Components, a ClusterPolicy no longer has what follows from the policy, or names what is not there.

    ## Why
    The ConfigMaps and the MIG strategy of the ClusterPolicy are what makes nodes do as planned. The operator does not
    start the pods of a ConfigMap that does not exist, and takes the configurations away that node labels choose from
    when another one is named.

    ## Instead
    Say it in the policy: `migStrategy` in the cluster, layouts and pools.
    """
    for folder in patched.folders:
        missing = {item.name for item in folder.generated.keys() - folder.built.keys() if item.kind == "ConfigMap"}
        for identity, manifest in folder.built.items() if missing else ():
            for part in ("migManager", "devicePlugin", "dcgmExporter") if identity.kind == "ClusterPolicy" else ():
                route = ("spec", part, "config", "name")
                name = text(value_at(manifest.body, route))
                if name in missing:
                    yield Finding(
                        patched.place(folder, identity, *route),
                        f"{identity} names ConfigMap `{name}`, which is no longer in `{folder.path}`",
                        label="removed or renamed by a Component",
                        help=f"leave ConfigMap `{name}` as it is",
                    )


@same_rule(cluster_policy_contradicted)
def cluster_policy_patched(patched: Patched) -> Iterator[Finding]:
    """A Component changes a field of a generated ClusterPolicy that follows from the policy."""
    for change in patched.changed("ClusterPolicy"):
        for route, allowed in decided_fields(patched.plan).items():
            old, new = (value_at(body, ("spec", *route)) for body in (change.old, change.new))
            if old != new and (old is not None or new not in allowed):
                title, field = f"ClusterPolicy `{change.identity.name}`", ".".join(route)
                parts = patched.parts(change.folder, change.identity)
                yield Finding(
                    replace(patched.home(change.folder, change.identity), parts=parts).place("spec", *route),
                    f"{title} loses `{field}`, which follows from the policy"
                    if new is None
                    else f"`{field}: {in_yaml(new)}` in {title} contradicts the policy",
                    label="gpuplan decides this one",
                    notes=("it follows from the pools, their layouts and the cluster's `migStrategy`",),
                    help="remove it" if route[0] != "mig" else "remove it, and write `migStrategy` in the Cluster",
                )


@check("GPU689", "patch-matches-nothing", Severity.WARNING, family=Family.OBJECTS)
def patch_matches_nothing(patched: Patched) -> Iterator[Finding]:
    """A patch of a Component is for objects that no folder has which includes it.

    ## Why
    kustomize refuses a patch that names its object and does not find it. One with a `target` it applies to all that
    matches, and passes over without a word when that is nothing: the change is in Git, in review, and never in the
    cluster. So is a patch of an object that gpuplan has come to name otherwise.

    ## Instead
    Correct the target: group, kind, name and namespace are matched as a whole. `gpuplan build --stdout` prints the
    objects.
    """
    for kustomization in patched.files.kustomizations:
        including = [
            folder
            for folder in patched.folders
            if any(component.folder == kustomization.folder for component in folder.components)
        ]
        if not (kustomization.is_component and including) or any(folder.after is None for folder in including):
            continue
        known = {identity for folder in including for identity in (*folder.generated, *folder.built)}
        for at, _, target in kustomization.patches:
            if target and not any(selects(target, identity) for identity in known):
                kinds = sorted({item.kind for item in known})
                names = sorted({item.name for item in known if item.kind == text(target.get("kind"))})
                name, kind = text(target.get("name")), text(target.get("kind"))
                close = misspelling(name, names) if names else closest(kind, kinds)
                yield Finding(
                    at / "target",
                    "patch matches no object",
                    label=f"did you mean `{close}`" if close else "changes nothing",
                    notes=("kustomize says nothing of a target that matches nothing",),
                    help=f"write {listing(names or kinds, 8, 'or')}" if kinds else "remove it: no object is here",
                )


# --- ConfigMaps whose name is a hash of their content ------------------------------------------------------------


@check("GPU645", "content-under-old-name", Severity.WARNING, family=Family.OBJECTS)
def content_under_old_name(patched: Patched) -> Iterator[Finding]:
    """A generated ConfigMap of the GPU Operator gets other content under its old name.

    ## Why
    The names of these ConfigMaps end in a hash of their content, because neither the MIG manager nor the device plugin
    looks at a ConfigMap again: a new name is what makes the operator roll them. Content that kustomize puts in later
    changes nothing on the nodes until their pods happen to restart.

    ## Instead
    Say it in the policy: pools and layouts are what these files are made of.
    """
    generators = [(at / "behavior", name) for item in patched.files.kustomizations for at, _, name in item.generators]
    for folder, identity, before, after, place in patched.changed("ConfigMap"):
        if folder.path == Stage.GPU_OPERATOR and before.get("data") != after.get("data"):
            merging = (at for at, name in generators if name == identity.name and folder.holds(at))
            yield Finding(
                next(merging, place("metadata", "name")),
                f"generated ConfigMap `{identity.name}` gets other content under the old name",
                label="the operator does not notice",
                notes=("the hash in the name is of the generated content; pods roll when the name changes",),
                help="change the policy's pools and layouts instead",
            )
