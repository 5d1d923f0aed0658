"""Hand-written kustomize files, sorted out: kustomizations, objects, and patches as the part of an object they set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from posixpath import dirname, normpath
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Origin, Path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, read_text, sequence, text, value_at
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.documents import file_of
from gpuplan.compiler.documents.printed import Printed, is_list, objects_in
from gpuplan.compiler.manifests import Problem, parse_quantity
from gpuplan.compiler.planning.plan import HandWritten, Plan, Stage
from gpuplan.compiler.planning.sync_names import SYNC_OPTIONS
from gpuplan.compiler.policy.models import ClusterMigStrategy

KUSTOMIZATION_FILES = ("kustomization.yaml", "kustomization.yml")
ALL_KUSTOMIZATION_FILES = (*KUSTOMIZATION_FILES, "Kustomization")
DEVICE_PLUGIN: Final = "devicePlugin"
MIG_MANAGER: Final = "migManager"


class Kustomization(Value):
    """A `kustomization.yaml`; ``folder`` is relative to the repository's root."""

    at: Origin
    body: Mapping[str, object]
    folder: str
    stage: str

    @property
    def is_component(self) -> bool:
        return self.body.get("kind") == "Component"

    def entries(self, *keys: str) -> Iterator[tuple[Origin, object]]:
        """Yield the entries of lists, with their places."""
        for key in keys:
            for index, entry in enumerate(sequence(self.body.get(key))):
                yield self.at / key / index, entry

    @property
    def patches(self) -> Iterator[tuple[Origin, Mapping[str, object], Mapping[str, object]]]:
        """The entries of patches with their places, and their targets if stated."""
        for at, entry in self.entries("patches", "patchesJson6902"):
            yield at, mapping(entry), inside(mapping(entry), "target")

    @property
    def generators(self) -> Iterator[tuple[Origin, Mapping[str, object], str]]:
        """The generators of ConfigMaps with their places, bodies and names."""
        for at, entry in self.entries("configMapGenerator"):
            yield at, mapping(entry), text(mapping(entry).get("name"))

    def path_of(self, path: str) -> str:
        """Return a path that is written here, relative to the repository's root."""
        return normpath(f"{self.folder}/{path}")


class Object(Value):
    """A Kubernetes object, or the part of one that a patch sets.

    A patch inside a kustomization's text has no places of its own: all of it ``is_inline``, at that text. The kind of a
    JSON patch is its target's, and empty where that is not said. An object that kustomize built has the places of the
    ``parts`` that it was made of; ``before`` is what gpuplan had generated, where it is one that Components changed.
    """

    at: Origin
    body: Mapping[str, object]
    path: str
    stage: str
    is_patch: bool = False
    is_inline: bool = False
    target: Mapping[str, object] = field(default_factory=dict)
    parts: tuple[Object, ...] = ()
    before: Mapping[str, object] | None = None

    @property
    def kind(self) -> str:
        return text(self.body.get("kind"))

    @property
    def group(self) -> str:
        return text(self.body.get("apiVersion")).rpartition("/")[0]

    @property
    def metadata(self) -> Mapping[str, object]:
        return mapping(self.body.get("metadata"))

    @property
    def name(self) -> str:
        return text(self.metadata.get("name"))

    @property
    def title(self) -> str:
        """The kind and name in messages: `` ResourceQuota `gpus` ``."""
        kind = self.kind or "object"
        return f"{kind} `{self.name}`" if self.name else f"patch of a {kind}" if self.is_patch else kind

    def place(self, *route: str | int) -> Origin:
        """Return the place of a value: in the last part that has it, or of the object itself."""
        for part in reversed(self.parts):
            found = _find_route(part.body, route)
            if found is not None:
                return part.place(*found)
        return self.at if self.is_inline else self.at / route


def _find_route(body: object, route: Path) -> Path | None:
    """Return a route to a part of a body, or None. Indexes may differ, since built lists may be longer."""
    if not route:
        return ()
    first, rest = route[0], route[1:]
    steps: list[tuple[str | int, object]] = []
    if isinstance(first, int):
        items = enumerate(sequence(body))
        steps += sorted(items, key=lambda step: step[0] != first)
    elif first in mapping(body):
        steps.append((first, mapping(body)[first]))
    found = ((step, _find_route(value, rest)) for step, value in steps)
    return next(((step, *inner) for step, inner in found if inner is not None), None)


