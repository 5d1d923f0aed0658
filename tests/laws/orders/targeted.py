"""Steps that are known to be dangerous: done in one commit, and done as gpuplan says.

Each is done on a platform by chance, and in every order of syncs, with labels that lag.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final, NamedTuple

from tests.laws.orders.edits import Edit, edited, is_alike, merge, name_nodes, rename, split
from tests.laws.orders.judging import names_in, waits
from tests.laws.orders.oracle import OPERATOR, POOL, UNSAFE, Kind, judge, labels_at
from tests.laws.orders.platforms import DIVISIONS, GPU, Platform, Spec, gpus_of, random_platform
from tests.laws.orders.repository import RefusedError, Repository, repository
from tests.laws.orders.trees import Labels


@dataclass
class Outcome:
    """What became of one case; ``problems`` are why it is no success, of the one commit or of the way as told."""

    seed: int
    name: str
    mode: str
    problems: list[str] = field(default_factory=list)
    facts: set[str] = field(default_factory=set)


class Case(NamedTuple):
    """A platform, and how it is changed: in one commit, or in several, one after the other."""

    name: str
    before: Platform
    wishes: tuple[Platform, ...]


Make = Callable[[random.Random], Case | None]


def tried(make: Make, judge_case: Callable[[Outcome, Case, Repository], None], seeds: range) -> Iterator[Outcome]:
    """One outcome for each seed; cases whose platforms are refused by themselves are made anew."""
    for seed in seeds:
        rng = random.Random(seed)
        for _ in range(100):
            case = make(rng)
            if case is None:
                continue
            outcome = Outcome(seed, case.name, case.before.cluster["nodeLabels"])
            try:
                with repository() as home:
                    judge_case(outcome, case, home)
            except RefusedError:
                continue
            yield outcome
            break


# --- Moves -------------------------------------------------------------------------------------------------------


def a_move(rng: random.Random) -> Case | None:
    """Nodes go from one pool to another: one is moved, or a pool is renamed, split or merged."""
    mode = rng.choice(("nfd", "nfd", "nfd", "nfd", "node", "external"))
    before = random_platform(rng, mode=mode)
    one, other = rng.sample([*before.pools], 2)
    if rng.random() < 0.85:
        before.pools[one]["sharing"] = _a_mig(rng, before)
    elif before.cluster["scheduler"]["kind"] != "kai":
        before.pools[one]["sharing"] = {"timeSlicing": {"replicas": rng.randint(2, 5)}}
    before.pools[other]["sharing"] = before.pools[one]["sharing"] if rng.random() < 0.85 else _a_mig(rng, before)
    before.pools[other]["nodes"]["gpusPerNode"] = before.pools[one]["nodes"]["gpusPerNode"]
    before.mend()
    after = before.copy()
    kind = _move(rng, after, one, other)
    return None if kind is None else Case(kind, before, (after,))


def _move(rng: random.Random, after: Platform, one: str, other: str) -> str | None:
    """Let nodes of one pool go to another, or to a new one; None where it has too few."""
    kind = rng.choice(("move", "rename", "split", "merge"))
    members = after.members(one)
    new = rng.choice((f"a-{one}", f"{one}-b", f"z-{one}"))
    if kind in ("move", "split") and len(members) < 2:
        return None
    match kind:
        case "move":
            after.nodes[rng.choice(members)] = other
            name_nodes(after, one)
            name_nodes(after, other)
        case "rename":
            rename(after, one, new)
        case "split":
            split(rng, after, one, new)
        case _:
            merge(after, one, other)
    after.mend()
    return kind


def _a_mig(rng: random.Random, platform: Platform) -> Spec:
    if rng.random() < 0.25:
        return {"mig": {"instances": dict(rng.choice(DIVISIONS))}}
    return {"mig": {"layout": rng.choice([*platform.of("MigLayout")])}}


def two_moves(rng: random.Random) -> Case | None:
    """Nodes move on, or back again, before their labels have followed the first move."""
    first = a_move(rng)
    if first is None:
        return None
    middle = first.wishes[0]
    if rng.random() < 0.25:
        return Case(f"{first.name}, and back", first.before, (middle, first.before.copy()))
    pools = [name for name in middle.pools if middle.members(name)]
    alike = [(a, b) for a in pools for b in pools if a != b and is_alike(middle.pools[a], middle.pools[b])]
    if not alike:
        return None
    after = middle.copy()
    second = _move(rng, after, *rng.choice(alike))
    return None if second is None else Case(f"{first.name}, then {second}", first.before, (middle, after))


def judge_moves(outcome: Outcome, case: Case, home: Repository) -> None:
    """Each as told, and the way through all of them in every order; then what is left of them is pruned."""
    nodes = dict(gpus_of(case.before, *case.wishes))
    home.put(case.before)
    home.commit()
    for wish in case.wishes:
        home.put(wish)
        if (retained := home.retain()).code:
            is_said = "GPU746" in retained.err + retained.out
            outcome.facts |= {"the second move has to wait"} if is_said else set()
            outcome.problems += [] if is_said else [f"retain fails: {retained.err}"]
            return
        try:
            home.commit()
        except RefusedError as error:
            outcome.facts |= {"the second move has to wait"} if "GPU746" in str(error) else {"refused after retain"}
            return
    found = judge(home.trees, nodes)
    outcome.problems += [f"as told: {verdict}" for verdict in found.of(*UNSAFE)[:2]]
    _judge_pruning(outcome, home, nodes)


def judge_move(outcome: Outcome, case: Case, home: Repository) -> None:
    """In one commit it is refused; as told, no order of syncs is bad, nor any after what was kept is pruned."""
    after = case.wishes[-1]
    nodes = dict(gpus_of(case.before, after))
    _in_one_commit(outcome, case, home, nodes)
    if home.retain().code:
        outcome.problems.append("retain fails")
        return
    outcome.facts |= {"keeps a document"} if home.retained else set()
    _judge_step(outcome, home, nodes, "after retain")
    _judge_pruning(outcome, home, nodes)


def _in_one_commit(outcome: Outcome, case: Case, home: Repository, nodes: Mapping[str, int]) -> None:
    """Leaves the wish in the working tree, and what it was as the commit."""
    home.put(case.before)
    home.commit()
    home.put(case.wishes[0])
    said, seen = home.ask(), home.ask(labels_at(home.trees, nodes, {}))
    home.commit()
    found = judge(home.trees, nodes).of(*UNSAFE)
    home.forget(1)
    found = tuple(one for one in found if not (one.is_ahead and waits(case.before, case.wishes[0])))
    is_ordered = all(one.is_ahead and known.orders([*names_in(one)]) for one in found for known in (said, seen))
    if found and is_ordered and not said.errors:
        outcome.facts.add("a person is told the order")
    elif found:
        outcome.facts.add("unsafe in one commit")
        outcome.problems += [
            f"one commit is not refused{how}: {found[0]}"
            for how, known in (("", said), (" beside nodes", seen))
            if not known.errors
        ]


def _judge_step(outcome: Outcome, home: Repository, nodes: Mapping[str, int], what: str) -> None:
    """Commit the working tree, and judge the way to it from the commit before, and what is said of it."""
    said = home.ask(labels_at(home.trees, nodes, {}))
    home.commit()
    found = judge(home.trees[-2:], nodes)
    outcome.problems += [f"{what}: {verdict}" for verdict in found.of(*UNSAFE)[:2]]
    outcome.facts |= {"early"} if found.of(Kind.EARLY) else set()
    wrong = sorted({error.split(" | ")[0] for error in said.errors})
    outcome.facts |= {f"{code} {what}" for code in wrong}


def _judge_pruning(outcome: Outcome, home: Repository, nodes: Mapping[str, int]) -> None:
    """Ask for pruning in every state between the commits, and judge all that may follow."""
    kept = home.retained
    folders = sorted({path for tree in home.trees for path in tree.folders})
    changed = [path for path in folders if len({repr(tree.folders.get(path)) for tree in home.trees}) > 1][:3]
    for versions in product(range(len(home.trees)), repeat=len(changed) + 1):
        at = dict(zip((OPERATOR, *changed), versions, strict=True))
        listed = labels_at(home.trees, nodes, at)
        if home.prune(listed).code > 1:
            outcome.problems.append(f"prune fails at {at}")
        if home.retained != kept:
            outcome.facts.add("pruned")
            home.commit()
            found = judge(home.trees, nodes, at).of(*UNSAFE)
            outcome.problems += [f"pruned at {at}: {verdict}" for verdict in found[:2]]
            home.forget(-1)
        home.undo()
    if kept and "pruned" not in outcome.facts:
        outcome.facts.add("never pruned")


# --- Kinds of sharing --------------------------------------------------------------------------------------------

_KINDS: Final = ("exclusive", "timeSlicing", "mig", "mig", "inline")


def a_kind(rng: random.Random) -> Case | None:
    """One pool, of one node or of several, shares its GPUs in another way."""
    before = random_platform(rng, scheduler=rng.choice(("kubernetes", "kueue")))
    name = rng.choice([*before.pools])
    first, second = (_sharing(rng, before, kind) for kind in rng.sample(_KINDS, 2))
    if first == second:
        return None
    before.pools[name]["sharing"] = first
    before.pools[name].setdefault("disruption", {})["maxUnavailable"] = len(before.members(name))
    before.mend()
    after = before.copy()
    after.pools[name]["sharing"] = second
    after.mend()
    return Case(f"{next(iter(first))} to {next(iter(second))}", before, (after,))


def _sharing(rng: random.Random, platform: Platform, kind: str) -> Spec:
    match kind:
        case "exclusive":
            return {"exclusive": {}}
        case "timeSlicing":
            return {"timeSlicing": {"replicas": rng.randint(2, 6)}}
        case "mig":
            return {"mig": {"layout": rng.choice([*platform.of("MigLayout")])}}
        case _:
            return {"mig": {"instances": dict(rng.choice(DIVISIONS))}}


# --- Chains ------------------------------------------------------------------------------------------------------


def a_chain(rng: random.Random) -> Case | None:
    """A pool leaves its layout, and the next commit drops, edits or renames that; labels lag."""
    before = random_platform(rng)
    name = rng.choice([*before.pools])
    old, new = rng.sample([*before.of("MigLayout")], 2)
    for pool, spec in before.pools.items():
        if spec["sharing"].get("mig", {}).get("layout") == old:
            spec["sharing"]["mig"]["layout"] = new
        if pool == name:
            spec["sharing"] = {"mig": {"layout": old}}
            spec.setdefault("disruption", {})["maxUnavailable"] = len(before.members(name))
    before.mend()
    middle = before.copy()
    middle.pools[name]["sharing"] = {"mig": {"layout": new}}
    middle.mend()
    after = middle.copy()
    kind = rng.choice(("drop", "edit", "rename"))
    spec = after.documents.pop(("MigLayout", old))
    if kind == "edit":
        others = [found for found in DIVISIONS if found != spec["instances"]]
        after.documents["MigLayout", old] = {"gpu": GPU, "instances": dict(rng.choice(others))}
    elif kind == "rename":
        after.documents["MigLayout", f"{old}-next"] = spec
    return Case(kind, before, (middle, after))


def judge_chain(outcome: Outcome, case: Case, home: Repository) -> None:
    """Two commits as told, then pruning; labels may be as they were at the first, or at the second."""
    nodes = dict(gpus_of(case.before, *case.wishes))
    home.put(case.before)
    home.commit()
    _without_retaining(outcome, case, home, nodes)
    for wish in case.wishes:
        home.put(wish)
        if home.retain().code:
            outcome.problems.append("retain fails")
            return
        home.commit()
    found = judge(home.trees, nodes)
    outcome.problems += [f"as told: {verdict}" for verdict in found.of(*UNSAFE)[:2]]
    folders = sorted({path for tree in home.trees for path in tree.folders})
    kept = home.retained
    for version in (0, 1, 2):
        at = {OPERATOR: 2, **dict.fromkeys(folders, version)}
        home.prune(labels_at(home.trees, nodes, at))
        if home.retained != kept:
            outcome.facts.add(f"pruned at {version}")
            home.commit()
            found = judge(home.trees, nodes, at)
            outcome.problems += [f"pruned with labels of {version}: {verdict}" for verdict in found.of(*UNSAFE)[:2]]
            home.forget(-1)
        home.undo()


def _without_retaining(outcome: Outcome, case: Case, home: Repository, nodes: Mapping[str, int]) -> None:
    """Where the second commit forgets what the first left, something is said, or nothing dangles."""
    home.put(case.wishes[0])
    home.commit()
    home.put(case.wishes[1])
    said = home.ask()
    home.commit()
    dangling = judge(home.trees, nodes).of(Kind.DANGLES)
    if dangling:
        outcome.facts.add("dangles without retaining")
        if not said.findings and said.worst.rank < said.worst.TWO_STEP.rank:
            outcome.problems.append(f"not said: {dangling[0]}")
    home.forget(1)
    home.undo()


def gone_to(labels: Mapping[str, Labels], pool: str) -> list[str]:
    """The nodes that are a pool's by their labels."""
    return [node for node, found in labels.items() if found.get(POOL) == pool]


def by_edit(*edits: Edit) -> Make:
    """Cases of an edit by chance."""

    def make(rng: random.Random) -> Case | None:
        before = random_platform(rng)
        after = edited(rng, before, *edits)
        return None if after is None else Case("+".join(edit.__name__ for edit in edits), before, (after,))

    return make


__all__ = ["a_chain", "a_kind", "a_move", "by_edit", "is_alike", "judge_chain", "judge_move", "tried"]
