"""The context that the steps of resolving share: names of documents by kind, the catalog, the findings so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from gpuplan.compiler.base.diagnostics import Diagnostic, Finding, Label, Origin, Rule
from gpuplan.compiler.base.wording import help_on_variables, lengthened, listing, longer_names, misspelling
from gpuplan.compiler.catalog import Catalog, Gpu
from gpuplan.compiler.planning.gpus import unknown_gpu
from gpuplan.compiler.planning.plan import Layout, Pool, PriorityClass, Tenant
from gpuplan.compiler.planning.rules import UNKNOWN_GPU, UNKNOWN_REFERENCE, unknown_document
from gpuplan.compiler.policy import models

T = TypeVar("T")

_MOST_COMPARISONS = 20_000
"""The most comparisons of wrong names with known ones in one cluster. They take half a second."""


@dataclass(slots=True)
class Context:
    """Collects findings while one cluster is resolved, and what was resolved, which what comes next refers to.

    ``names`` holds every document's name by kind, sorted, also of those that no policy could be made of: a reference to
    a broken document is not wrong itself. ``removed`` tells by kind and name where the overlay removes a document.
    ``retained_configs`` are files of the device plugin by key. ``taints_pools_at`` is where the cluster closes its
    pools, if it does. Where the cluster ``is_partial``, documents are missing since they could not be read: any name
    may be one of theirs.
    """

    catalog: Catalog
    names: Mapping[str, Mapping[str, None]]
    removed: Mapping[tuple[str, str], Origin]
    is_partial: bool
    scheduler: models.Scheduler
    cap: models.Cap
    mig_strategy: models.ClusterMigStrategy
    plugin_config: models.DevicePluginConfig
    retained_configs: Mapping[str, Mapping[str, object]]
    taints_pools_at: Origin | None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    pools: Mapping[str, Pool] = field(default_factory=dict)
    classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    _compared: int = 0
    _referred: set[tuple[str, str]] = field(default_factory=set)
    _unknown: dict[int, tuple[str, str, str]] = field(default_factory=dict)

    def report(self, rule: Rule, finding: Finding) -> None:
        self.diagnostics.append(rule.report(finding))

    def refer(
        self,
        kind: str,
        name: str,
        at: Origin,
        known: Mapping[str, T],
        instead: str = "",
        other: str = "",
        optional: str = "",
    ) -> T | None:
        """Return the part that ``name`` refers to, or report a finding and return None if there is no such document.

        ``instead`` is help for those who write the name for what it means elsewhere, ``other`` what else to do than to
        add the document. An ``optional`` field may be left out; that nothing refers to a document says nothing then.
        """
        found = known.get(name)
        self._referred.add((kind, name))
        if found is None and name not in self.names.get(kind, ()) and (unknown := self._find_unknown(kind, name, at)):
            if not instead and unknown.help.endswith(_addition(kind, name)):
                if not optional:
                    self._unknown[len(self.diagnostics)] = kind, name, other
                leave = f"leave `{optional}` out, or " if optional else ""
                unknown = replace(unknown, help=f"{leave}{unknown.help}{other}")
            self.report(UNKNOWN_REFERENCE, replace(unknown, help=instead or unknown.help))
        return found

    def all_findings(self) -> tuple[Diagnostic, ...]:
        """Return the findings, with the one document to which nothing refers where it was likely renamed."""
        for index, (kind, name, other) in self._unknown.items():
            unused = [other for other in self.names.get(kind, ()) if (kind, other) not in self._referred]
            if len(unused) == 1:
                finding = self.diagnostics[index].finding
                help_ = (
                    f"name `{unused[0]}`, to which nothing refers, if it was renamed; or {_addition(kind, name)}{other}"
                )
                self.diagnostics[index] = UNKNOWN_REFERENCE.report(replace(finding, help=help_))
        return tuple(self.diagnostics)

    def _find_unknown(self, kind: str, name: str, at: Origin) -> Finding | None:
        if (kind, name) in self.removed:
            return _removed(kind, name, at, self.removed[kind, name])
        if self.is_partial:
            return None
        names = tuple(self.names.get(kind, ()))
        if name and not any(map(str.isalnum, name)):  # `...` of a help, as it was
            one_of = listing(names, 8, "or") if names else f"the name of a {kind}"
            return Finding(at, f"`{name}` is the name of no {kind}", label="stands for a name", help=f"write {one_of}")
        close = self._guess(name, names)
        if close and name in (close.lower(), close.lower().replace("_", "-")):
            return None  # GPU120 tells how to spell the document's name
        longer = longer_names(name, names)
        listed = longer[:8] or (names if len(names) <= _FEW else ())
        known = f"name {listing(listed, None, 'or')}, or " if listed else ""
        return Finding(
            at,
            unknown_document(kind, name),
            label=f"did you mean `{close}`" if close else "no such document on this cluster",
            notes=(f"this cluster has {listing(names, 8) if names else f'no {kind}'}",),
            help=f"write `{close}`" if close else help_on_variables(name) or known + _addition(kind, name),
        )

    def _guess(self, name: str, names: Sequence[str]) -> str | None:
        """Return the name that was probably meant.

        After too many comparisons it gives up, since spelling is not the cause.
        """
        self._compared += len(names)
        if self._compared > _MOST_COMPARISONS:
            return None
        return misspelling(name, names) or lengthened(name, names)

    def find_gpu(self, name: str, at: Origin) -> Gpu | None:
        """Return the model of the catalog or of a `Gpu` document, or report a finding and return None."""
        gpu = self.catalog.find(name)
        if gpu is not None or name in self.names.get("Gpu", ()):
            return gpu
        if ("Gpu", name) in self.removed:
            self.report(UNKNOWN_GPU, _removed("Gpu", name, at, self.removed["Gpu", name]))
        elif not self.is_partial:
            near = self._guess(name.lower(), tuple(self.names.get("Gpu", ())))
            self.report(UNKNOWN_GPU, unknown_gpu(name, at, self.catalog.suggest(name) or ((near,) if near else ())))
        return None


_FEW: Final = 4
"""The names that a help may list."""


def _addition(kind: str, name: str) -> str:
    return f"add a {kind} named `{name}`"


def _removed(kind: str, name: str, at: Origin, removal: Origin) -> Finding:
    return Finding(
        at,
        f"{kind} `{name}` does not exist on this cluster: its overlay removes it",
        label="refers to what is removed",
        related=(Label(removal, "removed here"),),
        help=f"change this in the overlay as well, or keep {kind} `{name}`",
    )
