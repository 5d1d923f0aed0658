"""What a check on a step judges: one cluster before and after."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.changes.pods import Pod
from gpuplan.planning.plan import Plan
from gpuplan.values import Value


class Step(Value):
    """Two states of one cluster; ``pods`` are those that hold something in it, None where nobody says which."""

    before: Plan
    after: Plan
    pods: Sequence[Pod] | None = None

    @property
    def cluster_names(self) -> tuple[str, ...]:
        return self.after.cluster_names
