"""Somebody who knows nothing of gpuplan and does what it prints: edits, validates, does the first thing that helps."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from tests.cli.runs import Run, run
from tests.laws.orders.asking import build
from tests.laws.orders.oracle import labels_at
from tests.laws.orders.platforms import CLUSTER, GPU, Platform, gpus_of
from tests.laws.orders.trees import Labels, Tree

OVERLAY: Final = f"overlays/{CLUSTER}"
FILES: Final = ("policies/all.yaml", f"{OVERLAY}/own.yaml")
MOST: Final = 40
_SPAN: Final = re.compile(r"`([^`]+)`")
_IGNORED: Final = re.compile(r"# gpuplan: ignore\[GPU\d+\] REASON")
_NEW_LAYOUT: Final = re.compile(r"division as layout `([^`]+)`")
_HELP: Final = re.compile(r"= help: (.*)")


@dataclass
class Walk:
    """What was done after an edit, one line each, and what did not end as it was said to."""

    seed: int
    name: str
    done: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class StuckError(Exception):
    """Nothing that is printed leads on."""


class NoWayError(Exception):
    """Guarantees exclude this way; another one is named."""


class Follower:
    """A repository under Git, and the cluster that its last commit has been synced to."""

    def __init__(self, root: Path, before: Platform, after: Platform, walk: Walk) -> None:
        self.root, self.before, self.wish, self.after, self.walk = root, before, after, after.copy(), walk
        self.nodes = dict(gpus_of(before, after))
        self.trees: list[Tree] = []
        self.labels: Mapping[str, Labels] = {}
        before.write(root)
        self.git("init", "-q")
        self.merge()

    # --- What people do ---

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
        done = subprocess.run(["git", *who, *arguments], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout

    def type(self, command: str) -> Run:
        """A command as it is printed; words that stand for something are replaced."""
        _, *arguments = shlex.split(command.replace("FILE", str(self.listed)))
        done = run(*arguments, cwd=self.root)
        self.walk.done.append(f"{command} -> {done.code}")
        return done

    @property
    def listed(self) -> Path:
        """`kubectl get nodes -o json`, in a file beside the repository."""
        path = self.root.parent / "nodes.json"
        items = [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels)}}
            for name, labels in self.labels.items()
        ]
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
        return path

    def merge(self) -> None:
        """Build, commit, and have all folders synced: nodes get their labels."""
        done = self.type("gpuplan build")
        for command in _SPAN.findall("".join(_HELP.findall(done.out + done.err))) if done.code else ():
            if command.startswith("gpuplan build --prune"):
                done = self.type(command)
        if done.code:
            raise StuckError(f"a merge has errors: {done.out[-400:]} {done.err[-400:]}")
        self.git("add", "-A")
        self.git("commit", "-qm", "step", "--allow-empty")
        built = build(self.root)
        if built.errors:
            raise StuckError(f"a merge has errors: {built.errors[:2]}")
        self.trees.append(built.tree)
        self.labels = labels_at([self.trees[-1]], self.nodes, {})

    # --- What is printed ---

    def findings(self, *options: str) -> list[dict[str, Any]]:
        done = run("validate", *options, "-o", "json", cwd=self.root)
        if done.code > 1:
            raise StuckError(f"validate ends with {done.code}: {done.err}")
        found: list[dict[str, Any]] = json.loads(done.out)["diagnostics"]
        return found

    def follow(self) -> None:
        """Edit, do what helps until no error is left, and merge."""
        self.write()
        self.mend()
        self.merge()
        self.prune()

    def mend(self) -> None:
        """Do what helps until no error is left."""
        for _ in range(MOST):
            found = self.findings("--against", "HEAD", "--nodes", str(self.listed))
            errors = [item for item in found if item["severity"] == "error"]
            if not errors:
                return
            self.obey(errors[0])
        raise StuckError("there is an error after every step")

    def write(self) -> None:
        """The policies as wished for up to now."""
        for path in FILES:
            (self.root / path).unlink(missing_ok=True)
        self.after.write(self.root)

    def read(self) -> None:
        """What commands have made of the policies."""
        for path in FILES:
            text = (self.root / path).read_text(encoding="utf-8-sig") if (self.root / path).exists() else ""
            for body in filter(None, yaml.safe_load_all(text)):
                self.after.documents[body["kind"], body["metadata"]["name"]] = body["spec"]

    def obey(self, found: Mapping[str, Any]) -> None:
        text = found.get("help") or ""
        self.walk.done.append(f"{found['code']} {found['message']}: {text}")
        ways = [way for way in re.split(r"[;,] or ", text) if "`gpuplan " in way or _IGNORED.search(way)]
        before = self.after.copy()
        for way in ways:
            try:
                return self.do(found, way, text)
            except NoWayError:
                self.after = before
                self.write()
        raise StuckError(f"nothing to type: {found['code']} {found['message']}: {text}")

    def do(self, found: Mapping[str, Any], first: str, text: str) -> None:
        """One of the ways that a help names."""
        spans = _SPAN.findall(first)
        commands = [span for span in spans if span.startswith("gpuplan ")]
        ignored = [span for span in spans if _IGNORED.fullmatch(span)]
        pools = re.findall(r"gpuplan rollout (\S+)", first)
        if "take it back" in first:
            self.take_back(pools)
        if named := _NEW_LAYOUT.search(first):
            self.name_layout(pools, named[1], text)
        for command in commands:
            if command.startswith("gpuplan rollout "):
                self.roll(command)
            elif (done := self.type(command)).code:
                raise StuckError(f"`{command}` ends with {done.code}: {done.err}")
        if ignored and not commands:
            self.say_so(found, ignored[0].replace("REASON", "the nodes are empty"))

    def take_back(self, pools: Sequence[str]) -> None:
        """They share their GPUs as before, by layouts that are there again."""
        for pool in pools:
            sharing = self.before.pools[pool]["sharing"]
            self.after.pools[pool]["sharing"] = sharing
            if layout := sharing.get("mig", {}).get("layout"):
                self.after.documents.setdefault(("MigLayout", layout), self.before.of("MigLayout")[layout])
        self.after.mend()
        self.write()

    def name_layout(self, pools: Sequence[str], name: str, text: str) -> None:
        """What is divided otherwise now gets a name of its own, and a layout that was edited is as before."""
        old, new = self.before.of("MigLayout"), self.wish.of("MigLayout")
        edited = [each for each in old if each in new and f"leave layout `{each}`" in text]
        for layout in edited:
            self.after.documents["MigLayout", layout] = old[layout]
            self.after.documents["MigLayout", name] = new[layout]
        if not edited:
            instances = self.wish.pools[pools[0]]["sharing"]["mig"]["instances"]
            self.after.documents["MigLayout", name] = {"gpu": GPU, "instances": instances}
        self.after.mend()
        self.write()

    def say_so(self, found: Mapping[str, Any], comment: str) -> None:
        place = found["location"]
        path = self.root / place["file"]
        lines = path.read_text(encoding="utf-8").splitlines()
        lines[place["start"]["line"] - 1] += f"  {comment}"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def roll(self, command: str) -> None:
        """Each step is merged; the command without its end goes on."""
        for _ in range(MOST):
            done = self.type(f"{command} --nodes FILE --write")
            if "no safe way" in done.out and "or all nodes at once" in done.out:
                raise NoWayError(done.out)
            if done.code:
                raise StuckError(f"`{command}` ends with {done.code}: {done.out[-300:]} {done.err}")
            if not self.git("status", "--porcelain"):
                self.read()
                return
            self.mend()
            self.merge()
            command = re.sub(r" --to \S+", "", command)
        raise StuckError("a rollout never ends")

    def prune(self) -> None:
        if not (self.root / OVERLAY / "retained").exists():
            return
        for _ in range(MOST):
            done = self.type("gpuplan retain --prune --write --nodes FILE")
            empty = re.findall(
                r"^kept (\S+): .*\n  nodes do not show it: delete the file once `kubectl", done.err, re.MULTILINE
            )
            for path in empty:  # no work is in a queue
                (self.root / path).unlink()
            if not self.git("status", "--porcelain"):
                return
            self.merge()
        raise StuckError("retained documents never go")


def end(follower: Follower) -> Iterator[str]:
    """What is not as it is said to be in the end."""
    root = follower.root
    yield from (f"an error in the end: {found}" for found in follower.findings() if found["severity"] == "error")
    if (done := run("build", "--check", cwd=root)).code:
        yield f"out/ is not current: {done.out} {done.err}"
    if changed := follower.git("status", "--porcelain"):
        yield f"not committed: {changed}"
    yield from (f"left over: {path.name}" for path in (root / OVERLAY).rglob("rollout-*"))
    yield from (f"left over: {path.name}" for path in (root / OVERLAY).rglob("retained/*"))


def walked(seed: int, make: Callable[[random.Random], tuple[str, Platform, Platform] | None]) -> Walk:
    """The walk of one seed; what cannot be made is made anew."""
    rng = random.Random(seed)
    name, before, after = next(filter(None, (make(rng) for _ in range(200))))
    walk = Walk(seed, name)
    with TemporaryDirectory() as home:
        root = Path(home) / "work"
        root.mkdir()
        try:
            follower = Follower(root, before, after, walk)
            follower.follow()
        except StuckError as stuck:
            walk.problems.append(str(stuck))
        else:
            walk.problems += end(follower)
    return walk
