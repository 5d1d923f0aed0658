"""Choices without a solver: needs are served one after another, each where it adds least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from math import ceil

from gpuplan.compiler.planning.placement.placing import InstanceCounts
from gpuplan.features.packing.sizing.answers import Bound, Cut, NodeType, Objective, Proof, Way
from gpuplan.features.packing.sizing.choosing.asking import Ask, Place, in_order
from gpuplan.features.packing.sizing.choosing.forms import (
    UNCUT,
    GpuForm,
    NodeForm,
    cut_forms,
    cut_of,
    filled,
    gpu_parts,
    shared_cut,
    uncut,
)
from gpuplan.features.packing.sizing.choosing.parts import Part, whole
from gpuplan.features.packing.sizing.choosing.program import Solved
from gpuplan.features.packing.sizing.frontier import frontier
from gpuplan.features.packing.sizing.packing import pack

_FEWER = 10**6
"""A GPU less within the same nodes counts for one part in so many of its price."""

Forms = tuple[list[tuple[NodeForm, int]], list[tuple[GpuForm, int]]]


def serve(asked: Sequence[Ask], types: Sequence[NodeType], objective: Objective) -> Solved:
    """Return an answer that holds, though there may be better ones; price lists give its bound (see `frontier`)."""
    stock = [_Stock(number, node_type, objective) for number, node_type in enumerate(types)]
    taken: list[Counter[Place]] = [Counter() for _ in asked]
    for _, at, amount in in_order(asked):
        _serve(asked[at], amount, stock, taken[at])
    forms = [one.forms() for one in stock]
    return Solved(
        nodes=tuple(chain.from_iterable(nodes for nodes, _ in forms)),
        gpus=tuple(chain.from_iterable(gpus for _, gpus in forms)),
        taken=tuple(taken),
        bound=Bound(_least(asked, taken, stock), Proof.NONE),
    )


def _serve(ask: Ask, amount: Fraction, stock: Sequence[_Stock], taken: Counter[Place]) -> None:
    """Serve an amount first from the smallest parts of kept pools, then always where the rest adds least."""
    missing = amount
    for (number, part), worth in sorted(ask.worth.items(), key=lambda pair: _size(pair[0][1])):
        count = min(stock[number].kept[part], ceil(missing / worth)) if missing > 0 else 0
        stock[number].kept[part] -= count
        taken[number, part] += count
        missing -= worth * count
    open_places = set(ask.least)
    while missing > 0 and open_places:
        offers = [
            (
                stock[number].cost_of(part, count) / min(missing, ask.worth[number, part] * count),
                at,
                count,
                number,
                part,
            )
            for at, (number, part) in enumerate(ask.worth)
            if (number, part) in open_places
            if (count := stock[number].most_of(part, ceil(missing / ask.worth[number, part])))
        ]
        if not offers:
            return
        _, _, count, number, part = min(offers, key=lambda offer: offer[:2])
        stock[number].parts[part] += count
        taken[number, part] += count
        missing -= ask.worth[number, part] * count
        open_places.discard((number, part))


def _size(part: Part) -> tuple[int, int, Fraction]:
    return part.gpus, part.memory_mib or 0, part.compute


def _least(asked: Sequence[Ask], taken: Sequence[Counter[Place]], stock: Sequence[_Stock]) -> Fraction:
    """Return a lower limit: the price of kept nodes, or else of what is granted, by the dearest price list."""
    if kept := sum((one.price * one.kept_nodes for one in stock), Fraction(0)):
        return kept
    sums = []
    for at in range(
        max((len(frontier(one.node_type.gpu).prices) for one in stock if one.node_type.gpu.profiles), default=1)
    ):
        total = Fraction(0)
        for ask, places in zip(asked, taken, strict=True):
            answered = sum((ask.worth[place] * count for place, count in places.items()), Fraction(0))
            prices = (stock[number].price_of(part, at) / worth for (number, part), worth in ask.worth.items())
            total += min(ask.amount, answered) * min(prices)
        sums.append(total)
    return max(sums)


class _Stock:
    """The parts that are cut of one node type so far, and those that kept pools still have."""

    def __init__(self, number: int, node_type: NodeType, objective: Objective) -> None:
        self.number, self.node_type = number, node_type
        self.parts: Counter[Part] = Counter()
        self.kept: Counter[Part] = Counter()
        self.kept_nodes = 0
        is_priced = objective is Objective.PRICE
        self.price = Fraction(node_type.price or 0) if is_priced else Fraction(node_type.gpus_per_node)
        self._kept_forms: list[tuple[NodeForm, int]] = []
        for today in node_type.pools:
            if today.is_kept:
                form = next(iter(cut_forms(number, node_type, today.cut, today, ())))
                self._kept_forms.append((form, today.nodes))
                self.kept_nodes += today.nodes
                self.kept.update({part: count * today.nodes for part, count in form.parts.items()})

    def cost_of(self, part: Part, count: int) -> Fraction:
        """Return the cost of so many more parts: nodes at their price, and a little for each GPU within them."""
        before, after = self._size(Counter()), self._size(Counter({part: count}))
        per_gpu = self.price / self.node_type.gpus_per_node / _FEWER
        return (after[0] - before[0]) * self.price + (after[1] - before[1]) * per_gpu

    def most_of(self, part: Part, wanted: int) -> int:
        """Return the number of more parts that there is room for, at most those that are wanted."""
        if self.node_type.nodes is None:
            return wanted
        least, most = 0, wanted
        while least < most:
            middle = (least + most + 1) // 2
            if self._size(Counter({part: middle}))[0] + self.kept_nodes <= self.node_type.nodes:
                least = middle
            else:
                most = middle - 1
        return least

    def price_of(self, part: Part, at: int) -> Fraction:
        """Return the price of a part by one of the model's price lists; a GPU costs its part of a node's price."""
        if part.way is Way.MIG:
            known = frontier(self.node_type.gpu)
            share = known.by_profile(known.prices[at % len(known.prices)]).get(part.name, Fraction(0))
        else:
            share = Fraction(part.gpus, part.replicas)
        return share * self.price / self.node_type.gpus_per_node

    def forms(self) -> Forms:
        nodes, gpus = self._forms(self.parts)
        return [*self._kept_forms, *nodes], gpus

    def _size(self, more: Counter[Part]) -> tuple[int, int]:
        """Return the nodes for these parts and more, and how many of their GPUs are used."""
        nodes, gpus = self._forms(self.parts + more)
        whole_nodes = sum(count * (self.node_type.gpus_per_node - form.free) for form, count in nodes)
        return sum(count for _, count in nodes), whole_nodes + sum(count for _, count in gpus)

    def _forms(self, parts: Counter[Part]) -> Forms:
        size = self.node_type.gpus_per_node
        instances = {part.name: count for part, count in parts.items() if part.way is Way.MIG and count}
        singles = parts[whole(self.node_type.gpu)]
        nodes = list(self._shared(parts))
        gangs = _bins([part.gpus for part, count in parts.items() if part.gpus > 1 for _ in range(count)], size)
        layouts = list(self._layouts(instances))
        if self.node_type.is_equal_within_node:
            singles -= min(singles, sum((size - sum(gang)) * count for gang, count in gangs.items()))
            gangs[()] += ceil(Fraction(singles, size))
            nodes += [(self._node(gang, uncut(size)), count) for gang, count in gangs.items() if count]
            nodes += [
                (self._node((), cut_of((layout,) * size)), ceil(Fraction(count, size))) for layout, count in layouts
            ]
            return nodes, []
        left = sum(count for _, count in layouts) + singles - sum((size - sum(g)) * n for g, n in gangs.items())
        gangs[()] += max(ceil(Fraction(left, size)), 0)
        for gang, count in gangs.items():
            taken = Counter(whole(self.node_type.gpu, gpus) for gpus in gang)
            nodes += [(NodeForm(self.number, size - sum(gang), taken, gang), count)] if count else []
        layouts += [(UNCUT, singles)] if singles else []
        return nodes, [(GpuForm(self.number, layout, gpu_parts(self.node_type, layout)), n) for layout, n in layouts]

    def _layouts(self, instances: InstanceCounts) -> Iterator[tuple[InstanceCounts, int]]:
        """Yield layouts for instances and how many GPUs have each; GPUs of a node alike hold one profile each."""
        gpu = self.node_type.gpu
        if not self.node_type.is_equal_within_node:
            packed = pack(gpu, instances).layouts
            yield from ((filled(self.node_type, layout, instances), count) for layout, count in packed)
            return
        for name, count in instances.items():
            for layout, _ in pack(gpu, {name: count}).layouts[:1]:
                yield layout, ceil(Fraction(count, layout[name]))

    def _shared(self, parts: Counter[Part]) -> Iterator[tuple[NodeForm, int]]:
        for part, count in parts.items():
            if part.way in (Way.TIME_SLICING, Way.MPS) and count:
                cut = shared_cut(part.way, self.node_type.gpus_per_node, part.replicas)
                yield self._node((), cut), ceil(Fraction(count, self.node_type.gpus_per_node * part.replicas))

    def _node(self, gang: tuple[int, ...], cut: Cut) -> NodeForm:
        return NodeForm(self.number, 0, {}, gang, cut)


def _bins(sizes: Iterable[int], room: int) -> Counter[tuple[int, ...]]:
    """Put pods of several GPUs on nodes: the largest first, each on the first node that has room."""
    nodes: list[list[int]] = []
    for size in sorted(sizes, reverse=True):
        node = next((one for one in nodes if sum(one) + size <= room), None)
        if node is None:
            nodes.append([size])
        else:
            node.append(size)
    return Counter(tuple(one) for one in nodes)
