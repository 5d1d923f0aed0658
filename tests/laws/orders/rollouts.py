"""Rollouts of pools to their end, and back from the middle: what is granted is there in every state and order."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.cli.runs import Run, run
from tests.laws.orders.oracle import UNSAFE, Kind, judge, labels_at
from tests.laws.orders.platforms import DIVISIONS, GPU, Platform, Spec, gpus_of, random_cluster
from tests.laws.orders.repository import Repository, repository

POOL: Final = "main"
MOST_STEPS: Final = 60


@dataclass
class Rollout:
    """A rollout that was tried; ``way`` is empty where gpuplan refuses it."""

    seed: int
    name: str
    guaranteed: int
    nodes: int
    steps: int = 0
    steps_back: int = 0
    way: str = ""
    problems: list[str] = field(default_factory=list)


class _Case:
    def __init__(self, rng: random.Random) -> None:
        mode = rng.choice(("nfd", "nfd", "node", "external"))
        self.platform = Platform(random_cluster(rng, mode, scheduler=rng.choice(("kubernetes", "kueue"))))
        self.platform.cluster.pop("monitoring", None)
        self.nodes = rng.randint(3, 12)
        self.away = rng.randint(1, 3)
        first, second = _divisions(rng)
        for name, division in (("first", first), ("second", second)):
            self.platform.documents["MigLayout", name] = {"gpu": GPU, "instances": dict(division)}
        self.sharing, self.to = _ways(rng)
        names = [f"gpu-{number}" for number in range(1, self.nodes + 1)]
        spec: Spec = {
            "gpu": GPU,
            "nodes": {"count": self.nodes, "gpusPerNode": rng.choice((2, 4, 8)), "names": names},
            "sharing": self.sharing,
            "workloadTypes": ["training"],
            "disruption": {"approval": rng.choice(("manual", "automatic")), "maxUnavailable": self.away},
        }
        self.platform.documents["Pool", POOL] = spec
        self.platform.nodes = dict.fromkeys(names, POOL)
        self.guaranteed = self._grant(rng, first, second)
        if rng.random() < 0.3:
            others = [f"other-{number}" for number in range(1, 3)]
            self.platform.documents["Pool", "other"] = {
                **spec,
                "nodes": {"count": 2, "gpusPerNode": 4, "names": others},
                "sharing": {"timeSlicing": {"replicas": 3}},
            }
            self.platform.nodes |= dict.fromkeys(others, "other")

    def _grant(self, rng: random.Random, first: Mapping[str, int], second: Mapping[str, int]) -> int:
        """On a unit that both ways have, if there is one: so many as are there while nodes are away."""
        both = sorted(set(first) & set(second))
        quotas: list[Spec] = []
        if self.to == "second" and "mig" in self.sharing and both:
            unit = rng.choice(both)
            least = min(first[unit], second[unit]) * self.platform.pools[POOL]["nodes"]["gpusPerNode"]
            most = least * (self.nodes - 1)
            quotas = [{"pool": POOL, "unit": unit, "guaranteed": rng.randint(max(1, most // 2), most)}]
        self.platform.documents["Tenant", "team"] = {"namespaces": ["team"], "quotas": quotas}
        return sum(quota["guaranteed"] for quota in quotas)


def _divisions(rng: random.Random) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Two of them, that mostly have a profile in common, which can be granted all the way."""
    while True:
        first, second = rng.sample(DIVISIONS, 2)
        if set(first) & set(second) or rng.random() < 0.1:
            return first, second


def _ways(rng: random.Random) -> tuple[Spec, str]:
    """How a pool shares its GPUs, and where it is to go; mostly from one layout to another."""
    if rng.random() < 0.75:
        return {"mig": {"layout": "first"}}, "second"
    others: list[tuple[Spec, str]] = [
        ({"exclusive": {}}, "second"),
        ({"timeSlicing": {"replicas": 3}}, "second"),
        ({"mig": {"layout": "first"}}, "time-slicing=4"),
        ({"mig": {"layout": "first"}}, "exclusive"),
    ]
    return rng.choice(others)


