"""What changes of MIG layouts do that no pool uses; of those in use, the pool's change says it.

That no pool uses a layout is said of policies. Nodes name the entry that they had until their label moves, which is as
late as somebody approves it, and the MIG manager fails on a node whose label names no entry of its file.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.gpu_operator import mig_parted
from gpuplan.changes.meaning import means_same
from gpuplan.changes.model import Change, ChangeClass, change_of
from gpuplan.changes.pairing import successors
from gpuplan.changes.wording import NOTHING_RUNS, REVERT, division, from_to
from gpuplan.planning.plan import MIG_CONFIG_LABEL, Layout, Mig, Plan
from gpuplan.planning.subjects import about


def layout_changes(before: Plan, after: Plan) -> Iterator[Change]:
    """mig-manager reads its file when it starts, so an entry more or less makes it start again."""
    for old, new in successors(before.layouts, after.layouts, _is_alike):
        if old is None:
            if new is not None:
                yield _change(before, after, after, new, "layout is added")
        elif not _is_used(before, old):
            if new is None:
                yield _change(before, after, before, old, "unused layout is removed", old)
            elif old.name != new.name:
                yield _change(before, after, after, new, f"layout `{old.name}` is called `{new.name}`", old)
            elif not _is_alike(old, new):
                what = f"unused layout is edited: {from_to(division(old), division(new))}"
                yield _change(before, after, after, new, what, old)


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
    effect = (
        _vanished(was) if was is not None and vanishes else f"mig-manager restarts with another file; {NOTHING_RUNS}"
    )
    change_class = ChangeClass.TWO_STEP if vanishes else ChangeClass.PLUGIN_RESTART
    return change_of(plan, layout, change_class, what, effect, REVERT)._replace(also=about(was) if was else ())


def _vanished(was: Layout) -> str:
    return (
        f"`{was.config_name}` vanishes, and a node that still names it fails as its mig-manager restarts: `kubectl get "
        f"nodes -l {MIG_CONFIG_LABEL}={was.config_name}` must list none"
    )
