"""Rules that are gone: their codes and names are never used again."""

from __future__ import annotations

from typing import Final

from gpuplan.compiler.base.diagnostics import RetiredRule

RETIRED: Final = (
    RetiredRule(
        "GPU510",
        "queues-not-written",
        after="0.1.0",
        reason="What Kueue, KAI-Scheduler and Run:ai must be told is written for each of them. `GPU560` says that "
        "nothing sends it to Run:ai by itself.",
    ),
    RetiredRule(
        "GPU517",
        "borrowing-needs-parent",
        after="0.1.0",
        reason="On Kueue all tenants are below one root cohort, so that those without a parent borrow and lend, too.",
    ),
    RetiredRule(
        "GPU591",
        "protection-of-the-parent",
        after="0.1.0",
        reason="KAI-Scheduler is told to use the time of the tenant's own queue, whichever tenants compete.",
    ),
    RetiredRule(
        "GPU647",
        "component-adds-objects-to-all",
        after="0.1.0",
        reason="`GPU682` finds the object that kustomize puts into several folders.",
    ),
)
"""By code. A code that is neither here nor in `gpuplan rules` is free."""
