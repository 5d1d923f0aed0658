"""Hand-written kustomize files, sorted out: kustomizations, objects, and patches as the part of an object they set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from posixpath import dirname, normpath
from typing import TYPE_CHECKING, Final

from gpuplan.aliases import has_few_aliases
from gpuplan.catalog import Gpu
from gpuplan.depth import is_deep
from gpuplan.diagnostics import Origin, Path
from gpuplan.documents import file_of
from gpuplan.documents.printed import Printed, is_list, objects_in
from gpuplan.manifests import parse_quantity
from gpuplan.planning.plan import HandWritten, Plan
from gpuplan.planning.sync_names import SYNC_OPTIONS
from gpuplan.values import Value

if TYPE_CHECKING:
    from gpuplan.checks.handwritten.settings import Settings

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

    def entries(self, *keys: str) -> Iterator[tuple[Origin, object]]:
        """The entries of lists, with their places."""
        for key in keys:
            for index, entry in enumerate(sequence(self.body.get(key))):
                yield self.at / key / index, entry

    @property
    def patches(self) -> Iterator[tuple[Origin, Mapping[str, object], Mapping[str, object]]]:
        """The entries of patches with their places, and what they are for, as far as they say so."""
        for at, entry in self.entries("patches", "patchesJson6902"):
            yield at, mapping(entry), inside(mapping(entry), "target")

    @property
    def generators(self) -> Iterator[tuple[Origin, Mapping[str, object], str]]:
        """What makes ConfigMaps, with its place and the name that it gives."""
        for at, entry in self.entries("configMapGenerator"):
            yield at, mapping(entry), text(mapping(entry).get("name"))

    def path_of(self, path: str) -> str:
        """A path that is written here, relative to the repository's root."""
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
        """What to call it: `` ResourceQuota `gpus` ``."""
        kind = self.kind or "object"
        return f"{kind} `{self.name}`" if self.name else f"patch of a {kind}" if self.is_patch else kind

    def place(self, *route: str | int) -> Origin:
        """Where a value was written: in the last part that has it, or where the object as such is."""
        for part in reversed(self.parts):
            found = _find_route(part.body, route)
            if found is not None:
                return part.place(*found)
        return self.at if self.is_inline else self.at / route


def _find_route(body: object, route: Path) -> Path | None:
    """A route to a part of a body, with other indexes where lists of it are longer in what was made of it."""
    if not route:
        return ()
    first, rest = route[0], route[1:]
    steps: list[tuple[str | int, object]] = []
    if isinstance(first, int):
        items = enumerate(sequence(body))
        steps += sorted(items, key=lambda item: item[0] != first)
    elif first in mapping(body):
        steps.append((first, mapping(body)[first]))
    found = ((step, _find_route(value, rest)) for step, value in steps)
    return next(((step, *inner) for step, inner in found if inner is not None), None)


class HandFiles(Value, eq=False):
    """What is judged together: all that was written by hand for a cluster, or objects that were made of it.

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
    """What was written by hand for a cluster."""
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
"""What a patch is for, as far as its entry says so."""


def _patches(kustomization: Kustomization) -> Iterator[tuple[Origin, str, str, _Target]]:
    """Where each patch is, as the path of a file or as a text, and its target."""
    for at, entry, target in kustomization.patches:
        yield at / "patch", text(entry.get("path")), text(entry.get("patch")), target
    for at, patch in kustomization.entries("patchesStrategicMerge"):
        written = text(patch)
        yield (at, "", written, {}) if "\n" in written else (at, written, "", {})


def _objects(written: HandWritten, path: str, target: _Target | None) -> Iterator[Object]:
    """The object of a document, those of a List, or the parts that a JSON patch sets; inside of a text without path."""
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


def value_at(body: object, route: Iterable[str | int]) -> object:
    for part in route:
        body = next(iter(sequence(body)[part : part + 1]), None) if isinstance(part, int) else mapping(body).get(part)
    return body


def inside(body: Mapping[str, object], *route: str) -> Mapping[str, object]:
    return mapping(value_at(body, route))


def parts_with(body: object, *keys: str) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """The parts of a body that have one of some keys, such as pods' specs, wherever their kind has them.

    An alias may have a part stand in many places, in itself as well: each is found once.
    """
    seen: set[int] = set()
    left: list[tuple[Path, object]] = [((), body)]
    while left:
        route, part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Mapping) and not part.keys().isdisjoint(keys):
            yield route, mapping(part)
        items = enumerate(part) if isinstance(part, list) else mapping(part).items()
        left += reversed([((*route, key), value) for key, value in items if isinstance(value, list | Mapping)])


def sync_options(annotations: Mapping[str, object]) -> Mapping[str, str]:
    """What the annotations of an object tell Argo CD."""
    options = text(annotations.get(SYNC_OPTIONS)).split(",")
    return dict(option.strip().partition("=")[::2] for option in options if option.strip())


def is_zero(value: object) -> bool:
    """Whether a quantity is none of something."""
    return isinstance(value, str | int | float) and parse_quantity(str(value)) == 0


MAX_TEXT: Final = 3 * 2**19
"""The characters of a text in a value that is read: etcd takes no object of more than 1.5 MiB."""


def read_text(value: object) -> list[object]:
    """The documents of a YAML text inside a value; none where it is no text or cannot be read."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return []
    import yaml

    try:
        is_small = not is_deep(value) and has_few_aliases(value)
        return list(yaml.load_all(value, Loader=yaml.CSafeLoader)) if is_small else []
    except (yaml.YAMLError, ValueError):  # PyYAML lets through the errors of dates that do not exist
        return []


def is_yaml(value: str) -> bool:
    """Whether the first document of a text can be parsed, whatever is in it; what is too long is not judged."""
    if len(value) > MAX_TEXT:
        return True
    import yaml

    try:
        if is_deep(value) or not has_few_aliases(value):
            return False
        loader = yaml.CSafeLoader(value)
        _ = loader.check_node() and loader.get_node()
    except yaml.YAMLError:
        return False
    return True
