"""From demand to pools and layouts: an answer of `sizing` as a patch of policies, judged and compared."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from time import monotonic
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
from gpuplan.features.packing.checking import not_held
from gpuplan.features.packing.fleet import Fleet, Wish, fleet_of
from gpuplan.features.packing.granting import Flow, Moved, cuts_guarantees, flows_of, rewritten, seats
from gpuplan.features.packing.judging import in_the_way, misplaced, unmet, unnamed
from gpuplan.features.packing.model import ALTERNATIVES_S, Numbers, Packing, Variant, Variation
from gpuplan.features.packing.patching import overlay_texts, packed_path, patched
from gpuplan.features.packing.proposing import documents_of, insist_on_prices, tenants_to_add
from gpuplan.features.packing.sizing.answers import Objective, Way
from gpuplan.features.packing.sizing.choosing import choose
from gpuplan.features.packing.sizing.choosing.highs import ALL_THE_TIME, Clock
from gpuplan.features.packing.sizing.demand import from_files, from_plan
from gpuplan.features.packing.sizing.demand.guarantees import Order, beyond, guaranteed_first
from gpuplan.features.packing.sizing.needs import MARGIN, PERCENTILE, Basis, Need

__all__ = ["Numbers", "Packing", "Question", "Variant", "Variation", "pack", "write_packing"]


class Question(NamedTuple):
    """The question beside the demand; ``basis`` is what of the platform counts if the demand names nobody.

    ``percentile`` is that of samples, above 0 and at most 100; ``margin`` is the part that comes on top of it.
    Guarantees of teams that ask for less stay, unless they ``may_cut_guarantees``.
    """

    objective: Objective
    wish: Wish
    most_layouts: int | None
    alternatives: bool
    basis: Basis
    percentile: float
    margin: Fraction
    may_cut_guarantees: bool


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
    may_cut_guarantees: bool = False,
    begin: Callable[[Variation], None] | None = None,
    answered: Callable[[Packing], None] | None = None,
) -> Packing:
    """Compute how the GPUs of a cluster are best cut for a demand. Nothing is written.

    ``demand`` is contents of files by name: `Demand` documents, tables, or what Prometheus answered. Without, it is
    what the platform itself says, by ``basis``: what quotas guarantee, what they allow, or what workloads run. Of what
    Prometheus measured, a need is the ``percentile`` of samples, above 0 and at most 100, and a ``margin`` on top of
    it, 1/5 for a fifth. What tenants are guaranteed today is met first, and is part of the demand also where a
    tenant asks for less, unless guarantees may be cut. Each answer may take seconds: ``begin`` is called with the next
    one before each search, and ``answered`` with the answer before there are alternatives. These are looked for during
    `ALTERNATIVES_S` seconds.
    """
    wish = Wish(tuple(pools), tuple(keep), dict(nodes_at_most))
    question = Question(
        Objective(objective), wish, most_layouts, alternatives, Basis(basis), percentile, margin, may_cut_guarantees
    )
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
    order, remarks = asking.order(demand)
    needs = order.needs
    packing = Packing(
        name,
        question.objective,
        report,
        plan,
        needs,
        remarks,
        spared=order.spared,
        is_from_quotas=not demand,
        basis=question.basis,
        texts=asking.texts,
    )
    if has_errors(remarks):
        return packing
    if not any(need.pods or need.service for need in needs):
        raise GpuplanError(
            f"nobody asks for GPUs of cluster `{name}`: no tenant is guaranteed any in the pools in question",
            "give a demand, such as `gpuplan pack teams.csv`; `gpuplan schema demand` says what one holds",
        )
    variants: tuple[Variant, ...] = ()
    for variant in asking.variants(order, begin):
        variants = (*variants, variant)
        if answered is not None and len(variants) == 1:
            answered(replace(packing, variants=variants))
    return replace(packing, variants=variants, has_stopped=asking.has_stopped)


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
    """Return the text of a file as it is now, with its byte order mark, or None if there is no file."""
    return path.read_bytes().decode("utf-8", "replace") if path.is_file() else None


class _Asking:
    """One question to one cluster."""

    def __init__(self, root: Path, repository: Repository, report: Report, plan: Plan, question: Question) -> None:
        self._root = root
        self._report = report
        self._plan = plan
        self._question = question
        self._cluster = plan.cluster.name
        self._documents: Sequence[Document] = repository.documents[self._cluster]
        self._texts = dict(overlay_texts(self._documents, self._cluster))
        packed = packed_path(self._cluster)
        if packed not in self._texts and (text := _text_of(root / packed)) is not None:
            self._texts[packed] = text.removeprefix("\ufeff")  # of an earlier run; it may only take documents away
        self._marked = {path for path in self._texts if (root / path).read_bytes().startswith(BOM_UTF8)}
        self.texts = {path: self._as_file(path, text) for path, text in self._texts.items()}
        self.has_stopped = False
        """Whether there was no time left for some alternative."""
        self._before = Platform.of(Side.work_tree(root), repository)

    def _as_file(self, path: str, text: str) -> str:
        """Return a text with the byte order mark that editors on Windows write, if the file begins with one."""
        return f"\ufeff{text}" if path in self._marked else text

    def order(self, demand: Mapping[str, bytes]) -> tuple[Order, tuple[Diagnostic, ...]]:
        """Return what teams are guaranteed, and the demand that is given beyond it."""
        fleet = fleet_of(self._plan, self._question.wish)
        if not fleet.pools:
            raise GpuplanError(
                f"cluster `{self._cluster}` has no pool whose GPUs could be cut",
                "; ".join(f"`{one.pool}`: {one.why}" for one in fleet.left_alone) or "add a pool",
            )
        if self._question.objective is Objective.PRICE:
            insist_on_prices(self._plan, fleet)
        pools = sorted(fleet.names)
        question = self._question
        guaranteed, remarks = from_plan(self._plan, pools)
        stated: tuple[Need, ...] = ()
        if question.basis is not Basis.GUARANTEED:
            stated, more = from_plan(self._plan, pools, question.basis)
            remarks = (*remarks, *(one for one in more if one not in remarks))
        may_cut = question.may_cut_guarantees
        if not demand:
            return guaranteed_first(self._plan, stated, guaranteed, may_cut=may_cut), remarks
        asked, remarks = from_files(demand, self._plan, percentile=question.percentile, margin=question.margin)
        if not asked and not has_errors(remarks):
            raise GpuplanError(
                f"{listing(sorted(demand))} {'asks' if len(demand) == 1 else 'ask'} for nothing",
                "add a row, or an item of `needs`, for each team: `gpuplan schema demand` says what one holds",
            )
        in_question = [need.today is not None and need.today[0] in fleet.names for need in asked]
        asked = tuple(
            need if is_in else replace(need, today=None) for need, is_in in zip(asked, in_question, strict=True)
        )
        teams = {need.team for need in asked}
        elsewhere = [one for one in from_plan(self._plan)[0] if one.today and one.today[0] not in fleet.names]
        asked = (*beyond(self._plan, asked, elsewhere), *(need for need in stated if need.team not in teams))
        return guaranteed_first(self._plan, asked, guaranteed, may_cut=may_cut), remarks

    def variants(self, order: Order, begin: Callable[[Variation], None] | None) -> Iterator[Variant]:
        """Yield the answer to the question, then each alternative that makes other policies."""
        question = self._question
        if begin is not None:
            begin(Variation.ASKED)
        chosen = self._variant(Variation.ASKED, order, question.wish, question.objective, question.most_layouts)
        yield chosen
        seen = {_policies(chosen)}
        clock = Clock(end_s=monotonic() + ALTERNATIVES_S)
        for variation, wish, objective, most in self._others(chosen, order.needs) if question.alternatives else ():
            if not clock.rest_s:
                self.has_stopped = True
                return
            if begin is not None:
                begin(variation)
            try:
                other = self._variant(variation, order, wish, objective, most, clock)
            except GpuplanError:  # the solver has not found it in time
                continue
            if other.is_valid and _policies(other) not in seen:
                seen.add(_policies(other))
                yield other

    def _others(
        self, chosen: Variant, needs: Sequence[Need]
    ) -> Iterator[tuple[Variation, Wish, Objective, int | None]]:
        wish, objective = self._question.wish, self._question.objective
        kept = {one.pool for one in chosen.fleet.kept}
        groups = [group for group in chosen.answer.groups if group.cut.way is Way.MIG and group.pool not in kept]
        layouts = len({(group.node_type.gpu.id, group.cut.key) for group in groups})
        if layouts > 2:
            yield Variation.FEWER_LAYOUTS, wish, objective, layouts - 1
        if layouts > 1:
            yield Variation.ONE_LAYOUT, wish, objective, 1
        weakest = {need.isolation for need in needs}
        shares = [Way.TIME_SLICING] if Isolation.NONE in weakest else []
        shares += [Way.MPS] if weakest & {Isolation.NONE, Isolation.MPS} else []
        if shares:
            yield Variation.SHARED, wish._replace(shares=tuple(shares)), objective, self._question.most_layouts
        if objective is not Objective.CHANGES:
            yield Variation.FEWEST_CHANGES, wish, Objective.CHANGES, self._question.most_layouts

    def _variant(
        self,
        variation: Variation,
        order: Order,
        wish: Wish,
        objective: Objective,
        most_layouts: int | None,
        clock: Clock | None = None,
    ) -> Variant:
        """Return an answer, the policies that it makes, and what these change."""
        needs = order.needs
        fleet = fleet_of(self._plan, wish._replace(with_media=any(need.engines for need in needs)))
        chosen = choose(
            needs,
            fleet.node_types,
            objective,
            most_layouts=most_layouts,
            clock=clock or ALL_THE_TIME,
            may_lack=clock is None,
        )
        enough = self._enough(needs, fleet, most_layouts) if chosen.unmet and variation is Variation.ASKED else {}
        plan = self._plan
        assignment = assign(plan, fleet, chosen)
        flows = flows_of(plan, chosen, assignment)
        if not (chosen.unmet or assignment.changes_nodes or cuts_guarantees(plan, fleet.names, flows)) and not any(
            True for claim in order.claims for _ in not_held(plan, claim, {})
        ):  # what is guaranteed today is enough: another answer as good would move quotas for nothing
            return self._judged(Variant(variation, chosen, fleet, assignment, (), (), {}, self._report))
        grants = rewritten(plan, fleet.names, assignment, flows, limits_stay=self._question.basis is Basis.LIMIT)
        names = tenants_to_add(plan, flows)
        teams: dict[str, list[Flow]] = {name: [] for name in names.values()}
        for (team, _), mine in flows.items():
            if team in names:
                teams[names[team]] += mine
        seated = tuple(seats(plan, fleet.names, grants.quotas, assignment))
        wanted = documents_of(plan, fleet, assignment, grants, seated, teams)
        texts = patched(self._cluster, self._documents, self._texts, wanted)
        files = {path: text and self._as_file(path, text) for path, text in texts.items()}
        findings = (*unmet(plan, fleet, chosen, enough), *unnamed(plan, assignment), *in_the_way(seated, assignment))
        kept = (one for one in grants.moved if one.tenant in grants.quotas)  # others have in sum what they had
        moved = (*kept, *(Moved(name, None, (flow,)) for name, mine in teams.items() for flow in mine))
        variant = Variant(variation, chosen, fleet, assignment, moved, seated, files, self._report, findings=findings)
        if has_errors(findings):
            return variant
        judged = self._judged(variant)
        if judged.plan is None:
            return judged
        lacking = [one for claim in order.claims for one in not_held(judged.plan, claim, names)]
        return replace(judged, findings=(*judged.findings, *misplaced(judged.plan, lacking)))

    def _enough(self, needs: Sequence[Need], fleet: Fleet, most_layouts: int | None) -> Mapping[str, int]:
        """Return how many nodes of each type would do for all, or nothing if that is not found."""
        types = [replace(node_type, nodes=None, nodes_of_model=None) for node_type in fleet.node_types]
        try:
            answer = choose(needs, types, Objective.GPUS, most_layouts=most_layouts, may_lack=False)
        except GpuplanError:
            return {}
        numbers = Counter({node_type.name: 0 for node_type in types})
        for group in answer.groups:
            numbers[group.node_type.name] += group.nodes
        return numbers

    def _judged(self, variant: Variant) -> Variant:
        """Return the variant with its policies read as files, judged, and compared with the policies of today."""
        contents = {path: (text or "").encode() for path, text in variant.files.items()}
        known = tuple(find_folders(self._root, OVERLAYS))
        repository = load_tree(Written(DiskTree(self._root), contents), known, (self._cluster,))
        after: Platform = Platform.of(Side(SideKind.PROPOSAL, "the proposal", self._root), repository)
        report = after.report or self._report
        plan = after.plans.get(self._cluster)
        if after.errors or plan is None:
            return replace(variant, report=report, findings=(*variant.findings, *after.errors))
        return replace(variant, report=report, plan=plan, diff=compare_platforms(self._before, after))


def _policies(variant: Variant) -> object:
    return tuple(sorted((path, text or "") for path, text in variant.files.items()))
