"""From demand to pools and layouts: an answer of `sizing` as a patch of policies, judged and compared."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from types import MappingProxyType

from gpuplan.compiler.base.diagnostics import Diagnostic, GpuplanError, has_errors
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.documents import DiskTree, Document, find_folders
from gpuplan.compiler.documents.filetree import Written
from gpuplan.compiler.pipeline import Report, report_on
from gpuplan.compiler.pipeline.loading import OVERLAYS, Repository, load, load_tree
from gpuplan.compiler.pipeline.writing import write_all
from gpuplan.compiler.planning.plan import Isolation, Plan
from gpuplan.features.changes import Platform, Side, SideKind, compare_platforms
from gpuplan.features.packing.assigning import assign
from gpuplan.features.packing.fleet import Fleet, Wish, fleet_of
from gpuplan.features.packing.granting import Moved, flows_of, rewritten, seats
from gpuplan.features.packing.judging import in_the_way, unmet, unnamed
from gpuplan.features.packing.model import Numbers, Packing, Variant, Variation
from gpuplan.features.packing.patching import overlay_texts, packed_path, patched
from gpuplan.features.packing.pricing import insist_on_prices
from gpuplan.features.packing.proposing import documents_of, teams_of
from gpuplan.features.packing.sizing.answers import Answer, Objective, Way
from gpuplan.features.packing.sizing.choosing import choose, highs
from gpuplan.features.packing.sizing.demand import from_files, from_plan
from gpuplan.features.packing.sizing.demand.basis import MARGIN, PERCENTILE, Basis, Measured
from gpuplan.features.packing.sizing.needs import Need

__all__ = ["Numbers", "Packing", "Question", "Variant", "Variation", "pack", "write_packing"]


class Question(NamedTuple):
    """What is asked for beside the demand; ``basis`` is what of the platform counts if the demand names nobody."""

    objective: Objective
    wish: Wish
    most_layouts: int | None
    alternatives: bool
    measured: Measured
    basis: Basis


def pack(
    root: str | PathLike[str] = ".",
    demand: Mapping[str, bytes] = MappingProxyType({}),
    *,
    cluster: str = "",
    pools: Sequence[str] = (),
    objective: str = Objective.GPUS.value,
    keep: Sequence[str] = (),
    most_layouts: int | None = None,
    nodes_at_most: Mapping[str, int] = MappingProxyType({}),
    alternatives: bool = True,
    percentile: float = PERCENTILE,
    margin: Fraction = MARGIN,
    basis: str = Basis.GUARANTEED.value,
    begin: Callable[[Variation], None] | None = None,
) -> Packing:
    """Compute how the GPUs of a cluster are best cut for a demand. Nothing is written.

    ``demand`` is contents of files by name: `Demand` documents, tables, or what Prometheus answered. Without, it is
    what the platform itself says, by ``basis``: what quotas guarantee, what they allow, or what workloads run. Of what
    Prometheus measured, a need is the ``percentile`` of samples, above 0 and at most 100, and a ``margin`` on top of
    it, 1/5 for a fifth. Each answer may take seconds: ``begin`` is called with the next one before each search.
    """
    wish = Wish(tuple(pools), tuple(keep), dict(nodes_at_most))
    measured = Measured(percentile, margin)
    question = Question(Objective(objective), wish, most_layouts, alternatives, measured, Basis(basis))
    folder = Path(root)
    known = find_folders(folder, OVERLAYS)
    if not cluster and len(known) > 1:
        raise GpuplanError(f"there are {len(known)} clusters", f"choose with `--cluster` among {listing(known)}")
    name = cluster or next(iter(known), "")
    repository = load(folder, (name,))
    report = report_on(repository)
    if not report.is_valid or not report.plans:
        return Packing(name, question.objective, report, None)
    plan = report.plans[0]
    asking = _Asking(folder, repository, report, plan, question)
    needs, remarks = asking.needs(demand)
    packing = Packing(
        name,
        question.objective,
        report,
        plan,
        needs,
        remarks,
        is_from_quotas=not demand,
        basis=question.basis,
        has_solver=highs.is_there(),
        texts=asking.texts,
    )
    if has_errors(remarks):
        return packing
    if not any(need.pods or need.service for need in needs):
        raise GpuplanError(
            f"nobody asks for GPUs of cluster `{name}`: no tenant is guaranteed any in the pools in question",
            "give a demand, such as `gpuplan pack teams.csv`; `gpuplan schema demand` says what one holds",
        )
    return replace(packing, variants=tuple(asking.variants(needs, begin)))


def write_packing(packing: Packing, root: str | PathLike[str] = ".", alternative: int = 0) -> tuple[str, ...]:
    """Write the policies of the answer, or of an alternative, counted from 1; all files or none."""
    if not 0 <= alternative < max(len(packing.variants), 1):
        count = len(packing.alternatives)
        raise GpuplanError(
            f"there is no alternative {alternative}",
            f"there are {count}: `--alternative 1`" if count else "there is none",
        )
    variant = packing.variants[alternative] if packing.variants else None
    if variant is None or not variant.is_valid:
        raise GpuplanError("nothing was written: the answer cannot be written", "see the findings")
    for path in variant.files:
        if _text_of(Path(root) / path) != packing.texts.get(path):
            raise GpuplanError(f"nothing was written: `{path}` has changed since it was read", "run it again")
    write_all(Path(root), variant.files)
    return tuple(sorted(variant.files))


def _text_of(path: Path) -> str | None:
    """What stands in a file now, with its byte order mark; None where there is none."""
    return path.read_bytes().decode("utf-8", "replace") if path.is_file() else None


class _Asking:
    """One question to one cluster."""

    def __init__(self, root: Path, repository: Repository, report: Report, plan: Plan, question: Question) -> None:
        self._root = root
        self._repository = repository
        self._report = report
        self._plan = plan
        self._question = question
        self._cluster = plan.cluster.name
        self._documents: Sequence[Document] = repository.documents[self._cluster]
        self._texts = _texts(root, self._documents, self._cluster)
        self._marked = {path for path in self._texts if (root / path).read_bytes().startswith(BOM_UTF8)}
        self.texts = {path: self._as_file(path, text) for path, text in self._texts.items()}
        self._before = Platform.of(Side.work_tree(root), repository)

    def _as_file(self, path: str, text: str) -> str:
        """A text with the byte order mark that editors on Windows begin files with, where the file has one."""
        return f"\ufeff{text}" if path in self._marked else text

    def needs(self, demand: Mapping[str, bytes]) -> tuple[tuple[Need, ...], tuple[Diagnostic, ...]]:
        """The demand that is given, and what those are guaranteed whom it does not name."""
        fleet = fleet_of(self._plan, self._question.wish)
        if not fleet.pools:
            raise GpuplanError(
                f"cluster `{self._cluster}` has no pool whose GPUs could be cut",
                "; ".join(f"`{item.pool}`: {item.why}" for item in fleet.left_alone) or "add a pool",
            )
        if self._question.objective is Objective.PRICE:
            insist_on_prices(self._plan, fleet)
        own, found = self._own(tuple(sorted(fleet.names)))
        if not demand:
            return own, found
        asked, told = from_files(demand, self._plan, **self._question.measured._asdict())
        if not asked and not has_errors(told):
            raise GpuplanError(
                f"{listing(sorted(demand))} {'asks' if len(demand) == 1 else 'ask'} for nothing",
                "add a row, or an item of `needs`, for each team: `gpuplan schema demand` says what one holds",
            )
        teams = {need.team for need in asked}
        asked = tuple(need if _is_on(need, fleet) else replace(need, today=None) for need in asked)
        return (*asked, *(need for need in own if need.team not in teams)), told

    def _own(self, pools: Sequence[str]) -> tuple[tuple[Need, ...], tuple[Diagnostic, ...]]:
        """What the platform asks for itself; who has no workloads keeps what is guaranteed."""
        own, found = from_plan(self._plan, pools, self._question.basis)
        if self._question.basis is not Basis.WORKLOADS:
            return own, found
        rest, told = from_plan(self._plan, pools)
        teams = {need.team for need in own}
        return (*own, *(need for need in rest if need.team not in teams)), (*found, *told)

    def variants(self, needs: Sequence[Need], begin: Callable[[Variation], None] | None) -> Iterator[Variant]:
        question = self._question
        if begin is not None:
            begin(Variation.ASKED)
        chosen = self.variant(Variation.ASKED, needs, question.wish, question.objective, question.most_layouts)
        yield chosen
        seen = {_told(chosen)}
        for variation, wish, objective, most in self._others(chosen, needs) if question.alternatives else ():
            if begin is not None:
                begin(variation)
            try:
                other = self.variant(variation, needs, wish, objective, most)
            except GpuplanError:  # what only a solver finds is no alternative where there is none
                continue
            if other.is_valid and _told(other) not in seen:
                seen.add(_told(other))
                yield other

    def _others(
        self, chosen: Variant, needs: Sequence[Need]
    ) -> Iterator[tuple[Variation, Wish, Objective, int | None]]:
        wish, objective = self._question.wish, self._question.objective
        layouts = _layouts(chosen)
        if layouts > 2:
            yield Variation.FEWER_LAYOUTS, wish, objective, layouts - 1
        if layouts > 1:
            yield Variation.ONE_LAYOUT, wish, objective, 1
        shares = _shares(needs)
        if shares:
            yield Variation.SHARED, wish._replace(shares=shares), objective, self._question.most_layouts
        if objective is not Objective.CHANGES:
            yield Variation.FEWEST_CHANGES, wish, Objective.CHANGES, self._question.most_layouts

    def variant(
        self, variation: Variation, needs: Sequence[Need], wish: Wish, objective: Objective, most_layouts: int | None
    ) -> Variant:
        """Return an answer, the policies that it makes, and what these change."""
        fleet = fleet_of(self._plan, wish._replace(with_media=any(need.engines for need in needs)))
        chosen = choose(needs, fleet.node_types, objective, most_layouts=most_layouts)
        if not highs.is_there() and most_layouts is None and objective in (Objective.GPUS, Objective.PRICE):
            chosen = self._no_worse_than_today(chosen, needs, fleet)
        enough = self._enough(needs, fleet, most_layouts) if chosen.unmet and variation is Variation.ASKED else {}
        return self.as_variant(variation, fleet, chosen, enough)

    def _no_worse_than_today(self, found: Answer, needs: Sequence[Need], fleet: Fleet) -> Answer:
        """Without a solver, all as it is cut today where that does as well: nothing is drained for no gain."""
        stay = [
            replace(item, pools=tuple(replace(today, is_kept=True) for today in item.pools))
            for item in fleet.node_types
            if item.nodes is None or item.nodes >= sum(today.nodes for today in item.pools)
        ]
        if len(stay) < len(fleet.node_types):
            return found
        today = choose(needs, stay, found.objective)
        is_as_good = not today.unmet and _worth(today) <= _worth(found)
        return replace(today, bound=found.bound) if is_as_good else found

    def _enough(self, needs: Sequence[Need], fleet: Fleet, most_layouts: int | None) -> dict[str, int]:
        """How many nodes of each type would do for all; empty where that is not found."""
        types = [replace(node_type, nodes=None) for node_type in fleet.node_types]
        try:
            found = choose(needs, types, Objective.GPUS, most_layouts=most_layouts)
        except GpuplanError:
            return {}
        numbers = Counter({node_type.name: 0 for node_type in types})
        for group in found.groups:
            numbers[group.node_type.name] += group.nodes
        return dict(numbers)

    def as_variant(
        self, variation: Variation, fleet: Fleet, found: Answer, enough: Mapping[str, int] = MappingProxyType({})
    ) -> Variant:
        """``enough`` is how many nodes of each type would do, where there are too few."""
        plan = self._plan
        assignment = assign(plan, fleet, found)
        flows = flows_of(plan, found, assignment)
        grants = rewritten(plan, fleet.names, assignment, flows)
        teams = teams_of(plan, flows)
        seated = tuple(seats(plan, fleet.names, grants.quotas, assignment))
        wanted = documents_of(plan, fleet, assignment, grants, seated, teams)
        texts = patched(self._cluster, self._documents, self._texts, wanted)
        files = {path: text and self._as_file(path, text) for path, text in texts.items()}
        findings = (*unmet(plan, fleet, found, enough), *unnamed(plan, assignment), *in_the_way(seated, assignment))
        moved = (*grants.moved, *(Moved(name, None, (flow,)) for name, mine in teams.items() for flow in mine))
        variant = Variant(variation, found, fleet, assignment, moved, seated, files, self._report, findings=findings)
        return variant if has_errors(findings) else self._judged(variant)

    def _judged(self, variant: Variant) -> Variant:
        """The policies as they would be read, judged and compared with those that are there."""
        contents = {path: (text or "").encode() for path, text in variant.files.items()}
        known = tuple(find_folders(self._root, OVERLAYS))
        repository = load_tree(Written(DiskTree(self._root), contents), known, (self._cluster,))
        after: Platform = Platform.of(Side(SideKind.PROPOSAL, "the proposal", self._root), repository)
        report = after.report or self._report
        plan = after.plans.get(self._cluster)
        if after.errors or plan is None:
            return replace(variant, report=report, findings=(*variant.findings, *after.errors))
        return replace(variant, report=report, plan=plan, diff=compare_platforms(self._before, after))


def _is_on(need: Need, fleet: Fleet) -> bool:
    """Whether the unit that a need has today is of a pool in question: quotas on others stay as they are."""
    return need.today is not None and need.today[0] in fleet.names


def _told(variant: Variant) -> object:
    return tuple(sorted((path, text or "") for path, text in variant.files.items()))


def _worth(found: Answer) -> Fraction:
    """What an answer takes, in the unit of its objective."""
    if found.objective is Objective.PRICE:
        return sum((Fraction(group.node_type.price or 0) * group.nodes for group in found.groups), Fraction(0))
    return Fraction(found.gpus)


def _layouts(variant: Variant) -> int:
    """The layouts that an answer chooses: those of pools that are kept are not its own."""
    kept = {item.pool for item in variant.fleet.kept}
    own = [group for group in variant.answer.groups if group.cut.way is Way.MIG and group.pool not in kept]
    return len({(group.node_type.gpu.id, group.cut.key) for group in own})


def _shares(needs: Iterable[Need]) -> tuple[Way, ...]:
    """The ways of sharing without hardware that some need would do with."""
    weakest = {need.isolation for need in needs}
    ways = [Way.TIME_SLICING] if Isolation.NONE in weakest else []
    return (*ways, *([Way.MPS] if weakest & {Isolation.NONE, Isolation.MPS} else []))


def _texts(root: Path, documents: Sequence[Document], cluster: str) -> dict[str, str]:
    """The cluster's own files that say something, and what an earlier run has written, which may only take away."""
    found = dict(overlay_texts(documents, cluster))
    path = packed_path(cluster)
    text = _text_of(root / path) if path not in found else None
    return found if text is None else {**found, path: text.removeprefix("\ufeff")}
