"""The integer program of a choice: how many nodes and GPUs of each form, and who has what of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil

from gpuplan.compiler.base.values import Value
from gpuplan.features.packing.sizing.answers import Bound, Cut, NodeType, Way
from gpuplan.features.packing.sizing.choosing.asking import Ask, Place
from gpuplan.features.packing.sizing.choosing.forms import GpuForm, NodeForm, cut_forms, gpu_forms, node_forms
from gpuplan.features.packing.sizing.choosing.highs import INFINITE, Program, Solution
from gpuplan.features.packing.sizing.choosing.parts import holds
from gpuplan.features.packing.sizing.needs import Link

Costs = Mapping[int, float]


class Solved(Value):
    """The numbers of nodes and GPUs of each form, and of parts that each ask has at each place.

    ``stood_for`` is how many pods of each ask need no part: one that another need of the team has stands for theirs.
    If it ``is_exhaustive``, all choices were considered before less than all is answered.
    """

    nodes: tuple[tuple[NodeForm, int], ...]
    gpus: tuple[tuple[GpuForm, int], ...]
    taken: tuple[Mapping[Place, int], ...]
    stood_for: tuple[int, ...]
    bound: Bound
    is_exhaustive: bool = True


class Choice:
    """One program for all that is asked of a choice, one objective after another.

    Its numbers are nodes by form, GPUs by form, parts by ask and place, and the nodes of today's pools that stay as
    they are. Its rows are on GPUs that are made into GPU forms, nodes of a type, parts that exist, and amounts of asks.
    ``supply`` is how many of each part a node or GPU of each form has. ``cuts`` are more ways to cut the nodes of
    a type than those of `forms`; with ``most_layouts`` no more layouts are used, beside those of pools that are kept.
    """

    def __init__(
        self,
        types: Sequence[NodeType],
        asked: Sequence[Ask],
        amounts: Sequence[Fraction] = (),
        *,
        cuts: Sequence[tuple[int, Cut]] = (),
        most_layouts: int | None = None,
    ) -> None:
        self.types, self.asked = types, asked
        self.program = Program()
        self.node_forms: dict[int, NodeForm] = {}
        self.gpu_forms: dict[int, GpuForm] = {}
        self.parts: list[dict[Place, int]] = []
        self.standing: defaultdict[int, list[int]] = defaultdict(list)
        self.recut: dict[int, int] = {}
        self.stays: list[int] = []
        self.supply: dict[Place, dict[int, float]] = defaultdict(dict)
        wanted = list(dict.fromkeys(place for ask in asked for place in ask.worth if place in ask.least))
        held = list(dict.fromkeys(place for ask in asked for place in ask.worth))
        for number, node_type in enumerate(types):
            more = [(cut, None) for at, cut in cuts if at == number]
            given = [*more, *((today.cut, today) for today in node_type.pools)]
            forms = [form for cut, today in given for form in cut_forms(number, node_type, cut, today, held)]
            self._add_type(number, node_type, wanted, forms)
        self._limit_models()
        self._add_asks()
        self.demand(amounts)
        if most_layouts is not None:
            self._limit_layouts(most_layouts)

    def _add_type(self, number: int, node_type: NodeType, wanted: Sequence[Place], given: Iterable[NodeForm]) -> None:
        of_gpus = gpu_forms(number, node_type, wanted)
        forms = node_forms(number, node_type, wanted, of_gpus)
        nodes = {self._number(form): form for form in (*forms, *given)}
        self.node_forms |= nodes
        most = INFINITE if node_type.nodes is None else node_type.nodes
        self.program.row(0, dict.fromkeys(nodes, 1), most)
        if not node_type.is_equal_within_node:
            gpus = {self._number(form): form for form in of_gpus}
            self.gpu_forms |= gpus
            free = {index: -form.free for index, form in nodes.items() if form.free}
            self.program.row(-INFINITE, {**dict.fromkeys(gpus, 1), **free}, 0)
        self._add_today(number, node_type, nodes)

    def _number(self, form: NodeForm | GpuForm) -> int:
        index = self.program.number()
        for part, count in form.parts.items():
            if count:
                self.supply[form.number, part][index] = count
        return index

    def _add_today(self, number: int, node_type: NodeType, nodes: Mapping[int, NodeForm]) -> None:
        """Have kept pools keep all their nodes, and count the nodes of today's pools that stay and that are cut again.

        Nodes that no pool has today are not cut again. If there may be any number of nodes, none is added while a node
        of today has nothing to do.
        """
        stays = []
        for today in node_type.pools:
            alike = [index for index, form in nodes.items() if form.today is today]
            if today.is_kept:
                self.program.row(today.nodes, dict.fromkeys(alike, 1), today.nodes)
            stay = self.program.number(today.nodes)
            self.program.row(0, {**dict.fromkeys(alike, 1), stay: -1}, INFINITE)
            stays.append(stay)
        if not stays:
            return
        self.stays += stays
        in_pools = sum(pool.nodes for pool in node_type.pools)
        again = self.recut[number] = self.program.number()
        changed = {**dict.fromkeys(nodes, -1), **dict.fromkeys(stays, 1), again: 1}
        if node_type.nodes is not None:
            self.program.row(min(in_pools - node_type.nodes, 0), changed, INFINITE)
            return
        adds = self.program.number(1)
        self.program.row(0, {**changed, adds: self._most_nodes + in_pools}, INFINITE)
        self.program.row(0, {**dict.fromkeys(stays, 1), again: 1, adds: -in_pools}, INFINITE)

    def _limit_models(self) -> None:
        for model, most in {one.gpu.id: one.nodes_of_model for one in self.types}.items():
            if most is not None:
                mine = [index for index, form in self.node_forms.items() if self.types[form.number].gpu.id == model]
                self.program.row(0, dict.fromkeys(mine, 1), most)

    @property
    def _most_nodes(self) -> int:
        """More nodes than any answer has use for: one for each part that is asked for, or all that there are."""
        asked = sum(ceil(ask.amount / min(ask.worth.values())) for ask in self.asked)
        return max([asked, *(node_type.nodes or 0 for node_type in self.types)])

    def _add_asks(self) -> None:
        takers: dict[Place, list[int]] = defaultdict(list)
        for ask in self.asked:
            parts = {place: self.program.number() for place in ask.worth if self.supply.get(place)}
            self.parts.append(parts)
            for place, index in parts.items():
                takers[place].append(index)
        for place, indexes in takers.items():
            self.program.row(0, {**self.supply[place], **dict.fromkeys(indexes, -1)}, INFINITE)
        self._add_links()

    def _add_links(self) -> None:
        """Let parts of what a team asks for stand for what it is guaranteed, each for as many units as it has."""
        sides: dict[Link, defaultdict[str, list[int]]] = {link: defaultdict(list) for link in Link}
        for at, ask in enumerate(self.asked):
            if (link := ask.needs[0].link) is not None:
                sides[link][ask.needs[0].team].append(at)
        for team, guaranteed in sides[Link.GUARANTEED].items():
            for at in sides[Link.ASKED][team]:
                for (_, part), taken in self.parts[at].items():
                    one = part._replace(gpus=1)
                    fitting = [other for other in guaranteed if holds(one, self.asked[other].needs[0])]
                    standing = {other: self.program.number() for other in fitting}
                    for other, index in standing.items():
                        self.standing[other].append(index)
                    if standing:
                        self.program.row(0, {taken: part.gpus, **dict.fromkeys(standing.values(), -1)}, INFINITE)

    # --- What is asked of it ---

    def answers(self, at: int) -> Costs:
        """Return the costs by which parts answer an ask: what each part is worth to it."""
        worth = {index: float(self.asked[at].worth[place]) for place, index in self.parts[at].items()}
        return worth | dict.fromkeys(self.standing[at], 1.0)

    def demand(self, amounts: Sequence[Fraction]) -> None:
        """Demand an amount of each ask."""
        for at, amount in enumerate(amounts):
            if amount:
                self.program.row(float(amount), self.answers(at), INFINITE)

    def _limit_layouts(self, most: int) -> None:
        """Allow at most so many different layouts beside those of pools that are kept."""
        alike: dict[object, list[int]] = defaultdict(list)
        for index, form in self.node_forms.items():
            if form.cut and form.cut.way is Way.MIG and not (form.today and form.today.is_kept):
                alike[self.types[form.number].gpu.id, form.cut.key].append(index)
        used, most_nodes = [], self._most_nodes
        for indexes in alike.values():
            is_used = self.program.number(1)
            self.program.row(0, {**dict.fromkeys(indexes, -1), is_used: most_nodes}, INFINITE)
            used.append(is_used)
        self.program.row(0, dict.fromkeys(used, 1), most)

    def by_nodes(self, each: Mapping[int, float]) -> Costs:
        """Return costs of so much for each node of a type."""
        return {index: each[form.number] for index, form in self.node_forms.items()}

    def solved(self, solution: Solution, bound: Bound) -> Solved:
        values = solution.values
        nodes = tuple((form, values[index]) for index, form in self.node_forms.items() if values[index])
        gpus = tuple((form, values[index]) for index, form in self.gpu_forms.items() if values[index])
        taken = tuple({place: values[index] for place, index in parts.items() if values[index]} for parts in self.parts)
        stood_for = tuple(sum(values[index] for index in self.standing[at]) for at in range(len(self.parts)))
        return Solved(nodes, gpus, taken, stood_for, bound)

    def holds(self, solution: Solution, amounts: Sequence[Fraction]) -> bool:
        """Whether the rounded solution is one, and answers so much of each ask, in exact numbers."""
        return self.program.holds(solution.values) and all(
            self.answered(at, solution) >= amount for at, amount in enumerate(amounts)
        )

    def answered(self, at: int, solution: Solution) -> Fraction:
        worth = self.asked[at].worth
        taken = sum((worth[place] * solution.values[index] for place, index in self.parts[at].items()), Fraction(0))
        return taken + sum(solution.values[index] for index in self.standing[at])
