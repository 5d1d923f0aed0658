"""Every path that a kustomization makes kustomize load.

The fields are those of kustomize's api/types/kustomization.go and of its builtin plugins in api/internal/builtins; what
it takes for another place is in api/internal/git/repospec.go and api/internal/loader/fileloader.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from gpuplan.checks.handwritten.reading import Kustomization, mapping, path_in, read_text, sequence, text
from gpuplan.diagnostics import Origin
from gpuplan.patterns import regex
from gpuplan.values import Value


class Reference(Value):
    """A path as it is written; where ``may_be_folder``, kustomize takes folders and Git repositories, too."""

    at: Origin
    value: str
    may_be_folder: bool = False

    @property
    def name(self) -> str:
        """The path as messages show it: its first line, without the blanks around it."""
        return next(iter(self.value.strip().splitlines()), "")

    @property
    def is_remote(self) -> bool:
        """Whether some release of kustomize would look for it in another place."""
        in_any_case = _ADDRESS.match(self.value) is not None
        return in_any_case or (self.may_be_folder and _REPOSITORY.match(self.value) is not None)


class Files(Protocol):
    """What can be read beside a kustomization; paths are relative to the repository's root."""

    def find_documents(self, path: str) -> Sequence[tuple[Origin, object]]:
        """The documents of a file with their places; none where there is no such file."""
        ...  # pragma: no cover

    def find_kustomization(self, folder: str) -> Kustomization | None:
        """The kustomization of a folder."""
        ...  # pragma: no cover


def references(kustomization: Kustomization, files: Files) -> Iterator[Reference]:
    """The paths that a kustomization names, itself or in what it configures plugins with."""
    at, body = kustomization.at, kustomization.body
    for name, read in _FIELDS.items():
        for place, entry in _items(at, body, name):
            yield from read(place, entry)
    for place, value in _values(at, body, "openapi"):
        yield from _path_of(place, value)
    for name in _PLUGINS:
        for place, entry in _items(at, body, name):
            yield from _plugin(kustomization, place, text(entry), files)


def charts(kustomization: Kustomization, files: Files) -> Iterator[tuple[Origin, str]]:
    """Where a kustomization downloads Helm charts, and the field or kind that says so."""
    for name in _CHARTS:
        for place, _ in _values(kustomization.at, kustomization.body, name):
            yield place.key, str(place.path[-1])
    for name in _PLUGINS:
        for place, entry in _items(kustomization.at, kustomization.body, name):
            for at, body in _configurations(kustomization, place, text(entry), files):
                if text(mapping(body).get("kind")) == "HelmChartInflationGenerator":
                    yield at, "HelmChartInflationGenerator"


def find_doubt(kustomization: Kustomization) -> str:
    """A text in a kustomization that might be an address wherever it stands, or empty; a plugin's file might have any.

    For systems where nothing keeps kustomize from a network: there, what is only most likely read right is not enough.
    """
    for name in _PLUGINS:
        for _, entry in _items(kustomization.at, kustomization.body, name):
            if not is_inline(text(entry)):
                return text(entry)
    return next((item for item in _texts(kustomization.body) if _DOUBTFUL.search(item)), "")


def _texts(value: object) -> Iterator[str]:
    """Every text inside of plain data, keys too."""
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            waiting += (*item.keys(), *item.values())
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str):
            yield item


def is_inline(value: str) -> bool:
    """Whether an entry is objects, and not the path of a file with some."""
    documents = [item for item in read_text(value) if item is not None]
    return bool(documents) and all("kind" in mapping(item) for item in documents)


_FOLDERS = ("resources", "bases", "components")
_CHARTS = ("helmCharts", "helmChartInflationGenerator")
_PLUGINS = ("generators", "transformers", "validators")
"""Their entries are the text of a configuration, a file with some, or a folder that builds some."""

# Blanks and line ends around an address make it none for some releases, and are nothing that anybody means.
_ADDRESS = regex(
    r"\s*(?:[a-z][a-z0-9+.-]*://|https?:|git@|git::"
    r"|(?:github\.com|gitlab\.com|bitbucket\.org|dev\.azure\.com)[/:]|.*\?(?:ref|version)=|.*\.git(?://|$))",
    re.IGNORECASE,
)
_REPOSITORY = regex(
    r"\s*(?:[a-z][a-z0-9-]*@(?!.*\.(?:ya?ml|json)\s*$)[^/:]*[/:].*|.*/_git/|[^/\s]*\.[^/\s]*:[0-9]*/)", re.IGNORECASE
)

_DOUBTFUL = regex(r"://|https?:|git::|@[^\s]*[:/]|\?(?:ref|version)=|\.git\b", re.IGNORECASE)


