"""Digests of all that folders apply."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from posixpath import dirname

from gpuplan.compiler.manifests import File, Manifest, object_path, to_yaml
from gpuplan.compiler.manifests.bodies import digest
from gpuplan.compiler.planning.plan import Plan


class Contents:
    """What is in each folder so far, by what it is called there."""

    def __init__(self) -> None:
        self._found: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def add(self, manifest: Manifest) -> None:
        self._add(manifest.folder, object_path(manifest), to_yaml(manifest.body))

    def add_files(self, files: Iterable[File]) -> None:
        """Nothing applies them, but a chart reads its values."""
        for file in files:
            self._add(dirname(file.path), file.path, file.data.decode())

    def add_components(self, plan: Plan, components: Mapping[str, Sequence[str]]) -> None:
        """What is hand-written, as data: comments and the order of keys say nothing. Only YAML is read."""
        documents: defaultdict[str, list[str]] = defaultdict(list)
        for written in plan.hand_written if components else ():
            text = json.dumps(_plain(written.body), sort_keys=True, default=str)
            documents[written.at.locate().file.path].append(text)
        for folder, included in components.items():
            for path, texts in documents.items():
                if any(path.startswith(f"{component}/") for component in included):
                    self._add(folder, path, "\n".join(texts))

    def digest(self, folder: str) -> str:
        """One of all that is in a folder: it changes when that does, and only then."""
        return digest(self._found[folder])

    def _add(self, folder: str, name: str, text: str) -> None:
        self._found[folder][name] = sha256(text.encode()).hexdigest()


def _plain(body: object) -> object:
    """The same with texts for keys: a document that people wrote may have any."""
    if isinstance(body, Mapping):
        return {str(key): _plain(value) for key, value in body.items()}
    if isinstance(body, list | tuple):
        return [_plain(value) for value in body]
    return body