class Settings(Value):
    """Settings of the GPU Operator, as a ClusterPolicy has them under `spec` and the chart at the top.

    A ClusterPolicy ``is_whole``. Of values there may be more in other files.
    ``release`` is empty where nothing beside them names it. What stands in a text ``is_inline``, and has one place.
    """

    at: Origin
    spec: Mapping[str, object]
    title: str
    release: str = ""
    is_whole: bool = False
    is_inline: bool = False
    of: Object | None = None

    def place(self, *route: str | int) -> Origin:
        if self.of is not None:
            return self.of.place("spec", *route)
        return self.at if self.is_inline else self.at / route

    def value(self, *route: str | int) -> object:
        return value_at(self.spec, route)

    @property
    def strategy(self) -> ClusterMigStrategy | None:
        """The MIG strategy for all nodes, or None if it is left open."""
        stated = text(self.value("mig", "strategy"))
        known = (ClusterMigStrategy.NONE, ClusterMigStrategy.SINGLE, ClusterMigStrategy.MIXED)
        return next((strategy for strategy in known if strategy.value == stated), None)

    def config_name(self, operand: str) -> str:
        """Return the ConfigMap that an operand reads."""
        return text(self.value(operand, "config", "name"))

    @property
    def config_names(self) -> frozenset[str]:
        return frozenset(filter(None, map(self.config_name, (DEVICE_PLUGIN, MIG_MANAGER))))


class HandFiles(Value, eq=False):
    """The files that are judged together: all that was written by hand for a cluster, or objects made of it.

    ``documents`` are those of each file with their places. Without a ``plan`` objects are judged by themselves, on
    ``gpus``, or on whatever model of the catalog fits where there are none. Then ``settings`` are what they say to the
    GPU Operator.
    """

    kustomizations: tuple[Kustomization, ...] = ()
    objects: tuple[Object, ...] = ()
    documents: Mapping[str, Sequence[tuple[Origin, object]]] = field(default_factory=dict)
    plan: Plan | None = None
    gpus: tuple[Gpu, ...] = ()
    settings: tuple[Settings, ...] = ()

    @property
    def cluster_names(self) -> tuple[str, ...]:
        return self.plan.cluster_names if self.plan else ()

    def of_kind(self, *kinds: str) -> Iterator[Object]:
        return (item for item in self.objects if item.kind in kinds)

    def find_documents(self, path: str) -> Sequence[tuple[Origin, object]]:
        return self.documents.get(path, ())

    def find_kustomization(self, folder: str) -> Kustomization | None:
        return next((item for item in self.kustomizations if item.folder == folder), None)


@lru_cache(maxsize=1)  # a dozen checks on a plan read it
def read(plan: Plan) -> HandFiles:
    """Return the hand-written files of a cluster."""
    return replace(sort_out(plan.hand_written), plan=plan)


def sort_out(documents: Iterable[HandWritten]) -> HandFiles:
    """Sort the documents out. Bodies may have any shape: what fits nowhere is passed over."""
    kustomizations: list[Kustomization] = []
    others: list[tuple[str, HandWritten]] = []
    by_file: dict[str, list[tuple[Origin, object]]] = {}
    for written in documents:
        path = file_of(written.at).path
        by_file.setdefault(path, []).append((written.at, written.body))
        if path.rpartition("/")[2] in KUSTOMIZATION_FILES and isinstance(written.body, Mapping):
            kustomizations.append(Kustomization(written.at, mapping(written.body), dirname(path), written.stage))
        else:
            others.append((path, written))
    patches = [(kustomization, *patch) for kustomization in kustomizations for patch in _patches(kustomization)]
    targets = {kustomization.path_of(path): target for kustomization, _, path, _, target in patches if path}
    objects = [
        *(item for path, written in others for item in _objects(written, path, targets.get(path))),
        *(
            item
            for kustomization, at, _, patch, target in patches
            for body in read_text(patch)
            for item in _objects(HandWritten(kustomization.stage, at, body), "", target)
        ),
    ]
    return HandFiles(tuple(kustomizations), tuple(objects), by_file)


# --- Patches -----------------------------------------------------------------------------------------------------


_Target = Mapping[str, object]
"""The target of a patch, as far as its entry states it."""


def _patches(kustomization: Kustomization) -> Iterator[tuple[Origin, str, str, _Target]]:
    """Yield each patch as its place, the path of a file or a text, and its target."""
    for at, entry, target in kustomization.patches:
        yield at / "patch", text(entry.get("path")), text(entry.get("patch")), target
    for at, patch in kustomization.entries("patchesStrategicMerge"):
        written = text(patch)
        yield (at, "", written, {}) if "\n" in written else (at, written, "", {})


