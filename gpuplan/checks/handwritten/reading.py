"""Hand-written kustomize files, sorted out: kustomizations, objects, and patches as the part of an object they set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from posixpath import dirname, normpath

from gpuplan.diagnostics import Location, Origin, Path
from gpuplan.planning.plan import Plan
from gpuplan.values import Value

KUSTOMIZATION_FILES = ("kustomization.yaml", "kustomization.yml")
ALL_KUSTOMIZATION_FILES = (*KUSTOMIZATION_FILES, "Kustomization")


class Kustomization(Value):
    """A `kustomization.yaml`; ``folder`` is relative to the repository's root."""

    at: Origin
    body: Mapping[str, object]
    folder: str
    stage: str

    @property
    def is_component(self) -> bool:
        return self.body.get("kind") == "Component"


class Object(Value):
    """A Kubernetes object, or the part of one that a patch sets.

    A patch inside a kustomization's text has no places of its own: all of it ``is_inline``, at that text. The kind of a
    JSON patch is its target's, and empty where that is not said.
    """

    at: Origin
    body: Mapping[str, object]
    path: str
    stage: str
    is_patch: bool = False
    is_inline: bool = False

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
        """What to call it: `` ResourceQuota `gpus` ``."""
        kind = self.kind or "object"
        return f"{kind} `{self.name}`" if self.name else f"patch of a {kind}" if self.is_patch else kind

    def place(self, *parts: str | int) -> Origin:
        return self.at if self.is_inline else self.at / parts


class HandFiles(Value):
    """All that was written by hand for one cluster; ``documents`` are those of each file with their places."""

    kustomizations: tuple[Kustomization, ...] = ()
    objects: tuple[Object, ...] = ()
    documents: Mapping[str, Sequence[tuple[Origin, object]]] = field(default_factory=dict)

    def of_kind(self, *kinds: str) -> Iterator[Object]:
        return (item for item in self.objects if item.kind in kinds)

    def find_documents(self, path: str) -> Sequence[tuple[Origin, object]]:
        return self.documents.get(path, ())

    def find_kustomization(self, folder: str) -> Kustomization | None:
        return next((item for item in self.kustomizations if item.folder == folder), None)


class AfterPatching(Value):
    """The source of an object as kustomize built it: places in it are those in what was written by hand.

    That is a document which adds or patches it, or else, not being ``is_exact``, one place for all that is in it.
    """

    at: Origin
    is_exact: bool

    @property
    def title(self) -> str:
        return self.at.source.title

    def locate(self, path: Path, *, on_key: bool = False) -> Location:
        if not self.is_exact:
            return self.at.locate()
        return self.at.source.locate((*self.at.path, *path), on_key=on_key)


_NOTHING = HandFiles()


def read(plan: Plan) -> HandFiles:
    """Sort the documents out. Bodies may have any shape: what fits nowhere is passed over."""
    if not plan.hand_written:
        return _NOTHING
    kustomizations: list[Kustomization] = []
    files: list[tuple[str, str, Origin, object]] = []
    built: list[Object] = []
    documents: dict[str, list[tuple[Origin, object]]] = {}
    for written in plan.hand_written:
        if isinstance(written.at.source, AfterPatching):
            built.append(Object(written.at, mapping(written.body), "", written.stage))
            continue
        path = written.at.locate().file.path
        documents.setdefault(path, []).append((written.at, written.body))
        if path.rpartition("/")[2] in KUSTOMIZATION_FILES and isinstance(written.body, Mapping):
            kustomizations.append(Kustomization(written.at, mapping(written.body), dirname(path), written.stage))
        else:
            files.append((path, written.stage, written.at, written.body))
    targets = _patch_files(kustomizations)
    objects = [item for file in files for item in _objects(*file, targets)]
    objects += (item for kustomization in kustomizations for item in _inline_patches(kustomization))
    objects += built
    return HandFiles(tuple(kustomizations), tuple(objects), documents)


def entries(kustomization: Kustomization, *keys: str) -> Iterator[tuple[Origin, object]]:
    """The entries of lists in a kustomization, with their places."""
    for key in keys:
        for index, entry in enumerate(sequence(kustomization.body.get(key))):
            yield kustomization.at / key / index, entry


