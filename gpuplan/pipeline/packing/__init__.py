"""From demand to pools and layouts: an answer of `gpuplan.sizing` as a patch of policies, judged and compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType

from gpuplan.diagnostics import Diagnostic, GpuplanError, has_errors
from gpuplan.documents import DiskTree, Document, find_folders
from gpuplan.pipeline import Report, report_on
from gpuplan.pipeline.comparing import Platform, Side, SideKind, compare_platforms, platform_of, work_tree
from gpuplan.pipeline.drafting import Written
from gpuplan.pipeline.loading import OVERLAYS, Repository, load, load_tree
from gpuplan.pipeline.packing.assigning import assign
from gpuplan.pipeline.packing.fleet import Fleet, Wish, fleet_of
from gpuplan.pipeline.packing.granting import flows_of, rewritten, seats
from gpuplan.pipeline.packing.judging import in_the_way, unmet, unnamed
from gpuplan.pipeline.packing.model import Numbers, Packing, Variant, Variation, numbers_of
from gpuplan.pipeline.packing.patching import overlay_texts, packed_path, patched
from gpuplan.pipeline.packing.proposing import documents_of, teams_of
from gpuplan.planning.plan import Isolation, Plan
from gpuplan.sizing.answers import Answer, Objective, Way
from gpuplan.sizing.needs import Need
from gpuplan.values import NamedTuple
from gpuplan.wording import listing

__all__ = ["Numbers", "Packing", "Question", "Variant", "Variation", "pack", "write_packing"]


class Question(NamedTuple):
    """What is asked for beside the demand; ``alternatives`` whether others are looked for beside the answer."""

    objective: Objective = Objective.GPUS
    wish: Wish = Wish()
    most_layouts: int | None = None
    alternatives: bool = True


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
) -> Packing:
    """How the GPUs of a cluster are best cut for a demand; nothing is written.

    ``demand`` is contents of files by name: `Demand` documents, tables, or what Prometheus answered. Without, it is
    what the platform's own quotas guarantee.
    """
    wish = Wish(tuple(pools), tuple(keep), dict(nodes_at_most))
    question = Question(Objective(objective), wish, most_layouts, alternatives)
    return answer(Path(root), demand, cluster, question)


def answer(root: Path, demand: Mapping[str, bytes], cluster: str, question: Question) -> Packing:
    name = _cluster(root, cluster)
    repository = load(root, (name,))
    report = report_on(repository)
    if not report.is_valid or not report.plans:
        return Packing(name, question.objective, report, None)
    plan = report.plans[0]
    asking = _Asking(root, repository, report, plan, question)
    needs, found = asking.needs(demand)
    packing = Packing(
        name, question.objective, report, plan, needs, found, is_from_quotas=not demand, texts=asking.texts
    )
    if has_errors(found):
        return packing
    if not any(need.pods or need.service for need in needs):
        raise GpuplanError(
            f"nothing is asked for: no quota of cluster `{name}` guarantees anything in the pools in question",
            "name a `Demand` document or a table: `gpuplan pack teams.yaml`",
        )
    variants = tuple(asking.variants(needs))
    return replace(packing, variants=variants)


def write_packing(packing: Packing, root: str | PathLike[str] = ".", alternative: int = 0) -> tuple[str, ...]:
    """Write the policies of the answer, or of an alternative, counted from 1; all files or none."""
    from gpuplan.pipeline.writing import write_all

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
    """What stands in a file now; None where there is none."""
    return path.read_bytes().decode("utf-8-sig", "replace") if path.is_file() else None


def _cluster(root: Path, wish: str) -> str:
    known = find_folders(root, OVERLAYS)
    if wish or not known:
        return wish
    if len(known) > 1:
        raise GpuplanError(f"there are {len(known)} clusters", f"choose with `--cluster` among {listing(known)}")
    return known[0]


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
        self.texts = _texts(root, self._documents, self._cluster)
        self._before = platform_of(work_tree(root), repository)

    def needs(self, demand: Mapping[str, bytes]) -> tuple[tuple[Need, ...], tuple[Diagnostic, ...]]:
        """The demand that is given, and what those are guaranteed whom it does not name."""
        from gpuplan.sizing.demand import from_files, from_plan

        fleet = fleet_of(self._plan, self._question.wish)
        if not fleet.pools:
            raise GpuplanError(
                f"cluster `{self._cluster}` has no pool whose GPUs could be cut",
                "; ".join(f"`{item.pool}`: {item.why}" for item in fleet.left_alone) or "add a pool",
            )
        own, found = from_plan(self._plan, tuple(sorted(fleet.names)))
        if not demand:
            return own, found
        asked, told = from_files(demand, self._plan)
        teams = {need.team for need in asked}
        return (*asked, *(need for need in own if need.team not in teams)), told

    def variants(self, needs: Sequence[Need]) -> Iterator[Variant]:
        question = self._question
        chosen = self.variant(Variation.ASKED, needs, question.wish, question.objective, question.most_layouts)
        yield chosen
        seen = {_told(chosen)}
        for variation, wish, objective, most in self._others(chosen, needs) if question.alternatives else ():
            other = self.variant(variation, needs, wish, objective, most)
            if other.is_valid and _told(other) not in seen:
                seen.add(_told(other))
                yield other

    def _others(
        self, chosen: Variant, needs: Sequence[Need]
    ) -> Iterator[tuple[Variation, Wish, Objective, int | None]]:
        wish, objective = self._question.wish, self._question.objective
        kept = {item.pool for item in chosen.fleet.kept}
        layouts = numbers_of(tuple(pool for pool in chosen.pools if pool.name not in kept), 0).layouts
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
        """An answer, the policies that it makes, and what these change."""
        from gpuplan.sizing.choosing import choose

        wish = wish._replace(with_media=any(need.engines for need in needs))
        fleet = fleet_of(self._plan, wish)
        found = choose(needs, fleet.node_types, objective, most_layouts=most_layouts)
        return self.as_variant(variation, needs, fleet, found)

    def as_variant(self, variation: Variation, needs: Sequence[Need], fleet: Fleet, found: Answer) -> Variant:
        plan = self._plan
        assignment = assign(plan, fleet, found)
        flows = flows_of(plan, found, assignment)
        asked = frozenset(need.team for need in needs if need.today is None)
        grants = rewritten(plan, fleet.names, assignment, flows, asked)
        seated = tuple(seats(plan, fleet.names, grants.quotas, assignment))
        teams = teams_of(plan, flows)
        wanted = documents_of(plan, fleet, assignment, grants, seated, teams)
        files = patched(self._cluster, self._documents, self.texts, wanted)
        findings = (*unmet(plan, fleet, found), *unnamed(plan, assignment), *in_the_way(seated, assignment))
        variant = Variant(
            variation, found, fleet, assignment, grants.moved, seated, files, self._report, findings=findings
        )
        return variant if has_errors(findings) else self._judged(variant)

    def _judged(self, variant: Variant) -> Variant:
        """The policies as they would be read, judged and compared with those that are there."""
        contents = {path: (text or "").encode() for path, text in variant.files.items()}
        known = tuple(find_folders(self._root, OVERLAYS))
        repository = load_tree(Written(DiskTree(self._root), contents), known, (self._cluster,))
        after: Platform = platform_of(Side(SideKind.PROPOSAL, "the proposal", self._root), repository)
        report = after.report or self._report
        plan = after.plans.get(self._cluster)
        if after.errors or plan is None:
            return replace(variant, report=report, findings=(*variant.findings, *after.errors))
        return replace(variant, report=report, plan=plan, diff=compare_platforms(self._before, after))


def _told(variant: Variant) -> object:
    return tuple(sorted((path, text or "") for path, text in variant.files.items()))


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
    return found if text is None else {**found, path: text}
