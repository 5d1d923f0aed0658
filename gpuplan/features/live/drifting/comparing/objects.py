"""Pair the objects that are written with those of a dump: which differ, which are missing, which cannot be judged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.manifests import Identity, gvk_of
from gpuplan.compiler.manifests.merging.applied import Difference, differences
from gpuplan.compiler.manifests.shapes import shape_of
from gpuplan.features.live.drifting.comparing.owners import left_fields
from gpuplan.features.live.dump import Dump, Item


class Differing(NamedTuple):
    """A live object that is not as it is written."""

    identity: Identity
    item: Item
    differences: tuple[Difference, ...]


class Unjudged(NamedTuple):
    """Objects that nobody can tell of, and why."""

    kind: str
    number: int
    why: str


class Compared(Value):
    """What the objects of a dump are beside those that are written."""

    found: frozenset[Identity]
    differing: tuple[Differing, ...]
    missing: tuple[Identity, ...]
    unjudged: tuple[Unjudged, ...]


def compare(written: Mapping[Identity, Mapping[str, Any]], dump: Dump, kubernetes: str) -> Compared:
    """The objects that are written, beside a dump of a cluster with this version of Kubernetes."""
    scope = Scope(dump)
    differing: list[Differing] = []
    missing: list[Identity] = []
    found: list[Identity] = []
    unjudged: Counter[tuple[str, str]] = Counter()
    for identity, body in written.items():
        item = dump.find(*identity[:2], identity.name, identity.namespace)
        if item is None:
            if scope.is_whole(identity):
                missing.append(identity)
            else:
                unjudged[_kind(identity), _NOT_THERE] += 1
            continue
        gvk, live = gvk_of(body), gvk_of(item.body)
        found.append(identity)
        if gvk.version != live.version:
            unjudged[_kind(identity), f"the dump has version {live.version}, and gpuplan writes {gvk.version}"] += 1
            continue
        shape = shape_of(gvk, kubernetes)
        here = {one.live_route: one for one in left_fields(body, item.body, shape)}
        here |= {one.live_route: one for one in differences(body, item.body, shape)}
        if here:
            differing.append(Differing(identity, item, tuple(here.values())))
    rest = tuple(Unjudged(kind, number, why) for (kind, why), number in sorted(unjudged.items()))
    return Compared(frozenset(found), tuple(differing), tuple(missing), rest)


_NOT_THERE: Final = "the dump has no list of them"


def _kind(identity: Identity) -> str:
    return f"{identity.kind}.{identity.group}" if identity.group else identity.kind


class Scope:
    """Which part of a cluster a dump holds: a kind of which it has a list is there as a whole.

    A list that holds objects of one namespace alone may be of that one, as `kubectl get -n` prints it.
    """

    def __init__(self, dump: Dump) -> None:
        self._dump = dump

    def is_whole(self, identity: Identity) -> bool:
        """Whether an object would be in the dump if the cluster had it."""
        lists = self._listed.get((identity.group, identity.kind), {}).values()
        return any(len(spaces) > 1 or identity.namespace in spaces for spaces in lists)

    @cached_property
    def _listed(self) -> Mapping[tuple[str, str], Mapping[object, set[str]]]:
        """The namespaces that are in each list, by kind."""
        found: defaultdict[tuple[str, str], defaultdict[object, set[str]]] = defaultdict(lambda: defaultdict(set))
        for item in self._dump.objects:
            if "items" in item.at.path:
                of = id(item.at.source), item.at.path[: item.at.path.index("items")]
                found[item.group, item.kind][of].add(item.namespace)
        return found


# --- What should be gone -----------------------------------------------------------------------------------------


class Leftover(NamedTuple):
    """An object that gpuplan wrote once and writes no more: ``applier`` is what applied it, by its own mark there.

    ``is_kept`` says that it was left on purpose, for what may still name it.
    """

    item: Item
    applier: str = ""
    is_kept: bool = False


def leftovers(
    dump: Dump,
    written: Iterable[Identity],
    appliers: Iterable[str],
    kinds: Iterable[tuple[str, str]],
    charts: Iterable[str] = (),
) -> Iterator[Leftover]:
    """The objects of a dump that are not written, and that something which syncs the cluster says it applied.

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
            named = _named(dump) if named is None else named
            if _shows_uses(dump) and identity.name not in named:
                yield Leftover(item, applier, is_kept=True)
            continue
        yield Leftover(item, applier)


def applied_by(item: Item) -> Iterator[str]:
    """What says on an object that it applied it: Applications of Argo CD by their names, Kustomizations of Flux.

    Argo CD's tracking id begins with the name of the Application, after its namespace where that is not Argo CD's own
    (`docs/user-guide/resource_tracking.md` there).
    """
    if tracked := item.annotations.get("argocd.argoproj.io/tracking-id", "").partition(":")[0]:
        yield tracked.rpartition("_")[2]
    for label in ("argocd.argoproj.io/instance", "kustomize.toolkit.fluxcd.io/name"):
        if label in item.labels:
            yield item.labels[label]


_OWN: Final = "gpuplan"


def _is_own_name(name: str) -> bool:
    return name == _OWN or name.startswith(f"{_OWN}-")


_DIGEST: Final = 8


def _base(identity: Identity) -> str:
    """The name of a ConfigMap without the digest of its content; empty where it has none."""
    base, _, digest = identity.name.rpartition("-")
    is_digest = len(digest) == _DIGEST and not {*digest} - {*"0123456789abcdef"}
    return base if identity.kind == "ConfigMap" and not identity.group and is_digest else ""


_USING: Final = (("nvidia.com", "ClusterPolicy"), ("apps", "DaemonSet"), ("", "Pod"))


def _shows_uses(dump: Dump) -> bool:
    """Whether the dump holds kinds of objects that name ConfigMaps."""
    return any(dump.of_kind(*kind) for kind in _USING)


def _named(dump: Dump) -> frozenset[str]:
    """All texts of objects, beside what tells of themselves, in which a name may stand."""
    bodies = ({key: value for key, value in item.body.items() if key != "metadata"} for item in dump.objects)
    return frozenset(text for body in bodies for text in _texts(body))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
