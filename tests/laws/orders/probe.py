"""Try random steps of random platforms, and print what is unsafe and unsaid, and what is said too loudly.

python -m tests.laws.orders.probe --pairs 200 --seed 1
python -m tests.laws.orders.probe --pairs 50 --edit move_node --edit rename_pool --show 5
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.laws.orders.edits import EDITS, Edit, edited
from tests.laws.orders.judging import Examined, examine
from tests.laws.orders.oracle import Kind
from tests.laws.orders.platforms import random_platform


class Pair(NamedTuple):
    """A step by chance, which its seed makes again."""

    seed: int
    edits: tuple[Edit, ...]
    examined: Examined

    @property
    def name(self) -> str:
        return "+".join(edit.__name__ for edit in self.edits)


def main() -> int:
    options = _options()
    started = time.monotonic()
    pool = [edit for edit in EDITS if not options.edit or edit.__name__ in options.edit]
    counts: Counter[str] = Counter()
    unsaid: defaultdict[str, list[Pair]] = defaultdict(list)
    alarms: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs(range(options.seed, options.seed + options.pairs), pool, counts):
        counts["judged"] += 1
        _count(pair, counts)
        for kind in {verdict.kind for verdict in pair.examined.unsaid}:
            unsaid[f"{kind} by {pair.name}"].append(pair)
        if pair.examined.alarms:
            alarms[pair.name].append(pair)
    _print("Unsafe, and nothing stops anybody", unsaid, options.show)
    _print("Safe, and called worse", alarms, options.show)
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if unsaid else 0


def pairs(seeds: Sequence[int], edits: Sequence[Edit], counts: Counter[str]) -> Iterator[Pair]:
    """One for each seed: with one edit, or with two of them now and then; those that are refused are counted."""
    for seed in seeds:
        rng = random.Random(seed)
        for _ in range(20):
            before = random_platform(rng)
            chosen = tuple(rng.sample(edits, min(len(edits), 2 if rng.random() < 0.25 else 1)))
            after = edited(rng, before, *chosen)
            if after is None:
                continue
            examined = examine(before, after, *chosen)
            if examined is not None:
                yield Pair(seed, chosen, examined)
                break
            counts["refused by themselves"] += 1


def _count(pair: Pair, counts: Counter[str]) -> None:
    examined = pair.examined
    kinds = {verdict.kind for verdict in examined.judgement.verdicts}
    for kind in kinds:
        counts[f"with a node that is {kind}"] += 1
    counts["unsafe" if not examined.is_safe else "safe"] += 1
    counts["unsafe, unsaid"] += bool(examined.unsaid)
    early = {verdict.node for verdict in examined.judgement.of(Kind.EARLY)}
    counts["early labels, nothing said"] += bool(early) and examined.said.worst.rank < 6 and not examined.said.findings
    counts["safe, called worse"] += bool(examined.alarms)
    uncovered = examined.judgement.of(Kind.UNCOVERED)
    names = [f"`{pool}`" for verdict in uncovered for pool in verdict.pools]
    is_told = any(name in text for text in examined.said.findings for name in names)
    counts["uncovered, and no finding names the pool"] += bool(uncovered) and not is_told
    if examined.judgement.repartitioned:
        counts["repartitions"] += 1
        counts["repartitions, called less"] += examined.said.worst.rank < 6


def _print(title: str, found: dict[str, list[Pair]], show: int) -> None:
    print(f"== {title}")
    for name, items in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{len(items):4} {name}: seeds {[pair.seed for pair in items][:6]}")
        for pair in items[:show]:
            for text in [*map(str, pair.examined.unsaid), *pair.examined.alarms][:3]:
                print(f"       {text[:400]}")
            for how, said in (("without nodes", pair.examined.said), ("beside nodes", pair.examined.seen)):
                print(f"       {how} {said.worst}: {sorted({text[:120] for text in said.errors})}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100, help="how many steps (100)")
    parser.add_argument("--seed", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--edit", action="append", default=[], help="only edits of these names")
    parser.add_argument("--show", type=int, default=2, help="how many of each kind (2)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
