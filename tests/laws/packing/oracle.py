"""An answer to the question of `pack` from policies and demands as plain data, by another method than gpuplan's.

Nothing of gpuplan is imported. `pack` chooses among layouts of a GPU and contents of a node. Here no layout is ever
listed: a MIG instance is an interval of memory slices. Intervals of which no more than `g` cover any slice can be
divided among `g` GPUs so that none overlap on one of them, since the least number of colours of an interval graph is
its largest clique. So one row for each slice says all about MIG. Pods with several GPUs are put on nodes one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

Data = Mapping[str, Any]

# --- Boards ------------------------------------------------------------------------------------------------------


class Profile(NamedTuple):
    """A MIG profile: its memory in MiB, its compute slices, how many memory slices it takes and where it may begin."""

    memory_mib: int
    compute_slices: int
    size: int
    starts: tuple[int, ...]


class Board(NamedTuple):
    """A GPU model: its memory in MiB, its compute and memory slices, and its profiles by name."""

    memory_mib: int
    compute_slices: int = 1
    slices: int = 0
    profiles: Mapping[str, Profile] = {}


def _sevenths(memory_mib: int, *profiles: tuple[str, float]) -> Board:
    """Return a board of seven compute and eight memory slices, with the usable GiB of its six plain profiles."""
    shapes = (
        (1, 1, (0, 1, 2, 3, 4, 5, 6)),
        (1, 2, (0, 2, 4, 6)),
        (2, 2, (0, 2, 4)),
        (3, 4, (0, 4)),
        (4, 4, (0,)),
        (7, 8, (0,)),
    )
    named = {name: Profile(int(gib * 1024), *shape) for (name, gib), shape in zip(profiles, shapes, strict=True)}
    return Board(memory_mib, 7, 8, named)


BOARDS: Final = {
    "A100-40GB": _sevenths(
        40960,
        *(("1g.5gb", 4.75), ("1g.10gb", 9.62), ("2g.10gb", 9.62), ("3g.20gb", 19.5), ("4g.20gb", 19.5)),
        ("7g.40gb", 39.25),
    ),
    "A100-80GB": _sevenths(
        81920,
        *(("1g.10gb", 9.5), ("1g.20gb", 19.5), ("2g.20gb", 19.5), ("3g.40gb", 39.25), ("4g.40gb", 39.25)),
        ("7g.80gb", 78.5),
    ),
    "H100-80GB": _sevenths(
        81559,
        *(("1g.10gb", 9.75), ("1g.20gb", 19.62), ("2g.20gb", 19.62), ("3g.40gb", 39.38), ("4g.40gb", 39.5)),
        ("7g.80gb", 79.25),
    ),
    "H200-141GB": _sevenths(
        143771,
        *(("1g.18gb", 16.0), ("1g.35gb", 32.25), ("2g.35gb", 32.25), ("3g.71gb", 69.5), ("4g.71gb", 69.5)),
        ("7g.141gb", 139.75),
    ),
    "A30-24GB": Board(
        24576,
        4,
        4,
        {
            "1g.6gb": Profile(5952, 1, 1, (0, 1, 2, 3)),
            "2g.12gb": Profile(11968, 2, 2, (0, 2)),
            "4g.24gb": Profile(24002, 4, 4, (0,)),
        },
    ),
    "L40S-48GB": Board(46068),
}
"""From NVIDIA's MIG user guide (supported MIG profiles) and listings of `nvidia-smi mig -lgip` and `-lgipp`."""

WHOLE: Final = "gpu"


def memory_of(model: str, unit: str) -> int:
    board = BOARDS[model]
    return board.memory_mib if unit == WHOLE else board.profiles[unit].memory_mib


def compute_of(model: str, unit: str) -> Fraction:
    board = BOARDS[model]
    return Fraction(1) if unit == WHOLE else Fraction(board.profiles[unit].compute_slices, board.compute_slices)


def is_layout(model: str, instances: Mapping[str, int]) -> bool:
    """Whether one GPU can hold these instances: some choice of a start for each, without an overlap."""
    board = BOARDS[model]
    names = [name for name, number in instances.items() for _ in range(number)]

    def fits(at: int, taken: int) -> bool:
        if at == len(names):
            return True
        profile = board.profiles[names[at]]
        masks = [((1 << profile.size) - 1) << start for start in profile.starts]
        return any(not mask & taken and fits(at + 1, taken | mask) for mask in masks)

    return fits(0, 0)


