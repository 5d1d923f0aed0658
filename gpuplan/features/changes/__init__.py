"""The changes between two platforms, in classes of fixed meaning, and the way to make such a step safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.compiler.base.faces import face

if TYPE_CHECKING:
    from gpuplan.features.changes.comparing import (
        Diff as Diff,
        Platform as Platform,
        Side as Side,
        SideKind as SideKind,
        compare as compare,
        compare_platforms as compare_platforms,
    )
    from gpuplan.features.changes.costs import CostChange as CostChange
    from gpuplan.features.changes.kinds import class_of_labels as class_of_labels, locked_fields as locked_fields
    from gpuplan.features.changes.objects import compare_objects as compare_objects
    from gpuplan.features.changes.revisions import Head as Head
    from gpuplan.features.changes.views.data.classes import CLASS_MEANINGS as CLASS_MEANINGS
    from gpuplan.features.changes.views.diff import (
        cost_change_as_data as cost_change_as_data,
        costs_of as costs_of,
        diff_as_data as diff_as_data,
        verdict as verdict,
    )

__getattr__ = face(
    __name__,
    {
        "comparing": ("Diff", "Platform", "Side", "SideKind", "compare", "compare_platforms"),
        "costs": ("CostChange",),
        "kinds": ("class_of_labels", "locked_fields"),
        "objects": ("compare_objects",),
        "revisions": ("Head",),
        "views.data.classes": ("CLASS_MEANINGS",),
        "views.diff": ("cost_change_as_data", "costs_of", "diff_as_data", "verdict"),
    },
)
