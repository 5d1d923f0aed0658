"""The MigLayouts that pools of a dump need: an entry of the MIG manager's file for one model each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count as numbers
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Origin, Severity
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import count, joined
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.checks.wording import gpu_numbers
from gpuplan.compiler.planning.layouts import content_hash
from gpuplan.compiler.planning.pools import ALL_DISABLED
from gpuplan.features.live.drafts import Draft, policy_name
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.pools.divisions import (
    Division,
    Entry,
    Spec,
    divide,
    divide_instances,
    find_stock,
    layout_of,
    other_boards,
    profiles_of,
    renamed,
)
from gpuplan.features.live.pools.files import MIG_MANAGER, OPERATORS_OWN


class Use(Value):
    """A pool whose nodes name an entry. ``published`` is what one node has of each profile, as far as it is known.

    ``old_names`` are those of them that the node has under names of another driver.
    """

    pool: str
    gpu: Gpu
    entry: str
    nodes: int
    gpus_per_node: int
    published: Mapping[str, int]
    at: Origin
    old_names: frozenset[str] = frozenset()


class _Meaning(NamedTuple):
    """The division that an entry stands for on a model, and its source."""

    spec: Spec
    source: str
    keeps_name: bool = True


class Layouts:
    """Finds what each pool is divided into; the drafts are those of all that were asked for."""

    def __init__(self, entries: Mapping[str, Entry], uses: Sequence[Use], reports: Reports) -> None:
        self._entries, self._uses, self._reports = entries, uses, reports
        self._drafts: dict[str, Draft] = {}
        self._written: dict[str, str] = {}
        self._used = {use.entry for use in uses}
        self._models = list(dict.fromkeys(use.gpu.id for use in uses))
        self._meanings: dict[tuple[str, str], _Meaning | None] = {}
        ranked = sorted(uses, key=lambda use: (-use.nodes, use.pool))
        self._keeper: dict[str, str] = {}
        for use in ranked:
            meaning = self._meaning(use)
            if meaning and meaning.keeps_name:
                self._keeper.setdefault(use.entry, self._hash(meaning, use))

    def mig_of(self, use: Use) -> dict[str, Any] | None:
        """Return a pool's reference to its layout, or None if nothing says how its GPUs are divided."""
        meaning = self._meaning(use)
        if meaning is None:
            return None
        keeps = not meaning.keeps_name or self._keeper[use.entry] == self._hash(meaning, use)
        if not keeps:
            at = self._entries[use.entry].at if use.entry in self._entries else use.at
            self._reports.say("one-name-for-several-divisions", at, f"Pool {use.pool}", use=use)
        key = f"{use.entry} {use.gpu.id}"
        if key not in self._written:
            name = self._written[key] = self._free(policy_name(use.entry), use.gpu)
            kept = {"configName": use.entry} if meaning.keeps_name and keeps else {}
            spec = {"gpu": use.gpu.id, **kept, **meaning.spec}
            self._drafts[name] = Draft("MigLayout", name, spec, (meaning.source,))
        return {"layout": self._written[key]}

    # --- What an entry means ---

    def _meaning(self, use: Use) -> _Meaning | None:
        key = use.entry, use.gpu.id
        if key not in self._meanings:
            self._meanings[key] = self._find(use)
        return self._meanings[key]

    def _find(self, use: Use) -> _Meaning | None:
        entry, pool = self._entries.get(use.entry), f"Pool {use.pool}"
        if entry is not None:
            division = divide(entry, use.gpu)
            if not division.fault:
                if boards := joined([f"`{board}`" for board in other_boards(entry)]):
                    self._reports.say(
                        "entry-for-boards-without-mig", entry.at, pool, boards=boards, entry=entry, use=use
                    )
                spec = self._covering(use, entry, self._renamed(use, entry, division.spec))
                if division.loss:
                    self._reports.say("entry-in-part", entry.at, pool, entry=entry, division=division, use=use)
                return _Meaning(spec, entry.file.source, keeps_name=not division.loss)
            if entry.problems:  # which say it better
                self._reports.remark(pool, f"entry `{use.entry}` {division.fault}")
            else:
                self._tell_fault(use, entry.at, division)
        elif stock := find_stock(use.entry, use.gpu):
            if not stock.fault:
                return _Meaning(stock.spec, f"entry `{use.entry}` (NVIDIA's GPU Operator)")
            self._tell_fault(use, use.at, stock)
            return self._as_published(use, is_known=True)
        return self._as_published(use, is_known=entry is not None)

    def _renamed(self, use: Use, entry: Entry, spec: Spec) -> Spec:
        """With the names that profiles have today, unless the nodes publish those of another driver."""
        old = [name for name in profiles_of(spec) if name in use.gpu.legacy_names and name not in use.old_names]
        if not old:
            return spec
        names = joined([f"`{name}`" for name in old])
        current = joined([f"`{use.gpu.current_name(name)}`" for name in old])
        pool = f"Pool {use.pool}"
        self._reports.say("names-of-some-drivers", entry.at, pool, current=current, entry=entry, old=names)
        return renamed(spec, {name: use.gpu.current_name(name) for name in old})

    def _covering(self, use: Use, entry: Entry, spec: Spec) -> Spec:
        """With the GPUs that the entry says nothing of, as they are: whole."""
        named = [part["gpus"] for part in spec.get("devices", ())]
        if not named or "all" in named:
            return spec
        size = max(found.gpus_per_node for found in self._uses if (found.entry, found.gpu) == (use.entry, use.gpu))
        missing = sorted(set(range(size)) - {index for gpus in named for index in gpus})
        if not missing:
            return spec
        self._reports.say("gpus-without-a-word", entry.at, f"Pool {use.pool}", entry=entry, gpus=gpu_numbers(missing))
        return {"devices": [*spec["devices"], {"gpus": missing, "enabled": False}]}

    def _tell_fault(self, use: Use, at: Origin, division: Division) -> None:
        self._reports.say(
            "entry-is-no-layout",
            at,
            f"Pool {use.pool}",
            notes=() if division.works else ("the MIG manager fails on these nodes, and leaves them as they were",),
            severity=None if division.works else Severity.ERROR,
            division=division,
            use=use,
        )

    def _as_published(self, use: Use, *, is_known: bool) -> _Meaning | None:
        """Return the division that nodes publish, if it is the same on each GPU of a node."""
        found = {name: number // max(use.gpus_per_node, 1) for name, number in use.published.items()}
        is_even = all(number % max(use.gpus_per_node, 1) == 0 for number in use.published.values())
        division = divide_instances(found, use.gpu) if found and is_even else None
        is_usable = division is not None and not division.fault
        if not is_known:
            label = "what they publish is taken for it" if is_usable else "nothing says what it divides GPUs into"
            self._reports.say("entry-in-no-file", use.at, f"Pool {use.pool}", label=label, use=use)
        file = use.at.locate().file.path
        return _Meaning(division.spec, f"what its nodes publish ({file})") if division and is_usable else None

    def _hash(self, meaning: _Meaning, use: Use) -> str:
        return content_hash(layout_of(use.at, "", use.gpu, meaning.spec).entries)

    # --- Drafts ---

    def _free(self, name: str, gpu: Gpu) -> str:
        """Return a name that no other layout has, and that means nothing to the operator."""
        longer = f"{name}-{policy_name(gpu.id)}"[:_LONGEST].strip("-")
        tries = chain((name, longer), (f"{name}-{number}" for number in numbers(2)))
        return next(found for found in tries if found not in self._drafts and found not in _OF_MIG_MANAGER)

    def spec_of(self, layout: str) -> Spec:
        """Return the instances of a layout that was asked for."""
        return {field: part for field, part in self._drafts[layout].spec.items() if field in ("instances", "devices")}

    def rest(self) -> Iterator[Draft]:
        """Yield the drafts of all layouts that were asked for, and of those in gpuplan's file that no node names."""
        unused: list[Entry] = []
        for name in sorted(self._entries.keys() - self._used - {ALL_DISABLED}):
            entry = self._entries[name]
            ids = dict.fromkeys((*self._models, *load().ids()))  # the models of the dump's pools first
            gpus = filter(None, map(load().find, ids if entry.file.owner.startswith(MIG_MANAGER.config_map) else ()))
            gpu = next((found for found in gpus if found.supports_mig and divide(entry, found).spec), None)
            if gpu is None:
                unused.append(entry)
                continue
            layout = self._free(policy_name(name), gpu)
            spec = {"gpu": gpu.id, "configName": name, **divide(entry, gpu).spec}
            self._drafts[layout] = Draft("MigLayout", layout, spec, (entry.file.source,))
        yield from self._drafts.values()
        of_others = [entry for entry in unused if entry.file.owner != OPERATORS_OWN]
        if of_others:
            more = len(of_others) - 3
            names = joined([*(f"`{entry.name}`" for entry in of_others[:3]), *([f"{more} more"] if more > 0 else [])])
            entries = count(len(of_others), "entry", "entries")
            self._reports.say("unused-entries", of_others[0].at, entries=entries, names=names)


_OF_MIG_MANAGER: Final = (ALL_DISABLED, "all-enabled", "all-balanced")
"""Entries of NVIDIA's own file that are called as a layout may be."""

_LONGEST: Final = 54
"""Behind a layout's name comes a hash, and both are the value of a label."""
