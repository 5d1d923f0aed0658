"""What the step from one platform to another disturbs, as JSON: a stable contract, `diff.schema.json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from gpuplan.changes.model import CapacityChange, Change, GrantChange, NodeImpact, ObjectChange
from gpuplan.changes.pods import Holder
from gpuplan.delivery.appliers import Applier
from gpuplan.diagnostics import Diagnostic
from gpuplan.pipeline.comparing import Diff, Impact, Platform
from gpuplan.pipeline.output import Staleness
from gpuplan.planning.plan import Amount
from gpuplan.policy.models import Window
from gpuplan.views.diff_words import seen_from
from gpuplan.views.json_findings import diagnostic_as_data, json_text
from gpuplan.views.theme import Theme

FORMAT_VERSION: Final = "1.1"
"""A minor step only adds keys; lists are never null or absent."""


def diff_json(diff: Diff, theme: Theme) -> str:
    return json_text(diff_as_data(diff, theme))


def diff_as_data(diff: Diff, theme: Theme) -> dict[str, Any]:
    """Everything that is known, with clusters by name and changes worst first."""
    return {
        "format_version": FORMAT_VERSION,
        "class": diff.worst.value,
        "earlier": _side(diff.earlier, theme),
        "later": _side(diff.later, theme),
        "summary": {
            "changes": len(diff.impacts) + len(diff.objects),
            "nodes": diff.nodes,
            "pods": diff.pods,
            "pods_are_exact": diff.knows_pods,
        },
        "clusters": [_cluster(diff, name, theme) for name in diff.clusters],
        "not_compared": list(diff.skipped),
        "findings": _findings(diff.findings, seen_from(diff.later.side, theme)),
    }


def _side(platform: Platform, theme: Theme) -> dict[str, Any]:
    side = platform.side
    return {
        "kind": side.kind.value,
        "name": side.name,
        "commit": side.revision.commit if side.revision else None,
        "errors": _findings(platform.errors, seen_from(side, theme)),
        "output": _output(platform.staleness),
    }


def _output(found: Staleness | None) -> dict[str, Any] | None:
    """How what was built differs from what the policies make; null where nothing was built, or nothing compared."""
    if found is None:
        return None
    return {"differing": found.differing, "missing": found.missing, "trouble": found.trouble or None}


def _findings(found: Iterable[Diagnostic], theme: Theme) -> list[dict[str, Any]]:
    return [diagnostic_as_data(diagnostic, theme) for diagnostic in found]


def _cluster(diff: Diff, name: str, theme: Theme) -> dict[str, Any]:
    return {
        "name": name,
        "class": diff.worst_of(name).value,
        "nodes": diff.nodes_of(name),
        "pods": diff.pods_of(name),
        "changes": [_impact(impact, diff, theme) for impact in diff.of(name)],
        "objects": [_object(item) for item in diff.objects if item.cluster == name],
    }


def _impact(impact: Impact, diff: Diff, theme: Theme) -> dict[str, Any]:
    change = impact.change
    return {
        "class": change.change_class.value,
        "subject": {"kind": change.subject.kind, "name": change.subject.name},
        "what": change.what,
        "effect": change.effect,
        "undo": change.undo,
        "location": _location(impact, diff, theme),
        "nodes": _nodes(change.nodes),
        "units": [_capacity(item) for item in change.capacity],
        "grants": [_grant(item) for item in change.grants],
        "pods": {
            "at_most": change.pods,
            "found": None if impact.holders is None else [_holder(holder) for holder in impact.holders],
        },
        "needs_drain": change.needs_drain,
        "needs_reboot": change.needs_reboot,
        "windows": _windows(change),
        "folders": list(change.folders),
        "applied_by": [_applier(applier) for applier in impact.appliers],
    }


def _location(impact: Impact, diff: Diff, theme: Theme) -> dict[str, Any]:
    side = "earlier" if impact.is_earlier else "later"
    platform = diff.earlier if impact.is_earlier else diff.later
    location = impact.change.at.locate()
    return {
        "side": side,
        "file": seen_from(platform.side, theme).path(location.file.path),
        "line": location.span.start.line,
        "path": str(impact.change.at),
    }


def _nodes(nodes: NodeImpact | None) -> dict[str, Any] | None:
    return {"count": nodes.count, "names": list(nodes.names), "pattern": nodes.pattern} if nodes else None


def _capacity(change: CapacityChange) -> dict[str, Any]:
    return {"pool": change.pool, "unit": change.unit, "before": change.before, "after": change.after}


def _grant(change: GrantChange) -> dict[str, Any]:
    return {
        "tenant": change.tenant,
        "pool": change.pool,
        "unit": change.unit,
        "guaranteed": {"before": _amount(change.guaranteed_before), "after": _amount(change.guaranteed_after)},
        "limit": {"before": _amount(change.limit_before), "after": _amount(change.limit_after)},
    }


def _amount(amount: Amount | None) -> float | int | None:
    """A number of units; None is no bound."""
    if amount is None:
        return None
    return int(amount) if amount == int(amount) else float(amount)


def _holder(holder: Holder) -> dict[str, Any]:
    return {
        "namespace": holder.namespace,
        "name": holder.name,
        "node": holder.node,
        "tenant": holder.tenant or None,
        "units": dict(holder.units),
    }


def _windows(change: Change) -> list[dict[str, str]]:
    return [_window(window) for window in change.windows]


def _window(window: Window) -> dict[str, str]:
    return {"schedule": window.schedule, "duration": window.duration, "time_zone": window.time_zone}


def _applier(applier: Applier) -> dict[str, Any]:
    return {
        "kind": applier.kind,
        "name": applier.name,
        "folder": applier.folder,
        "approval": applier.approval.value,
        "windows": [_window(window) for window in applier.windows],
        "keeps_windows": applier.keeps_windows,
    }


def _object(item: ObjectChange) -> dict[str, Any]:
    return {
        "class": item.change_class.value,
        "verb": item.verb,
        "folder": item.folder,
        "group": item.identity.group,
        "kind": item.identity.kind,
        "namespace": item.identity.namespace,
        "name": item.identity.name,
    }