def _objects(written: HandWritten, path: str, target: _Target | None) -> Iterator[Object]:
    """Yield the object of a document, those of a List, or the parts that a JSON patch sets. A text has no path."""
    stage, at, body = written
    is_patch, is_inline = target is not None, not path
    meant = target or {}
    kind = text(meant.get("kind"))
    if isinstance(body, list):
        for index, operation in enumerate(body):
            part = _part(mapping(operation), kind)
            if part is not None:
                place = at if is_inline else at / index / "path"
                yield Object(place, part, path, stage, is_patch=True, is_inline=True, target=meant)
        return
    found = mapping(body)
    if is_list(found):
        for item in objects_in(Printed(at, found)):
            yield Object(at if is_inline else item.at, mapping(item.data), path, stage, is_patch, is_inline)
    elif is_patch or "kind" in found:
        yield Object(at, {"kind": kind, **found}, path, stage, is_patch, is_inline, target=meant)


def _part(operation: Mapping[str, object], kind: str) -> Mapping[str, object] | None:
    """Return the part of an object that a JSON patch sets, such as ``{spec: {hard: {x: 1}}}``, or None."""
    pointer = operation.get("path")
    if operation.get("op") not in ("add", "replace") or not isinstance(pointer, str) or not pointer.startswith("/"):
        return None
    value = operation.get("value")
    for part in reversed(pointer[1:].split("/")):
        key = part.replace("~1", "/").replace("~0", "~")
        value = [value] if key == "-" or key.isdigit() else {key: value}
    return {**mapping(value), "kind": kind}


# --- Any shape ---------------------------------------------------------------------------------------------------


def sync_options(annotations: Mapping[str, object]) -> Mapping[str, str]:
    """Return the sync options of Argo CD in the annotations of an object."""
    options = text(annotations.get(SYNC_OPTIONS)).split(",")
    return dict(option.strip().partition("=")[::2] for option in options if option.strip())


def is_zero(value: object) -> bool:
    """Whether a quantity is none of something."""
    return parse_quantity(str(value)) == 0


# --- By the schemas of its kind ----


UNKNOWN_FIELD = regex("unknown field `([^`]+)`")


def found_in(part: Object, problem: Problem, how: str) -> Finding:
    """Return a problem with an object's schema as a finding at the written place."""
    unknown = UNKNOWN_FIELD.fullmatch(problem.message)
    at = part.place(*problem.path, *(unknown.groups() if unknown else ()))
    is_custom = bool(unknown) and not problem.source.startswith("Kubernetes ")
    return Finding(
        at.key if unknown else at,
        f"{problem.manifest.identity} does not fit its schema: {problem.text}",
        label=problem.message,
        notes=(f"{problem.source}; {how}",),
        help="correct the field" + (", or define the kind of a newer release by `--crds`" if is_custom else ""),
    )


def merged(value: object) -> Mapping[str, object]:
    """Return a patch without the directives that tell kustomize how to merge it."""
    found = _without_directives(value)
    return found if isinstance(found, Mapping) else {}


def _without_directives(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            key: _without_directives(part)
            for key, part in value.items()
            if part is not None and not (isinstance(key, str) and key.startswith("$"))
        }
    if isinstance(value, list):
        return [_without_directives(part) for part in value]
    return value


# --- What they add to the platform ----


def is_meant(pattern: str, name: str) -> bool:
    """Whether kustomize's pattern of names matches an object. An empty one matches all."""
    try:
        return not pattern or re.fullmatch(pattern, name) is not None
    except re.error:
        return False


def further_parameters(files: HandFiles, namespace: str) -> Mapping[str, str]:
    """Return the parameters of a namespace that hand-written Components add, such as other resources."""
    found: dict[str, str] = {}
    for patch in files.of_kind("ConfigMap"):
        name = text(patch.target.get("name")) or patch.name
        if is_meant(name, f"grants-{namespace}"):
            data = mapping(patch.body.get("data"))
            found |= {key: text(value) for key, value in data.items() if key.startswith("other")}
    return found


def written_classes(files: HandFiles) -> Mapping[str, int]:
    """Return the values of hand-written PriorityClasses by name."""
    classes = ((found.name, found.body.get("value")) for found in files.of_kind("PriorityClass"))
    return {name: value for name, value in classes if isinstance(value, int)}


def parts_of(plan: Plan, stage: Stage) -> list[str]:
    """Return the names that a stage may have folders for: pools or namespaces."""
    if stage.is_by_pool:
        return [pool.name for pool in plan.pools]
    return [name for tenant in plan.tenants for name in tenant.spec.namespaces]


def are_parts_unsure(plan: Plan, stage: Stage) -> bool:
    """Whether unresolved documents may have parts of the stage."""
    return bool(plan.broken.pools if stage.is_by_pool else plan.broken.tenants)