# --- Policies ----------------------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """A pool: ``cut`` has for each GPU of a node its instances in the order of their names, none for a whole GPU."""

    model: str
    nodes: int
    cut: tuple[tuple[tuple[str, int], ...], ...]
    strategy: str

    @property
    def units(self) -> Counter[str]:
        """The units of one node."""
        found: Counter[str] = Counter()
        for instances in self.cut:
            found.update(dict(instances) or {WHOLE: 1})
        return found

    @property
    def kind(self) -> object:
        """A value that two pools share if a node can be in one as well as in the other without being cut again."""
        return self.model, self.strategy, tuple(sorted(self.cut))


class Policies(NamedTuple):
    """The pools of a cluster by name, and units that are guaranteed by tenant, pool and unit."""

    pools: Mapping[str, Pool]
    guarantees: Mapping[tuple[str, str, str], int]


def read(root: Path, cluster: str) -> Policies:
    """Read the policies of a cluster: those that all clusters share, and its overlay laid over them by RFC 7386."""
    documents: dict[tuple[str, str], Any] = {}
    for folder in (root / "policies", root / "overlays" / cluster):
        for body in [body for path in sorted(folder.rglob("*.yaml")) for body in yaml.safe_load_all(path.read_text())]:
            if body:
                key = body["kind"], body["metadata"]["name"]
                is_gone = body["metadata"].get("$patch") == "delete"
                documents[key] = None if is_gone else _merged(documents.get(key), body)
    specs = {key: body["spec"] for key, body in documents.items() if body}
    pools = {name: _pool(spec, specs) for (kind, name), spec in specs.items() if kind == "Pool"}
    guarantees: Counter[tuple[str, str, str]] = Counter()
    for (kind, tenant), spec in specs.items():
        for quota in spec.get("quotas", ()) if kind == "Tenant" else ():
            unit = quota.get("unit") or _only_unit(pools[quota["pool"]])
            guarantees[tenant, quota["pool"], unit] += quota["guaranteed"]
    return Policies(pools, {key: number for key, number in guarantees.items() if number})


def _merged(target: object, patch: object) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _pool(spec: Data, specs: Mapping[tuple[str, str], Data]) -> Pool:
    gpus, sharing = spec["nodes"]["gpusPerNode"], spec["sharing"]
    cut: list[dict[str, int]] = [{} for _ in range(gpus)]
    mig = sharing.get("mig")
    if mig is not None:
        layout = specs["MigLayout", mig["layout"]] if "layout" in mig else mig
        for entry in layout.get("devices") or [{"gpus": "all", "instances": layout["instances"]}]:
            for index in range(gpus) if entry["gpus"] == "all" else entry["gpus"]:
                cut[index] = dict(entry.get("instances") or {})
    else:
        assert "exclusive" in sharing, f"the oracle does not know {sharing}"
    strategy = (mig or {}).get("strategy", "mixed" if mig is not None else "")
    return Pool(spec["gpu"], spec["nodes"]["count"], tuple(tuple(sorted(one.items())) for one in cut), strategy)


def _only_unit(pool: Pool) -> str:
    (unit,) = pool.units
    return unit


# --- Needs -------------------------------------------------------------------------------------------------------


class Need(NamedTuple):
    """Pods of a team that run at once; ``gpus`` is how many whole GPUs of one node each has, 0 for a part of one."""

    team: str
    name: str
    pods: int
    memory_mib: int = 0
    compute: Fraction = Fraction(0)
    gpus: int = 0
    models: tuple[str, ...] = ()

    def takes(self, model: str, unit: str) -> bool:
        """Whether a unit is enough for a pod, or for one of the GPUs of a pod that has several."""
        return (
            (unit == WHOLE or not self.gpus)
            and (not self.models or model in self.models)
            and memory_of(model, unit) >= self.memory_mib
            and compute_of(model, unit) >= self.compute
        )


def needs_of(demand: Data) -> tuple[Need, ...]:
    """Return the needs of a `Demand` document; no kind of isolation is weaker here than what a unit gives."""
    return tuple(
        Need(
            item["team"],
            item["name"],
            item["pods"],
            int(item["memory"].removesuffix("Gi")) * 1024 if "memory" in item else 0,
            Fraction(str(item.get("compute", 0))),
            item.get("gpus", 1 if item.get("isolation") == "wholeGpu" else 0),
            tuple(item.get("models", ())),
        )
        for item in demand["spec"]["needs"]
    )


