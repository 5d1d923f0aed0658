"""A folder that people edit as gpuplan says, and the commits of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cli.runs import Run, run
from tests.laws.orders.asking import Said, ask, build
from tests.laws.orders.platforms import CLUSTER, Platform
from tests.laws.orders.trees import Labels, Tree

RETAINED = f"overlays/{CLUSTER}/retained"


class RefusedError(Exception):
    """What the policies are wrong with, by themselves."""


class Repository:
    """A working tree, and a folder and a tree of each commit."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "work"
        self.root.mkdir()
        self.commits: list[Path] = []
        self.trees: list[Tree] = []
        self.files: list[Mapping[str, bytes]] = []

    def put(self, platform: Platform) -> None:
        """The platform as wished; what is retained stays."""
        platform.write(self.root)

    def commit(self) -> Tree:
        """Build, and keep it all."""
        built = build(self.root)
        if built.errors:
            raise RefusedError(*built.errors)
        folder = self.home / str(len(self.commits))
        shutil.copytree(self.root, folder)
        self.commits.append(folder)
        self.files.append(built.files)
        self.trees.append(built.tree)
        return built.tree

    def forget(self, keep: int) -> None:
        """Take commits back but for the first ones; the working tree stays."""
        for folder in self.commits[keep:]:
            shutil.rmtree(folder)
        del self.commits[keep:], self.trees[keep:], self.files[keep:]

    def undo(self) -> None:
        """Bring the working tree back to the last commit, and forget none."""
        shutil.rmtree(self.root)
        shutil.copytree(self.commits[-1], self.root)

    def ask(self, listed: Mapping[str, Labels] | None = None) -> Said:
        """What is said of the step from the last commit to the working tree."""
        return ask(self.commits[-1], self.root, listed=listed)

    def retain(self, *options: str) -> Run:
        return run("retain", "--write", "--against", str(self.commits[-1]), *options, cwd=self.root)

    def prune(self, listed: Mapping[str, Labels]) -> Run:
        return self.retain("--prune", "--nodes", str(self.list_nodes(listed)))

    def list_nodes(self, listed: Mapping[str, Labels]) -> Path:
        """What `kubectl get nodes -o json` prints."""
        path = self.home / "nodes.json"
        items = [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels)}}
            for name, labels in listed.items()
        ]
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
        return path

    @property
    def retained(self) -> dict[str, str]:
        folder = self.root / RETAINED
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))}


@contextmanager
def repository() -> Iterator[Repository]:
    with TemporaryDirectory() as home:
        yield Repository(Path(home))