# --- Fields, whose names Go's JSON reader takes in upper and lower case ------------------------------------------


def _values(at: Origin, body: object, name: str) -> Iterator[tuple[Origin, object]]:
    for key, value in mapping(body).items():
        if key.casefold() == name.casefold():
            yield at / key, value


def _items(at: Origin, body: object, name: str) -> Iterator[tuple[Origin, object]]:
    for place, value in _values(at, body, name):
        for index, item in enumerate(sequence(value)):
            yield place / index, item


def _field(at: Origin, body: object, name: str) -> Iterator[Reference]:
    for place, value in _values(at, body, name):
        yield from _path(place, value)


def _path(at: Origin, value: object) -> Iterator[Reference]:
    if text(value):
        yield Reference(at, text(value))


def _path_or_folder(at: Origin, value: object) -> Iterator[Reference]:
    if text(value):
        yield Reference(at, text(value), may_be_folder=True)


def _path_or_objects(at: Origin, value: object) -> Iterator[Reference]:
    """A path, unless the text is objects; one that begins with an address is doubtful enough to be taken for one."""
    if _ADDRESS.match(text(value)) or not is_inline(text(value)):
        yield from _path(at, value)


def _path_of(at: Origin, body: object) -> Iterator[Reference]:
    yield from _field(at, body, "path")


def _generator(at: Origin, body: object) -> Iterator[Reference]:
    """The files of a ConfigMap or Secret: paths, or `key=path`."""
    for place, entry in _items(at, body, "files"):
        value = text(entry)
        yield from _path(place, value if _ADDRESS.match(value) else value.partition("=")[2] or value)
    for place, entry in _items(at, body, "envs"):
        yield from _path(place, entry)
    yield from _field(at, body, "env")


def _chart(at: Origin, body: object) -> Iterator[Reference]:
    yield from _field(at, body, "valuesFile")
    for place, entry in _items(at, body, "additionalValuesFiles"):
        yield from _path(place, entry)


_FIELDS: Mapping[str, Callable[[Origin, object], Iterator[Reference]]] = {
    **dict.fromkeys(_FOLDERS, _path_or_folder),
    **dict.fromkeys(("crds", "configurations"), _path),
    "patchesStrategicMerge": _path_or_objects,
    **dict.fromkeys(("patches", "patchesJson6902", "replacements"), _path_of),
    **dict.fromkeys(("configMapGenerator", "secretGenerator"), _generator),
    **dict.fromkeys(_CHARTS, _chart),
}
"""What the entries of each list name."""


# --- Plugins -----------------------------------------------------------------------------------------------------


def _plugin(kustomization: Kustomization, at: Origin, entry: str, files: Files) -> Iterator[Reference]:
    """The entry itself if it is a path, and what its configurations name; what is in a text has no place of its own."""
    is_text = is_inline(entry)
    if _ADDRESS.match(entry) or not is_text:
        yield from _path_or_folder(at, entry)
    for place, body in _configurations(kustomization, at, entry, files):
        for reference in _configured(place, body):
            yield Reference(at, reference.value) if is_text else reference


def _configurations(
    kustomization: Kustomization, at: Origin, entry: str, files: Files
) -> Iterator[tuple[Origin, object]]:
    """The configurations in an entry's text, its file or its folder's files; those in the text are at the entry."""
    if is_inline(entry):
        yield from ((at, item) for body in read_text(entry) for _, item in _listed(at, body))
        return
    waiting, seen = [path_in(kustomization, entry.strip())], set[str]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for place, body in files.find_documents(path):
            yield from _listed(place, body)
        inner = files.find_kustomization(path)
        waiting += _included(inner) if inner else ()


def _included(kustomization: Kustomization) -> Iterator[str]:
    for name in _FOLDERS:
        for _, entry in _items(kustomization.at, kustomization.body, name):
            yield path_in(kustomization, text(entry).strip())


def _listed(at: Origin, body: object) -> Iterator[tuple[Origin, object]]:
    """An object, or those of a List."""
    yield at, body
    if text(mapping(body).get("kind")).endswith("List"):
        yield from _items(at, body, "items")


def _configured(at: Origin, body: object) -> Iterator[Reference]:
    """What the configuration of any builtin plugin may name."""
    yield from _path_of(at, body)
    yield from _field(at, body, "targetFilePath")
    yield from _generator(at, body)
    yield from _chart(at, body)
    for place, entry in _items(at, body, "paths"):
        yield from _path_or_objects(place, entry)
    for place, entry in _items(at, body, "replacements"):
        yield from _path_of(place, entry)
