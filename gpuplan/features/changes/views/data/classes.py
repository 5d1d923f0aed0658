"""The meaning of each class of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpuplan.compiler.base.disturbance import ChangeClass

CLASS_MEANINGS: Final[Mapping[ChangeClass, str]] = {
    ChangeClass.NONE: "nothing that is applied differs",
    ChangeClass.METADATA: "only texts for people and programs differ; no behaviour changes",
    ChangeClass.QUOTA: "the units to hand out or the quotas of teams differ; running pods stay",
    ChangeClass.PLUGIN_RESTART: "pods of the GPU Operator restart; pods that hold GPUs keep running, new pods may wait",
    ChangeClass.ADMISSION: "the objects that may be created or scheduled differ; running pods stay",
    ChangeClass.TAINT: "nodes that took any pod get a taint: new pods that do not tolerate it are not scheduled there",
    ChangeClass.PREEMPTION_ORDER: "the order of evictions differs: pods may be evicted that would have stayed",
    ChangeClass.REPARTITION: "GPUs are set up again, or their driver is: pods that hold them must end first",
    ChangeClass.RECREATE: (
        "a field changes that cannot be changed in place: an object or pods must be deleted and created again; "
        "or pods end"
    ),
    ChangeClass.TWO_STEP: "in one step the change fails or hangs: it removes something that is still in use",
    ChangeClass.DESTRUCTIVE: (
        "running pods or stored data lose an object that they depend on, and a revert does not restore it"
    ),
}
"""Short meanings; `docs/how-to/review-a-change.md` has the long meanings."""
