"""A platform on the disk as people have it: built, and with a dump of each of its clusters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cli.runs import run
from tests.features.live.round_trip import is_dumped, nodes_of
from tests.laws.acting.effects import effects_of
from tests.laws.tracing.policies import Policies


class Built:
    """A platform that is built; ``folder`` is its root, and goes with this object."""

    def __init__(self, policies: Policies, folder: TemporaryDirectory[str]) -> None:
        self.policies = policies
        self._folder = folder
        self.root = Path(folder.name)
        self._printed: dict[tuple[str, ...], str] = {}
        self._dumps: dict[str, Path] = {}

    @cached_property
    def out(self) -> Mapping[str, Mapping[str, bytes]]:
        """The files that are applied, by cluster and path."""
        return {name: _files(self.root / "out" / name) for name in self.policies.clusters}

    def dump(self, cluster: str) -> Path:
        """Return a folder with what a cluster shows after all that is built has been applied to it."""
        if cluster not in self._dumps:
            folder = self.root / "dumps" / cluster
            (plan,) = effects_of(self.policies, (cluster,)).repository.plans
            _write(folder, {**self.out[cluster], "nodes.yaml": nodes_of(plan)})
            self._dumps[cluster] = folder
        return self._dumps[cluster]

    def printed(self, *arguments: str) -> str:
        """Return what a command prints, with a word in the place of the platform's root; it ends without trouble."""
        if arguments not in self._printed:
            done = run("-C", str(self.root), *arguments)
            assert done.code in (0, 1), done.err
            self._printed[arguments] = done.out.replace(str(self.root), "ROOT")
        return self._printed[arguments]


def build_all(policies: Policies) -> Built | None:
    """Build a platform in a folder of its own; None if it is not valid."""
    folder = TemporaryDirectory()
    root = Path(folder.name)
    _write(root, policies.files)
    return Built(policies, folder) if run("-C", str(root), "build", "--kustomize", "off").code == 0 else None


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def _files(folder: Path) -> dict[str, bytes]:
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {path: data for path, data in files.items() if is_dumped(path)}
