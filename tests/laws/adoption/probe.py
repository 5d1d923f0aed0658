"""Print what drawn clusters lose by their first sync: `python -m tests.laws.adoption.probe --seeds 0-47 [--all]`."""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.laws.adoption.clusters import draw
from tests.laws.adoption.syncing import First, first_sync


def main() -> None:
    """Show each seed's losses that the report leaves out, or all of them, and how many there are of each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-47", help="one, or the first and the last")
    parser.add_argument("--all", action="store_true", help="show what the report names, too")
    parser.add_argument("--keep", type=Path, help="a folder for dumps and repositories")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    kinds: Counter[str] = Counter()
    seeds: dict[str, list[int]] = {}
    for seed in range(int(first), int(last or first) + 1):
        cluster = draw(seed)
        with TemporaryDirectory() as home:
            done = first_sync(cluster, Path(home))
            if options.keep:
                shutil.copytree(home, options.keep / str(seed), dirs_exist_ok=True)
        _show(seed, dict(cluster.traits), done, everything=options.all)
        kinds.update(loss.kind.value for loss in done.untold)
        for kind in {loss.kind.value for loss in done.untold}:
            seeds.setdefault(kind, []).append(seed)
    for kind, count in kinds.most_common():
        print(f"{count:5} {kind}: seeds {seeds[kind]}")


def _show(seed: int, traits: dict[str, str], done: First, *, everything: bool) -> None:
    print(f"== {seed} exit {done.imported.code} built {done.is_built} {traits}")
    for error in done.errors:
        print(f"   error {error}")
    for loss in done.found if everything else done.untold:
        mark = "UNTOLD" if loss in done.untold else "told"
        print(f"   {mark} {loss.kind}: {loss.subject}, {loss.what}: {loss.before} -> {loss.after}")


if __name__ == "__main__":
    main()
