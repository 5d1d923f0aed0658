"""The meaning of each class of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass

CLASS_MEANINGS: Final[Mapping[ChangeClass, str]] = {
    ChangeClass.NONE: "nothing that is applied differs",
    ChangeClass.METADATA: "what people and programs read differs; nothing obeys it",
    ChangeClass.QUOTA: "what there is to hand out, or what a team may have of it, differs; what runs goes on",
    ChangeClass.PLUGIN_RESTART: "pods of the GPU Operator restart; those that hold GPUs go on, new ones may wait",
    ChangeClass.ADMISSION: "what may be created or scheduled differs; what runs goes on",
    ChangeClass.TAINT: "nodes that took any pod get a taint: pods that do not tolerate it come no more",
    ChangeClass.PREEMPTION_ORDER: "who evicts whom differs: pods may be evicted that would have stayed",
    ChangeClass.REPARTITION: "GPUs are set up again, or their driver is: pods that hold them must end first",
    ChangeClass.RECREATE: "a field that cannot be changed, changes: an object or pods are made once more; or pods end",
    ChangeClass.TWO_STEP: "in one step it fails or sticks: something is removed that is still in use",
    ChangeClass.DESTRUCTIVE: "what runs or is stored loses what it stands on, and reverting does not bring it back",
}
"""For who has not read `docs/how-to/review-a-change.md`, which says more."""
