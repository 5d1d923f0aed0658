"""What changes of MIG layouts do that no pool uses; of those in use, the pool's change says it.

That no pool uses a layout is said of policies. Nodes name the entry that they had until their label moves, which is as
late as somebody approves it, and the MIG manager fails on a node whose label names no entry of its file.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.gpu_operator import mig_parted
from gpuplan.changes.meaning import means_same
from gpuplan.changes.model import Change, ChangeClass
from gpuplan.changes.wording import NOTHING_RUNS, REVERT, division, from_to
from gpuplan.manifests import Subject
from gpuplan.planning.plan import MIG_CONFIG_LABEL, Layout, Mig, Plan


def layout_changes(before: Plan, after: Plan) -> Iterator[Change]:
    """mig-manager reads its file when it starts, so an entry more or less makes it start anew."""
    old, new = ({layout.name: layout for layout in plan.layouts} for plan in (before, after))
    gone = [layout for name, layout in old.items() if name not in new]
    come = [layout for name, layout in new.items() if name not in old]
    for layout in gone:
        successor = next((other for other in come if _is_alike(layout, other)), None)
        if successor is not None:
            come.remove(successor)
            if not _is_used(before, layout):
                what = f"layout `{layout.name}` is called `{successor.name}`"
                yield _change(before, after, after, successor, what, layout)
        elif not _is_used(before, layout):
            yield _change(before, after, before, layout, "unused layout is removed", layout)
    for layout in come:
        yield _change(before, after, after, layout, "layout is added")
    for name in old:
        if name in new and not _is_alike(old[name], new[name]) and not _is_used(before, old[name]):
            what = f"unused layout is edited: {from_to(division(old[name]), division(new[name]))}"
            yield _change(before, after, after, new[name], what, old[name])


def _is_alike(one: Layout, other: Layout) -> bool:
    return one.gpu.id == other.gpu.id and means_same(one.entries, other.entries)


def _is_used(plan: Plan, layout: Layout) -> bool:
    return any(
        isinstance(part.sharing, Mig) and part.sharing.layout.config_name == layout.config_name for part in plan.parts
    )


def _change(before: Plan, after: Plan, plan: Plan, layout: Layout, what: str, was: Layout | None = None) -> Change:
    """``was`` is the layout whose entry may go."""
    vanishes = (
        was is not None
        and before.may_be_divided_by(was)
        and was.config_name not in mig_parted.configuration(after)["mig-configs"]
    )
    return Change(
        plan.cluster.name,
        ChangeClass.TWO_STEP if vanishes else ChangeClass.PLUGIN_RESTART,
        Subject("MigLayout", layout.name),
        what,
        _vanished(was) if was is not None and vanishes else f"mig-manager restarts with another file; {NOTHING_RUNS}",
        REVERT,
        layout.at,
        also=(Subject("MigLayout", was.name),) if was is not None else (),
    )


def _vanished(was: Layout) -> str:
    return (
        f"`{was.config_name}` vanishes, and a node that still names it fails as its mig-manager restarts: `kubectl get "
        f"nodes -l {MIG_CONFIG_LABEL}={was.config_name}` must list none"
    )
