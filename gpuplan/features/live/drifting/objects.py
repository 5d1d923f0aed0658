"""Pair the objects that are written with those of a dump, and find who wrote each field that differs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.plain import mapping, sequence, text, value_at
from gpuplan.compiler.base.trees import ABSENT, leaves
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.manifests import Identity, gvk_of
from gpuplan.compiler.manifests.kinds.imported import COLLECTED, Collected
from gpuplan.compiler.manifests.merging.applied import Difference, differences, find_item, is_same
from gpuplan.compiler.manifests.merging.shape import Shape
from gpuplan.compiler.manifests.provenance import Links
from gpuplan.compiler.manifests.shapes import shape_of
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.sync_names import REVISION
from gpuplan.features.live.dump import Dump, Item, is_named
from gpuplan.features.live.queues import in_version


class Differing(NamedTuple):
    """A live object that is not as it is written."""

    identity: Identity
    live: Item
    differences: tuple[Difference, ...]


class Unjudged(NamedTuple):
    """Objects that nobody can tell of, and why."""

    kind: str
    number: int
    why: str


class Compared(Value):
    """The objects of a dump beside those that are written.

    ``missing`` are objects that the cluster lacks, each with the file that would hold it if no list has its kind.
    """

    compared: frozenset[Identity]
    differing: tuple[Differing, ...]
    missing: Mapping[Identity, str]
    unjudged: tuple[Unjudged, ...]


def compare(written: Mapping[Identity, Mapping[str, Any]], dump: Dump, kubernetes: str) -> Compared:
    """Return the objects that are written, beside a dump of a cluster with this version of Kubernetes."""
    scope = Scope(dump)
    differing: list[Differing] = []
    missing: dict[Identity, str] = {}
    found: list[Identity] = []
    unjudged: Counter[tuple[str, str]] = Counter()
    for identity, body in written.items():
        item = dump.find(*identity[:2], identity.name, identity.namespace)
        if item is None:
            if scope.is_whole(identity):
                missing[identity] = scope.find_file(identity)
            else:
                unjudged[_kind(identity), _NOT_THERE] += 1
            continue
        gvk, live = gvk_of(body), gvk_of(item.body)
        found.append(identity)
        served = in_version(item.body, gvk.version)
        if served is None:
            unjudged[_kind(identity), f"the dump has version {live.version}, and gpuplan writes {gvk.version}"] += 1
            continue
        shape = shape_of(gvk, kubernetes)
        here = {one.live_route: one for one in left_fields(body, served, shape)}
        here |= {one.live_route: one for one in differences(body, served, shape)}
        if here:
            differing.append(Differing(identity, item, tuple(here.values())))
    rest = tuple(Unjudged(kind, number, why) for (kind, why), number in sorted(unjudged.items()))
    return Compared(frozenset(found), tuple(differing), missing, rest)


_NOT_THERE: Final = "the dump has no list of them"


def _kind(identity: Identity) -> str:
    return f"{identity.kind}.{identity.group}" if identity.group else identity.kind


class Scope:
    """The kinds that a dump holds as a whole: those of which it has a list.

    A list of objects of one namespace alone may be of that namespace, as `kubectl get -n` prints it. kubectl prints a
    list of nothing without a kind, so its file says what it is of: in a folder that `gpuplan import --commands` filled,
    a list holds all that its command collects. Such a folder has the file of the first command, with nodes and
    namespaces. What the API server makes on each cluster shows that this file holds all of its kinds, too.
    """

    def __init__(self, dump: Dump) -> None:
        self._listed: defaultdict[tuple[str, str], defaultdict[object, set[str]]]
        """The namespaces that are in each list, by kind."""
        self._listed = defaultdict(lambda: defaultdict(set))
        for item in dump.objects:
            if "items" in item.at.path:
                of = id(item.at.source), item.at.path[: item.at.path.index("items")]
                self._listed[item.group, item.kind][of].add(item.namespace)
        kinds: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for item in dump.objects:
            kinds[item.file].add((item.group, item.kind))
        self._collected: list[tuple[str, Collected]] = []
        """The files that a command filled."""
        for file in dump.lists:
            folder, _, name = file.rpartition("/")
            first = f"{folder}/{COLLECTED[0].file}" if folder else COLLECTED[0].file
            command = next((found for found in COLLECTED if found.file == name and not found.label), None)
            is_filled = kinds[first] >= _FIRST and (file != first or kinds[file] >= _EVERYWHERE)
            if is_filled and command is not None and kinds[file] <= {*command.pairs}:
                self._collected.append((file, command))

    def is_whole(self, identity: Identity) -> bool:
        """Whether an object would be in the dump if the cluster had it."""
        return self._is_listed(identity) or bool(self.find_file(identity))

    def find_file(self, identity: Identity) -> str:
        """Return the file that would hold an object of which no list has the kind; empty if nothing says so."""
        if self._is_listed(identity):
            return ""
        pair, spaces = identity[:2], ("", identity.namespace)
        found = (file for file, one in self._collected if pair in one.pairs and one.namespace in spaces)
        return next(found, "")

    def _is_listed(self, identity: Identity) -> bool:
        lists = self._listed.get((identity.group, identity.kind), {}).values()
        return any(len(spaces) > 1 or identity.namespace in spaces for spaces in lists)


_FIRST: Final = {("", "Node"), ("", "Namespace")}
_EVERYWHERE: Final = {("scheduling.k8s.io", "PriorityClass"), ("rbac.authorization.k8s.io", "RoleBinding")}
"""Kinds of which the API server makes objects in every cluster when it starts.