def guaranteed(policies: Policies) -> tuple[Need, ...]:
    """Return what tenants are guaranteed as needs: as many units, each at least so large, of the same model."""
    units: Counter[tuple[str, str, str]] = Counter()
    for (tenant, pool, unit), number in policies.guarantees.items():
        units[tenant, policies.pools[pool].model, unit] += number
    return tuple(
        Need(tenant, unit, number, memory_of(model, unit), compute_of(model, unit), 1 if unit == WHOLE else 0, (model,))
        for (tenant, model, unit), number in units.items()
    )


# --- Whole numbers -----------------------------------------------------------------------------------------------

Row = tuple[float, dict[int, int], float]


class _Program:
    """Whole numbers from 0, and rows of whole factors between two bounds."""

    def __init__(self) -> None:
        self.upper: list[float] = []
        self.rows: list[Row] = []

    def number(self, upper: float = inf) -> int:
        self.upper.append(upper)
        return len(self.upper) - 1

    def row(self, least: float, factors: Mapping[int, int], most: float) -> None:
        self.rows.append((least, dict(factors), most))

    def least(self, costs: Mapping[int, int]) -> tuple[int, ...] | None:
        """Return the numbers at the least cost, or None if no numbers keep all rows; the rows are checked exactly."""
        import highspy

        model: Any = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.upper), len(self.rows)
        model.col_cost_ = [float(costs.get(index, 0)) for index in range(len(self.upper))]
        model.col_lower_ = [0.0] * len(self.upper)
        model.col_upper_ = list(map(float, self.upper))
        model.row_lower_ = [float(least) for least, _, _ in self.rows]
        model.row_upper_ = [float(most) for _, _, most in self.rows]
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.num_col_, model.a_matrix_.num_row_ = len(self.upper), len(self.rows)
        model.a_matrix_.start_ = [sum(len(row[1]) for row in self.rows[:at]) for at in range(len(self.rows) + 1)]
        model.a_matrix_.index_ = [index for _, factors, _ in self.rows for index in factors]
        model.a_matrix_.value_ = [float(value) for _, factors, _ in self.rows for value in factors.values()]
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(self.upper)
        solver: Any = getattr(highspy, "_Highs", highspy.Highs)()
        for option, value in {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "mip_abs_gap": 0.5}.items():
            solver.setOptionValue(option, value)
        solver.passModel(model)
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        assert status == highspy.HighsModelStatus.kOptimal, status
        values = tuple(round(value) for value in solver.getSolution().col_value)
        for least, factors, most in self.rows:
            assert least <= sum(factor * values[index] for index, factor in factors.items()) <= most
        return values


# --- The question ------------------------------------------------------------------------------------------------


class Limit(NamedTuple):
    """Nodes of a model: at most so many, each with so many GPUs."""

    nodes: int
    gpus_per_node: int


class Question:
    """The question of `pack`: ``needs`` to be served on nodes that may be cut in any way, but for the kept pools.

    Each team gets units that serve its needs. Later, instead of them, the units must serve its ``guarantees``: what a
    team is guaranteed and what it asks for need not be there at the same time.
    """

    def __init__(
        self,
        policies: Policies,
        needs: Sequence[Need],
        guarantees: Sequence[Need] = (),
        nodes_at_most: Mapping[str, int] | None = None,
        keep: Iterable[str] = (),
    ) -> None:
        self.needs, self.guarantees = tuple(needs), tuple(guarantees)
        pools = policies.pools.values()
        self.limits = {
            pool.model: Limit(
                (nodes_at_most or {}).get(pool.model, sum(other.nodes for other in pools if other.model == pool.model)),
                len(pool.cut),
            )
            for pool in pools
        }
        self.kept = [policies.pools[name] for name in keep]

    @cached_property
    def least_gpus(self) -> int | None:
        """The fewest GPUs of whole nodes that serve all, or None if the nodes are too few."""
        program = _Packed(self)
        for at, need in enumerate(self.needs):
            program.row(need.pods, program.served[at], inf)
        values = program.least(program.costs)
        if values is None:
            return None
        return sum(cost * values[index] for index, cost in program.costs.items())

    def most_served(self) -> tuple[int, ...] | None:
        """Return the pods of each need that can run, as many as can of the first, then of the next and so on.

        None if the guarantees alone are too much.
        """
        program = _Packed(self)
        if program.least({}) is None:
            return None
        most = []
        for at, need in enumerate(self.needs):
            program.row(0, program.served[at], need.pods)
            values = program.least(dict.fromkeys(program.served[at], -1))
            assert values is not None
            most.append(sum(values[index] for index in program.served[at]))
            program.row(most[-1], program.served[at], inf)
        return tuple(most)


