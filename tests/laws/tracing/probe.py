"""Try other values of the example's policies, and print which changed leaves do not trace to them.

python -m tests.laws.tracing.probe --kind ResourceQuota --precision
python -m tests.laws.tracing.probe --folder prod/namespaces --document Tenant/research
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from gpuplan.compiler.manifests import Identity, Manifest
from tests.laws.tracing.judging import Judgement, LinkedLeaf, crowded, judge, precision
from tests.laws.tracing.mutations import Mutation, Mutations, Scalar
from tests.laws.tracing.names import Names
from tests.laws.tracing.policies import read_policies
from tests.laws.tracing.rendered import Change, Key, Object, Rendered, render, spelt

ROOT = Path(__file__).parents[3]


def main() -> int:
    options = _options()
    started = time.monotonic()
    policies = read_policies(options.root)
    old = render(policies, frozenset((options.cluster,) if options.cluster else ()))
    names = Names(policies)
    scalars = [item for item in Mutations(policies).scalars if names.is_of(item.place, options.document)]
    scalars = [item for item in scalars if not options.field or options.field in spelt(item.place.path)]
    if options.sample:
        scalars = random.Random(options.seed).sample(scalars, min(options.sample, len(scalars)))
    wanted = {key for key, item in old.objects.items() if _is_wanted(item, options)}
    judgement = judge(
        policies, old, scalars, most=options.most, is_asked=lambda change: _is_wanted(change.object, options)
    )
    _print_crashes(judgement)
    _print_untraced(
        "Leaves that change without a link to what was changed", judgement.untraced, names, options.examples
    )
    if options.late:
        title = "Leaves that have the link only once they are changed"
        _print_untraced(title, judgement.late, names, options.examples)
    if options.fixed:
        _print_fixed(judgement, names)
    if options.precision:
        _print_precision(old, judgement, wanted, names, options.examples)
    _print_leaves(old, wanted, options.examples)
    print(
        f"{len(scalars)} scalars, {len(judgement.fixed)} without another valid value, {len(wanted)} objects,"
        f" {len(judgement.untraced)} scalars change leaves without a link; {time.monotonic() - started:.0f} s"
    )
    return 1 if judgement.untraced else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help="a platform, or a file that is all of one")
    parser.add_argument("--cluster", default="", help="render and judge this cluster only")
    parser.add_argument("--kind", default="", help="judge objects of these kinds, with commas; File for plain files")
    parser.add_argument("--folder", default="", help="judge what lies below this folder, such as prod/namespaces")
    parser.add_argument("--name", default="", help="judge objects whose name holds this")
    parser.add_argument("--document", default="", help="change this document only, such as Pool/a100-mixed, or Pool")
    parser.add_argument("--field", default="", help="change only scalars whose route holds this, such as taints")
    parser.add_argument("--most", type=int, default=4, help="how many other values of each scalar (4)")
    parser.add_argument("--sample", type=int, default=0, help="change so many scalars by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", action="store_true", help="also tell which links never change their leaf")
    parser.add_argument("--late", action="store_true", help="also tell of links that are only there after the change")
    parser.add_argument("--fixed", action="store_true", help="also list scalars without another valid value")
    parser.add_argument("--examples", type=int, default=2, help="how many of each kind to show (2)")
    return parser.parse_args()


def _is_wanted(item: Object, options: argparse.Namespace) -> bool:
    folder, what = item.key
    kind, name = (what.kind, what.name) if isinstance(what, Identity) else ("File", what)
    within = item.artifact.folder if isinstance(item.artifact, Manifest) else item.artifact.path
    if options.cluster and folder.rstrip("+").split("/")[-1] != options.cluster:
        return False
    return (
        (not options.kind or kind in options.kind.split(","))
        and (not options.folder or f"{folder.rstrip('+')}/{within}/".startswith(options.folder.rstrip("/") + "/"))
        and options.name in name
    )


def _print_crashes(judgement: Judgement) -> None:
    for mutation, error in judgement.crashed[:10]:
        print(f"CRASH {mutation.place} = {mutation}: {type(error).__name__}: {error}")


def _print_untraced(
    title: str, untraced: dict[Scalar, list[tuple[Mutation, Change]]], names: Names, examples: int
) -> None:
    if untraced:
        print(f"== {title}")
    for scalar, found in untraced.items():
        leaves = {(change.object.key, change.leaf.path) for _, change in found}
        print(f"{names.spell(scalar.place)}{' (the key)' if scalar.is_key else ''} -> {len(leaves)} leaves")
        shown: dict[str, str] = {}
        for mutation, change in found:
            shown.setdefault(change.shape, f"{change.title}   ({scalar.value!r} -> {mutation})")
        for text in [*shown.values()][:examples]:
            print(f"    {text[:220]}")
        if len(shown) > examples:
            print(f"    ... of {len(shown)} shapes")


def _print_fixed(judgement: Judgement, names: Names) -> None:
    print("== Scalars without another valid value")
    groups: Counter[str] = Counter()
    for scalar in judgement.fixed:
        route = re.sub(r"\.\d+(?=\.|$)", ".*", spelt(scalar.place.path))
        kind = names.kind(scalar.place)
        groups[f"{kind} {route}{' (the key)' if scalar.is_key else ''} {str(scalar.value)[:40]!r}"] += 1
    for text, count in groups.items():
        print(f"    {count} x {text}")


def _print_precision(old: Rendered, judgement: Judgement, wanted: set[Key], names: Names, examples: int) -> None:
    found = precision(old, judgement, is_asked=wanted.__contains__)
    print(f"== Links: {found.copied} copied, {len(found.wrong)} of them wrong; {found.others} others,", end=" ")
    print(f"{_percent(found.others - len(found.idle), found.others)} change their leaf; {found.untried} not tried")
    for title, links in (("copied, but a mutation leaves the leaf alone", found.wrong), ("never changes", found.idle)):
        for shape, items in _grouped(links, names)[:40]:
            print(f"  {len(items):5} {title}: {shape}")
            for link in items[:examples]:
                text = f"{old.objects[link.object]} {spelt(link.path)} <- {link.how} {names.spell(link.place)}"
                print(f"          {text[:220]}{f'   (to {link.but})' if link.but else ''}")


def _grouped(links: tuple[LinkedLeaf, ...], names: Names) -> list[tuple[str, list[LinkedLeaf]]]:
    groups: defaultdict[str, list[LinkedLeaf]] = defaultdict(list)
    for link in links:
        kind = names.kind(link.place)
        route = re.sub(r"\.\d+(?=\.|$)", ".*", spelt(link.place.path))
        whose = link.object[1].kind if isinstance(link.object[1], Identity) else link.object[1]
        groups[f"{link.how} {kind} {route} in {whose}"].append(link)
    return sorted(groups.items(), key=lambda item: -len(item[1]))


def _print_leaves(old: Rendered, wanted: set[Key], examples: int) -> None:
    crowds: defaultdict[str, list[str]] = defaultdict(list)
    blank: Counter[str] = Counter()
    leaves = 0
    for key in wanted:
        item = old.objects[key]
        for leaf in item.leaves.values():
            leaves += 1
            sources = item.sources(leaf)
            if crowded(sources):
                crowds[item.shape(leaf.path)].append(f"{len({s.place for s in sources})} in {item} {spelt(leaf.path)}")
        if item.artifact.trace is None:
            blank[key[1].kind if isinstance(key[1], Identity) else key[1]] += 1
    if crowds:
        print("== Leaves with more than 12 sources that are no sum or digest")
        for shape, texts in sorted(crowds.items(), key=lambda pair: -len(pair[1]))[:20]:
            print(f"  {len(texts):5} {shape}: {'; '.join(texts[:examples])}")
    if blank:
        print("== Objects without a trace:", ", ".join(f"{count} {kind}" for kind, count in blank.most_common()))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


if __name__ == "__main__":
    sys.exit(main())