(`rest/storage_scheduling.go` in `pkg/registry/scheduling` and `rest/storage_rbac.go` in `pkg/registry/rbac` of
kubernetes/kubernetes.)
"""


class Observed(NamedTuple):
    """Something that is not as the policies have it, beyond the fields that are written; ``subject`` is None if absent.

    ``links`` are the places of the policy that say it. Whatever labels nodes sets again what ``is_labelled``, a sync of
    a chart's ``folder`` what the chart sets, and each sync what ``is_whole``: a part of what is applied as a whole.
    """

    title: str
    subject: Item | None
    route: Path
    written: object
    live: object
    links: Links = ()
    note: str = ""
    is_labelled: bool = False
    folder: str = ""
    is_whole: bool = False


# --- What should be gone -----------------------------------------------------------------------------------------


class Leftover(NamedTuple):
    """An object that gpuplan wrote once and writes no more: ``applier`` is what applied it, by its own mark there.

    ``is_kept`` says that it was left on purpose, for what may still name it.
    """

    live: Item
    applier: str = ""
    is_kept: bool = False


def leftovers(
    dump: Dump,
    written: Iterable[Identity],
    appliers: Iterable[str],
    kinds: Iterable[tuple[str, str]],
    charts: Iterable[str] = (),
) -> Iterator[Leftover]:
    """Yield the objects of a dump that are not written, and that something which syncs the cluster says it applied.

    ``kinds`` are those of which an object with a name of gpuplan's own is one of ours, however it came there. What
    another object owns goes with that one. Of ``appliers`` some apply ``charts`` as well, whose objects are not written
    one by one: what has no name of gpuplan's own is the chart's.
    """
    known, ours, own_kinds, with_charts = {*written}, {*appliers}, {*kinds}, {*charts}
    hashed = {(identity.namespace, base) for identity in known if (base := _base(identity))}
    named: frozenset[str] | None = None
    for item in dump.objects:
        identity = item.identity
        metadata = item.body.get("metadata")
        if identity in known or not isinstance(metadata, Mapping) or metadata.get("ownerReferences"):
            continue
        applier = next((name for name in applied_by(item) if name in ours), "")
        is_named_so = (identity.group, identity.kind) in own_kinds and _is_own_name(identity.name)
        is_of_chart = applier in with_charts and not _is_own_name(identity.name)
        if is_of_chart or not (applier or is_named_so):
            continue
        if (identity.namespace, _base(identity)) in hashed:
            if named is None:  # the texts in which a name may stand, beside what objects tell of themselves
                fields = (value for one in dump.objects for key, value in one.body.items() if key != "metadata")
                named = frozenset(text for value in fields for _, text in leaves(value) if isinstance(text, str))
            if any(dump.of_kind(*kind) for kind in _USING) and identity.name not in named:
                yield Leftover(item, applier, is_kept=True)
            continue
        yield Leftover(item, applier)


def applied_by(obj: Item) -> Iterator[str]:
    """Yield the names of Applications of Argo CD and Kustomizations of Flux that an object says it was applied by.

    Argo CD's tracking id begins with the name of the Application, after its namespace if that is not Argo CD's own
    (`docs/user-guide/resource_tracking.md` there).
    """
    if tracked := obj.annotations.get("argocd.argoproj.io/tracking-id", "").partition(":")[0]:
        yield tracked.rpartition("_")[2]
    for label in ("argocd.argoproj.io/instance", "kustomize.toolkit.fluxcd.io/name"):
        if label in obj.labels:
            yield obj.labels[label]


_OWN: Final = "gpuplan"


def _is_own_name(name: str) -> bool:
    return name == _OWN or name.startswith(f"{_OWN}-")


def _base(identity: Identity) -> str:
    """Return the name of a ConfigMap without the digest of its content; empty where it has none."""
    base = identity.name.rpartition("-")[0]
    is_hashed = identity.kind == "ConfigMap" and not identity.group and is_named(identity.name, base)
    return base if is_hashed else ""


_USING: Final = (("nvidia.com", "ClusterPolicy"), ("apps", "DaemonSet"), ("", "Pod"))


APPLY: Final = "Apply"


class Owner(NamedTuple):
    """A program or person that wrote an object: ``manager`` is what it calls itself, as in ``kubectl-edit``.

    Where it does not own the field itself, it ``is_last``: it wrote to the object last, but for what applies it.
    """

    manager: str
    operation: str
    time: str
    subresource: str = ""
    is_last: bool = False


def owners(body: Mapping[str, Any], route: Path) -> tuple[Owner, ...]:
    """Return those that own what is at a route, or a part of it, newest first; none where nothing says so."""
    live: object = body
    steps: list[object] = []
    for part in route:
        steps.append(live)
        live = value_at(live, (part,))
    found = [owner for owner, fields in _entries(body) if _owns(fields, route, steps)]
    return tuple(sorted(found, key=lambda owner: owner.time, reverse=True))


APPLIERS: Final = ("argocd-controller", "kustomize-controller")
"""The names of Argo CD and Flux as managers of fields (`ArgoCDSSAManager` in `common/common.go` of argo-cd,
`controllerName` in `main.go` of kustomize-controller). Fields that they applied and that are written no more, they take
away."""
_NOTES: Final = ("argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "app.kubernetes.io/instance", REVISION)
"""Beginnings of the labels and annotations that they add themselves."""


def unread_annotations(plan: Plan, dump: Dump, ours: Container[Identity]) -> Callable[[str, object], bool]:
    """Return whether a path, with what is written there, is annotations of Argo CD and Flux that neither reads.

    That is so if the policies name no such tool, and no object of ours was applied by it.
    """
    is_synced = bool(plan.cluster.argocd or plan.cluster.flux) or any(
        [*applied_by(item)] or any(owner.manager in APPLIERS for owner, _ in _entries(item.body))
        for item in dump.objects
        if item.identity in ours
    )
    starts, annotations = _NOTES[:2], "metadata.annotations"

    def is_unread(path: str, written: object) -> bool:
        inner = mapping(written) if path == annotations else (path.removeprefix(f'{annotations}["'),)
        return path.startswith(annotations) and not is_synced and all(str(key).startswith(starts) for key in inner)

    return is_unread


def left_fields(written: Mapping[str, Any], live: Mapping[str, Any], shape: Shape) -> Iterator[Difference]:
    """Yield the fields of a live object that whoever syncs it has applied, and that are written no more."""
    for owner, fields in _entries(live):
        if owner.operation == APPLY and owner.manager in APPLIERS and not owner.subresource:
            yield from _applied_before(fields, written, live, shape, ((), ()))


def _applied_before(
    fields: Mapping[str, Any], written: object, live: object, shape: Shape, at: tuple[Path, Path]
) -> Iterator[Difference]:
    for key, inner in fields.items():
        kind, _, value = key.partition(":")
        if kind == "f" and isinstance(live, Mapping) and value in live and not value.startswith(_NOTES):
            step = (*at[0], value), (*at[1], value)
            known = written.get(value, ABSENT) if isinstance(written, Mapping) else ABSENT
            if inner:
                yield from _applied_before(mapping(inner), known, live[value], shape.field(value), step)
            elif known is ABSENT and not _is_filled_in(live[value], shape.field(value)):
                yield Difference(*step, ABSENT, live[value])
        elif kind in ("k", "v") and isinstance(live, list):
            index = next((n for n, item in enumerate(live) if _names(value, item, is_keys=kind == "k")), None)
            if index is None:
                continue
            items = written if isinstance(written, list | tuple) else ()
            ours = next((n for n, item in enumerate(items) if (find_item(item, [live[index]], shape) == 0)), None)
            step = (*at[0], index if ours is None else ours), (*at[1], index)
            if ours is None:
                yield Difference(*step, ABSENT, live[index])
            elif inner:
                yield from _applied_before(mapping(inner), items[ours], live[index], shape.items, step)


def _is_filled_in(live: object, shape: Shape) -> bool:
    """Whether a value may be there without anybody: a default, or what others have put into an empty mapping.

    Flux applies all fields that a type of Kubernetes has, such as the protocol of a port and `spec: {}` of a Namespace
    (`UnstructuredWithScheme` in `ssa/normalize/normalize.go` of fluxcd/pkg).
    """
    return is_same(shape.default, live, shape) or (isinstance(live, Mapping) and not shape.is_atomic_map)


def find_owner(body: Mapping[str, Any], route: Path) -> Owner | None:
    """Return who gave a field its value, or else who wrote to the object last.

    Argo CD and Flux own most fields, so that somebody else is returned if there is anybody.
    """
    found = owners(body, route)
    if found:
        return next((owner for owner in found if owner.operation != APPLY), found[0])
    rest = sorted((owner for owner, _ in _entries(body) if not owner.subresource), key=lambda owner: owner.time)
    others = [owner for owner in rest if owner.operation != APPLY]
    return others[-1]._replace(is_last=True) if others else None


def _entries(body: Mapping[str, Any]) -> Iterator[tuple[Owner, Mapping[str, Any]]]:
    for entry in map(mapping, sequence(mapping(body.get("metadata")).get("managedFields"))):
        manager, operation, time, subresource = (
            text(entry.get(key)) for key in ("manager", "operation", "time", "subresource")
        )
        yield Owner(manager, operation, time, subresource), mapping(entry.get("fieldsV1"))


def _owns(fields: Mapping[str, Any], route: Path, steps: Sequence[object]) -> bool:
    """Whether a set of fields holds a route, or a part of what is there; one that ends before it holds all of it."""
    for part, container in zip(route, steps, strict=True):
        found = _inside(fields, part, container)
        if found is None:
            return False
        fields = found
        if not fields:
            return True
    return True


def _inside(fields: Mapping[str, Any], part: str | int, container: object) -> Mapping[str, Any] | None:
    """Return the part of a set of fields at a step: a field, or an item of a list by its keys or its value.

    None if the set has no such part (`fieldpath.PathElement` in `fieldpath/element.go` of
    kubernetes-sigs/structured-merge-diff).
    """
    if isinstance(part, str):
        return mapping(fields[f"f:{part}"]) if f"f:{part}" in fields else None
    item = value_at(container, (part,))
    for key, inner in fields.items():
        kind, _, value = key.partition(":")
        if kind in ("k", "v") and _names(value, item, is_keys=kind == "k"):
            return mapping(inner)
    return None


def _names(value: str, entry: object, *, is_keys: bool) -> bool:
    try:
        wanted = json.loads(value)
    except (ValueError, RecursionError):
        return False
    if not is_keys:
        return bool(wanted == entry)
    return isinstance(entry, Mapping) and all(entry.get(key) == found for key, found in mapping(wanted).items())
