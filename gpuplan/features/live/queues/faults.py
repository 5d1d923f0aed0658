"""Tell of queues that the rules on hand-written objects refuse, under these rules."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.components import QUEUE_CHECKS
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.queues.told import Told

_GROUPS: Final = frozenset(("kueue.x-k8s.io", "scheduling.run.ai"))


def tell_faults(dump: Dump, plan: Plan, told: Told) -> None:
    """What is written, but admits nothing, is refused or refers to nothing."""
    items = [item for item in dump.objects if item.group in _GROUPS]
    files = HandFiles(objects=tuple(Object(item.at, item.body, item.file, "") for item in items), plan=plan)
    for check in QUEUE_CHECKS:
        for diagnostic in check.run(files):
            at = diagnostic.finding.at
            of = next((item for item in items if _is_in(at.source, at.path, item)), None)
            if of is not None:
                told.add(of, diagnostic)


def _is_in(source: object, path: tuple[str | int, ...], item: Item) -> bool:
    return source is item.at.source and path[: len(item.at.path)] == item.at.path
