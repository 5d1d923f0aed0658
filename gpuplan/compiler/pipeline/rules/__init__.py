"""Rules on repositories (GPU110-114), on clusters together (GPU659, GPU677), and on what is rendered (GPU690)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import RetiredRule, Rule, rules_among

_HERE: Final = Path(__file__).parent

CLUSTER_DOCUMENT = Rule("GPU110", _HERE)
MISSING_BASE = Rule("GPU111", _HERE)
UNUSED_IGNORE = Rule("GPU112", _HERE)
UNKNOWN_KUBERNETES = Rule("GPU113", _HERE)
UNMATCHED_OVERLAY = Rule("GPU114", _HERE)
SHARED_NAMES = Rule("GPU659", _HERE)
SEVERAL_ARGO_CDS = Rule("GPU677", _HERE)
INVALID_OBJECT = Rule("GPU690", _HERE)

RULES: Final = rules_among(globals())

RETIRED: Final = (
    RetiredRule(
        "GPU510",
        "queues-not-written",
        after="0.1.0",
        reason="gpuplan writes the settings of Kueue, KAI-Scheduler and Run:ai. `GPU560` says that nothing sends "
        "Run:ai's by itself.",
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
"""Rules that are gone, by code: their codes and names are never used again. A code that is neither here nor in
`gpuplan rules` is free."""