def path_in(kustomization: Kustomization, path: str) -> str:
    """A path of a kustomization, relative to the repository's root."""
    return normpath(f"{kustomization.folder}/{path}")


# --- Patches -----------------------------------------------------------------------------------------------------


def _patch_files(kustomizations: Iterable[Kustomization]) -> dict[str, str]:
    """The files that are patches, with the kind that they are to change, where that is said."""
    found: dict[str, str] = {}
    for kustomization in kustomizations:
        for _, entry in entries(kustomization, "patches", "patchesJson6902"):
            path = text(mapping(entry).get("path"))
            if path:
                found[path_in(kustomization, path)] = text(mapping(mapping(entry).get("target")).get("kind"))
        for _, entry in entries(kustomization, "patchesStrategicMerge"):
            if isinstance(entry, str) and "\n" not in entry:
                found[path_in(kustomization, entry)] = ""
    return found


def _inline_patches(kustomization: Kustomization) -> Iterator[Object]:
    for at, entry in entries(kustomization, "patches", "patchesJson6902"):
        patch = mapping(entry)
        kind = text(mapping(patch.get("target")).get("kind"))
        for body in read_text(patch.get("patch")):
            for item in _objects("", kustomization.stage, at / "patch", body, {"": kind}):
                yield _inline(item)
    for at, entry in entries(kustomization, "patchesStrategicMerge"):
        if isinstance(entry, str) and "\n" in entry:
            for body in read_text(entry):
                for item in _objects("", kustomization.stage, at, body, {"": ""}):
                    yield _inline(item)


def _inline(item: Object) -> Object:
    """All at the text itself: what is inside of it has no place."""
    return Object(item.at, item.body, item.path, item.stage, is_patch=True, is_inline=True)


def _objects(path: str, stage: str, at: Origin, body: object, targets: Mapping[str, str]) -> Iterator[Object]:
    """The object of a document, those of a List, or the parts that a JSON patch sets."""
    is_patch = path in targets
    if isinstance(body, list):
        for index, operation in enumerate(body):
            part = _part(mapping(operation), targets.get(path, ""))
            if part is not None:
                place = at if path == "" else at / index / "path"
                yield Object(place, part, path, stage, is_patch=True, is_inline=True)
        return
    found = mapping(body)
    if text(found.get("kind")) == "List":
        for index, item in enumerate(sequence(found.get("items"))):
            yield Object(at / "items" / index, mapping(item), path, stage, is_patch)
    elif "kind" in found:
        yield Object(at, found, path, stage, is_patch)
    elif is_patch:
        yield Object(at, {**found, "kind": targets[path]}, path, stage, is_patch)


def _part(operation: Mapping[str, object], kind: str) -> Mapping[str, object] | None:
    """What an operation of a JSON patch sets, as part of one: ``/spec/hard/x`` is ``{spec: {hard: {x: 1}}}``."""
    pointer = operation.get("path")
    if operation.get("op") not in ("add", "replace") or not isinstance(pointer, str) or not pointer.startswith("/"):
        return None
    value = operation.get("value")
    for part in reversed(pointer[1:].split("/")):
        key = part.replace("~1", "/").replace("~0", "~")
        value = [value] if key == "-" or key.isdigit() else {key: value}
    return {**mapping(value), "kind": kind}


# --- Any shape ---------------------------------------------------------------------------------------------------


def mapping(value: object) -> Mapping[str, object]:
    """The value if it is a mapping, less keys that are no text; else nothing."""
    return {key: item for key, item in value.items() if isinstance(key, str)} if isinstance(value, Mapping) else {}


def sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def value_at(body: object, route: Iterable[str]) -> object:
    for part in route:
        body = mapping(body).get(part)
    return body


def inside(body: Mapping[str, object], *route: str) -> Mapping[str, object]:
    return mapping(value_at(body, route))


def read_text(value: object) -> list[object]:
    """The documents of a YAML text inside a value; none where it is no text or cannot be read."""
    if not isinstance(value, str):
        return []
    import yaml

    try:
        return list(yaml.load_all(value, Loader=yaml.CSafeLoader))
    # Besides its own errors PyYAML lets through those of dates that do not exist and of nesting without end.
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