def roll(seed: int) -> Rollout:
    """All the way, with a second try of one step; then again, and back from the middle."""
    rng = random.Random(seed)
    case = _Case(rng)
    name = f"{next(iter(case.sharing))} to {case.to}"
    done = Rollout(seed, name, case.guaranteed, case.nodes)
    nodes = dict(gpus_of(case.platform))
    with repository() as home:
        home.put(case.platform)
        home.commit()
        aborted = rng.randint(1, 4)
        if not _walk(done, home, nodes, case, ("--to", case.to), aborted):
            return done
        done.steps = len(home.trees) - 1
        done.way = "there"
        wished = case.platform.copy()
        end = home.files[-1]
        if not _is_at(end, home, wished, case):
            done.problems.append("the end is not the direct edit")
        middle = rng.randint(1, max(1, done.steps - 2))
        home.forget(middle + 1)
        home.undo()
        _walk(done, home, nodes, case, ("--back",), 0)
        done.steps_back = len(home.trees) - 1 - middle
        if home.files[-1] != home.files[0]:
            changed = [path for path in home.files[0] if home.files[0][path] != home.files[-1].get(path)]
            added = [path for path in home.files[-1] if path not in home.files[0]]
            done.problems.append(f"back from step {middle} of {done.steps} is not what was: {changed[:3]} {added[:3]}")
    return done


def _is_at(end: object, home: Repository, wished: Platform, case: _Case) -> bool:
    """Whether every node publishes in the end what a pool of that sharing does."""
    to: Spec = {"mig": {"layout": "second"}} if case.to == "second" else {"exclusive": {}}
    if case.to.startswith("time-slicing"):
        to = {"timeSlicing": {"replicas": 4}}
    wished.pools[POOL]["sharing"] = to
    nodes = dict(gpus_of(case.platform))
    with repository() as other:
        other.put(wished)
        other.commit()
        first, second = (judge([trees[-1]], nodes) for trees in (home.trees, other.trees))
    return [way.published for way in first.ways] == [way.published for way in second.ways]


def _walk(
    done: Rollout, home: Repository, nodes: dict[str, int], case: _Case, options: tuple[str, ...], aborted: int
) -> bool:
    """Step by step until nothing is written; false where there is no way."""
    is_back = options == ("--back",)
    for index in range(MOST_STEPS):
        known = _texts(home)
        result = _step(home, nodes, options if is_back or not index else ())
        if index and not is_back and "has no rollout to go on with" in result.err:
            return True
        if result.code:
            if index or is_back or result.code > 1:
                done.problems.append(f"{options} fails at step {index}: {result.out[-200:]} {result.err[-300:]}")
            return False
        if _texts(home) == known:
            return True
        if index == aborted:
            written = _texts(home)
            home.undo()
            _step(home, nodes, options if is_back or not index else ())
            if _texts(home) != written:
                done.problems.append(f"step {index} is another one when it is written again")
        home.commit()
        _judge(done, home, nodes, case, f"{options[0]} step {index}")
    done.problems.append(f"{options} never ends")
    return False


def _step(home: Repository, nodes: dict[str, int], options: tuple[str, ...]) -> Run:
    listed = labels_at([home.trees[-1]], nodes, {})
    path = str(home.list_nodes(listed))
    return run("rollout", POOL, *options, "--write", "--nodes", path, cwd=home.root)


def _judge(done: Rollout, home: Repository, nodes: dict[str, int], case: _Case, what: str) -> None:
    found = judge(home.trees[-2:], nodes)
    done.problems += [f"{what}: {verdict}" for verdict in found.of(*UNSAFE, Kind.UNCOVERED)[:2]]
    if len(found.repartitioned) > case.away:
        done.problems.append(f"{what}: {len(found.repartitioned)} nodes away, {case.away} may be")


def _texts(home: Repository) -> dict[str, str]:
    return {str(path.relative_to(home.root)): path.read_text() for path in sorted(home.root.rglob("*.yaml"))}


def write_twice(seed: int) -> list[str]:
    """What is wrong where a step is written a second time before anybody commits the first, in a Git repository."""
    case = _Case(random.Random(seed))
    with repository() as home:
        home.put(case.platform)
        _git(home, "init", "-q")
        _commit_all(home)
        first = run("rollout", POOL, "--to", case.to, "--write", cwd=home.root)
        written = _texts(home)
        second = run("rollout", POOL, "--write", cwd=home.root)
        problems = [] if first.code == 0 else [f"the first ends with {first.code}: {first.err}"]
        problems += [] if second.code == 1 else [f"the second ends with {second.code}: {second.err}"]
        return problems + ([] if _texts(home) == written else ["the second writes something"])


def _commit_all(home: Repository) -> None:
    _git(home, "add", "-A")
    _git(home, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-qm", "test")


def _git(home: Repository, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=home.root, check=True, capture_output=True)
