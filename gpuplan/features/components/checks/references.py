"""Every path that a kustomization makes kustomize load.

The fields are those of kustomize's api/types/kustomization.go and of its builtin plugins in api/internal/builtins; what
it takes for another place is in api/internal/git/repospec.go and api/internal/loader/fileloader.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, read_text, sequence, text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning.hand_files import Kustomization


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
    """The files that can be read beside a kustomization. Paths are relative to the repository's root."""

    def find_documents(self, path: str) -> Sequence[tuple[Origin, object]]:
        """The documents of a file with their places; none where there is no such file."""
        ...  # pragma: no cover

    def find_kustomization(self, folder: str) -> Kustomization | None:
        """The kustomization of a folder."""
        ...  # pragma: no cover


def references(kustomization: Kustomization, files: Files) -> Iterator[Reference]:
    """The paths that a kustomization names, itself or in what it configures plugins with."""
    yield from _named(kustomization.at, kustomization.body, _FIELDS)
    for at, entry in _plugins(kustomization):
        is_text = is_inline(entry)
        if entry and (_ADDRESS.match(entry) or not is_text):
            yield _path_or_folder(at, entry)
        for place, body in _configurations(kustomization, at, entry, files):
            for reference in _named(place, body, _CONFIGURED):
                yield Reference(at, reference.value) if is_text else reference  # a text has no places of its own


def charts(kustomization: Kustomization, files: Files) -> Iterator[tuple[Origin, str]]:
    """Where a kustomization downloads Helm charts, and the field or kind that says so."""
    for name in _CHARTS:
        for place, _ in _values(kustomization.at, kustomization.body, name):
            yield place.key, str(place.path[-1])
    for place, entry in _plugins(kustomization):
        for at, body in _configurations(kustomization, place, entry, files):
            if text(mapping(body).get("kind")) == "HelmChartInflationGenerator":
                yield at, "HelmChartInflationGenerator"


def find_doubt(kustomization: Kustomization) -> str:
    """A text in a kustomization that might be an address wherever it stands, or empty; a plugin's file might have any.

    For systems where nothing keeps kustomize from a network: there, what is only most likely read right is not enough.
    """
    files = (entry for _, entry in _plugins(kustomization) if not is_inline(entry))
    return next(files, None) or next((item for item in texts(kustomization.body) if _DOUBTFUL.search(item)), "")


def texts(value: object) -> Iterator[str]:
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


# --- Fields ------------------------------------------------------------------------------------------------------


_path_or_folder = partial(Reference, may_be_folder=True)


def _path_or_objects(at: Origin, value: str) -> Reference | None:
    """A path, unless the text is objects; one that begins with an address is doubtful enough to be taken for one."""
    return Reference(at, value) if _ADDRESS.match(value) or not is_inline(value) else None


def _keyed_path(at: Origin, value: str) -> Reference:
    """A file of a ConfigMap or Secret: a path, or `key=path`."""
    return Reference(at, value if _ADDRESS.match(value) else value.partition("=")[2] or value)


_FOLDERS = ("resources", "bases", "components")
_CHARTS = ("helmCharts", "helmChartInflationGenerator")
_GENERATORS = ("configMapGenerator", "secretGenerator")
_PLUGINS = ("generators", "transformers", "validators")
"""Their entries are the text of a configuration, a file with some, or a folder that builds some."""

_Fields = Mapping[str, Callable[[Origin, str], Reference | None]]
"""Routes to what names paths, and how it does; `[]` stands for each item of a list."""

_GENERATOR: _Fields = {"files []": _keyed_path, "envs []": Reference, "env": Reference}
_CHART: _Fields = {"valuesFile": Reference, "additionalValuesFiles []": Reference}

_FIELDS: _Fields = {
    **{f"{name} []": _path_or_folder for name in _FOLDERS},
    **{f"{name} []": Reference for name in ("crds", "configurations")},
    "patchesStrategicMerge []": _path_or_objects,
    **{f"{name} [] path": Reference for name in ("patches", "patchesJson6902", "replacements")},
    **{f"{name} [] {route}": taken for name in _GENERATORS for route, taken in _GENERATOR.items()},
    **{f"{name} [] {route}": taken for name in _CHARTS for route, taken in _CHART.items()},
    "openapi path": Reference,
}
_CONFIGURED: _Fields = {
    **dict.fromkeys(("path", "targetFilePath"), Reference),
    **_GENERATOR,
    **_CHART,
    "paths []": _path_or_objects,
    "replacements [] path": Reference,
}
"""The paths that the configuration of any builtin plugin may name."""


def _named(at: Origin, body: object, fields: _Fields) -> Iterator[Reference]:
    for route, read in fields.items():
        found = (read(place, text(value)) for place, value in _values(at, body, *route.split()) if text(value))
        yield from filter(None, found)


def _values(at: Origin, body: object, *route: str) -> Iterator[tuple[Origin, object]]:
    """Yield the values at a route. Go's JSON reader takes the names of fields in upper and lower case."""
    if not route:
        yield at, body
        return
    first, *rest = route
    items = enumerate(sequence(body)) if first == "[]" else mapping(body).items()
    for key, value in items:
        if isinstance(key, int) or key.casefold() == first.casefold():
            yield from _values(at / key, value, *rest)


# --- Plugins -----------------------------------------------------------------------------------------------------


def _plugins(kustomization: Kustomization) -> Iterator[tuple[Origin, str]]:
    for name in _PLUGINS:
        for at, entry in _values(kustomization.at, kustomization.body, name, "[]"):
            yield at, text(entry)


def _configurations(
    kustomization: Kustomization, at: Origin, entry: str, files: Files
) -> Iterator[tuple[Origin, object]]:
    """The configurations in an entry's text, its file or its folder's files; those in the text are at the entry."""
    if is_inline(entry):
        yield from ((at, item) for body in read_text(entry) for _, item in _listed(at, body))
        return
    waiting, seen = [kustomization.path_of(entry.strip())], set[str]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for place, body in files.find_documents(path):
            yield from _listed(place, body)
        if inner := files.find_kustomization(path):
            included = (_values(inner.at, inner.body, name, "[]") for name in _FOLDERS)
            waiting += (inner.path_of(text(value).strip()) for values in included for _, value in values)


def _listed(at: Origin, body: object) -> Iterator[tuple[Origin, object]]:
    """An object, or those of a List."""
    yield at, body
    if text(mapping(body).get("kind")).endswith("List"):
        yield from _values(at, body, "items", "[]")