class _Packed(_Program):
    """The numbers of a question: nodes in use, instances by where they begin, and the units of each team.

    ``costs`` are the GPUs of each node in use, ``served`` the numbers of pods of each need by where they run.
    """

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.costs: dict[int, int] = {}
        self.served: list[list[int]] = [[] for _ in question.needs]
        self._question = question
        self._held: dict[str, list[tuple[str, str, dict[int, int]]]] = {}
        self._gangs: dict[int, list[tuple[str, int]]] = {}
        self._teams = sorted({need.team for need in (*question.needs, *question.guarantees)})
        for model, limit in question.limits.items():
            kept = [pool for pool in question.kept if pool.model == model]
            for pool in kept:
                self._keep(pool)
            self._cut(model, limit.nodes - sum(pool.nodes for pool in kept), limit.gpus_per_node)
        self._serve()

    def _keep(self, pool: Pool) -> None:
        units = pool.units
        gangs: list[dict[int, int]] = []
        for _ in range(pool.nodes):
            self.costs[self._fixed()] = len(pool.cut)
            gangs.append(self._gangs_on_node(pool.model, {}, units[WHOLE]))
        for unit, number in units.items():
            if unit != WHOLE:
                self._hand_out(pool.model, unit, {}, number * pool.nodes)
        self._hand_out_whole(pool.model, gangs, {}, units[WHOLE] * pool.nodes)

    def _fixed(self) -> int:
        index = self.number(1)
        self.row(1, {index: 1}, 1)
        return index

    def _cut(self, model: str, nodes: int, gpus: int) -> None:
        board = BOARDS[model]
        used = [self.number(1) for _ in range(nodes)]
        self.costs |= dict.fromkeys(used, gpus)
        for one, after in pairwise(used):
            self.row(0, {one: 1, after: -1}, 1)
        gangs = [self._gangs_on_node(model, {one: -gpus}, 0) for one in used]
        divided = self.number(nodes * gpus)
        covering: list[dict[int, int]] = [{divided: -1} for _ in range(board.slices)]
        for name, profile in board.profiles.items():
            begun = {start: self.number() for start in profile.starts}
            for start, index in begun.items():
                for at in range(start, start + profile.size):
                    covering[at][index] = 1
            self._hand_out(model, name, dict.fromkeys(begun.values(), -1), 0)
        for row in covering:
            self.row(-inf, row, 0)
        self._hand_out_whole(model, gangs, {divided: 1, **dict.fromkeys(used, -gpus)}, 0)

    def _gangs_on_node(self, model: str, room: Mapping[int, int], more: int) -> dict[int, int]:
        """Add the pods with several GPUs that one node has, by need; the GPUs of the node are enough for them."""
        takers = {
            at: self.number(need.pods)
            for at, need in enumerate(self._question.needs)
            if need.gpus > 1 and need.takes(model, WHOLE)
        }
        if takers:
            self.row(-inf, {**{index: self._question.needs[at].gpus for at, index in takers.items()}, **room}, more)
        return takers

    def _hand_out(self, model: str, unit: str, supply: Mapping[int, int], more: int) -> None:
        """Let teams have the units that there are: ``more``, and what the numbers of ``supply`` take from the sum."""
        mine = {team: self.number() for team in self._teams}
        self.row(-inf, {**dict.fromkeys(mine.values(), 1), **supply}, more)
        for team, index in mine.items():
            self._held.setdefault(team, []).append((model, unit, {index: 1}))

    def _hand_out_whole(
        self, model: str, gangs: Sequence[Mapping[int, int]], supply: Mapping[int, int], more: int
    ) -> None:
        sizes = {index: self._question.needs[at].gpus for takers in gangs for at, index in takers.items()}
        self._hand_out(model, WHOLE, {**supply, **sizes}, more)
        for takers in gangs:
            for at, index in takers.items():
                self._gangs.setdefault(at, []).append((model, index))

    def _serve(self) -> None:
        """Let the units of each team serve its needs, and, instead of them, its guarantees."""
        question = self._question
        for at in self._gangs:
            self.served[at] = [index for _, index in self._gangs[at]]
        for team in self._teams:
            mine = [(at, need) for at, need in enumerate(question.needs) if need.team == team and need.gpus < 2]
            promised = [(at, need) for at, need in enumerate(question.guarantees) if need.team == team]
            kept: dict[int, list[int]] = {at: [] for at, _ in promised}
            for model, unit, held in self._held[team]:
                takers = {at: self.number() for at, need in mine if need.takes(model, unit)}
                for at, index in takers.items():
                    self.served[at].append(index)
                self._within(takers.values(), held)
                takers = {at: self.number() for at, need in promised if need.takes(model, unit)}
                for at, index in takers.items():
                    kept[at].append(index)
                self._within(takers.values(), held)
            of_gangs = {
                model: {
                    index: question.needs[at].gpus
                    for at, places in self._gangs.items()
                    for other, index in places
                    if other == model and question.needs[at].team == team
                }
                for model in question.limits
            }
            for model, held in of_gangs.items():
                takers = {at: self.number() for at, need in promised if held and need.takes(model, WHOLE)}
                for at, index in takers.items():
                    kept[at].append(index)
                self._within(takers.values(), held)
            for at, need in promised:
                self.row(need.pods, dict.fromkeys(kept[at], 1), inf)

    def row(self, least: float, factors: Mapping[int, int] | Iterable[int], most: float) -> None:
        super().row(least, factors if isinstance(factors, Mapping) else dict.fromkeys(factors, 1), most)

    def _within(self, takers: Iterable[int], held: Mapping[int, int]) -> None:
        numbers = dict.fromkeys(takers, 1)
        if numbers:
            self.row(-inf, {**numbers, **{index: -factor for index, factor in held.items()}}, 0)


# --- Policies that were written ----------------------------------------------------------------------------------


def faults(policies: Policies) -> Iterator[str]:
    """Yield layouts that no GPU can hold, and units that are guaranteed more often than there are."""
    for name, pool in policies.pools.items():
        for instances in pool.cut:
            if not is_layout(pool.model, dict(instances)):
                yield f"no {pool.model} of pool {name} holds {dict(instances)}"
    granted: Counter[tuple[str, str]] = Counter()
    for (_, pool_name, unit), number in policies.guarantees.items():
        granted[pool_name, unit] += number
    for (pool_name, unit), number in granted.items():
        capacity = policies.pools[pool_name].units[unit] * policies.pools[pool_name].nodes
        if number > capacity:
            yield f"pool {pool_name} has {capacity} {unit}, and {number} are guaranteed"


def unserved(policies: Policies, needs: Sequence[Need]) -> int:
    """Return the pods that cannot run when all teams at once run all of theirs within what they are guaranteed.

    A pod with several GPUs has them on one node of one pool, and no other pod has them at the same time.
    """
    if not needs:
        return 0
    program = _Program()
    runs: dict[int, int] = {}
    by_quota: dict[tuple[str, str, str], dict[int, int]] = {}
    for name, pool in policies.pools.items():
        nodes: list[dict[int, int]] = [{} for _ in range(pool.nodes)]
        for at, need in enumerate(needs):
            for unit in [unit for unit in pool.units if need.takes(pool.model, unit)]:
                places = nodes if need.gpus > 1 else [{}]
                for place in places:
                    index = program.number(need.pods)
                    runs[index] = at
                    place[index] = max(need.gpus, 1)
                    by_quota.setdefault((need.team, name, unit), {})[index] = max(need.gpus, 1)
        for place in nodes:
            program.row(-inf, place, pool.units[WHOLE])
    for key, takers in by_quota.items():
        program.row(-inf, takers, policies.guarantees.get(key, 0))
    for at, need in enumerate(needs):
        program.row(0, {index: 1 for index, other in runs.items() if other == at}, need.pods)
    values = program.least(dict.fromkeys(runs, -1))
    assert values is not None
    return sum(need.pods for need in needs) - sum(values[index] for index in runs)


# --- Drains ------------------------------------------------------------------------------------------------------


class Moves(NamedTuple):
    """Nodes that are cut in another way afterwards, nodes that are in no pool then, and nodes that are in none today.

    Nodes of a model stand for one another. Those of a pool that is cut as before stay, as many as it has then, and
    today at most.
    """

    recut: int
    removed: int
    new: int


def moves(before: Policies, after: Policies) -> Moves:
    recut = removed = new = 0
    for model in {pool.model for pool in (*before.pools.values(), *after.pools.values())}:
        today = {name: pool for name, pool in before.pools.items() if pool.model == model}
        then = {name: pool for name, pool in after.pools.items() if pool.model == model}
        was, will_be = (sum(pool.nodes for pool in pools.values()) for pools in (today, then))
        stay = sum(
            min(pool.nodes, then[name].nodes)
            for name, pool in today.items()
            if name in then and then[name].kind == pool.kind
        )
        removed += max(was - will_be, 0)
        new += max(will_be - was, 0)
        recut += will_be - max(will_be - was, 0) - stay
    return Moves(recut, removed, new)
