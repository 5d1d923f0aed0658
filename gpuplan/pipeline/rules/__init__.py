"""Rules on repositories (GPU11x), clusters (GPU659, 677, 718-719), what is retained (GPU72x) or rendered (GPU68x).

Those on files without a platform are GPU80x, on what `gpuplan pack` cannot do GPU827-831.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

CLUSTER_DOCUMENT = Rule("GPU110", _HERE)
MISSING_BASE = Rule("GPU111", _HERE)
UNUSED_IGNORE = Rule("GPU112", _HERE)
UNKNOWN_KUBERNETES = Rule("GPU113", _HERE)
UNMATCHED_OVERLAY = Rule("GPU114", _HERE)
SHARED_NAMES = Rule("GPU659", _HERE)
SEVERAL_ARGO_CDS = Rule("GPU677", _HERE)
COMPONENTS_NOT_BUILT = Rule("GPU680", _HERE)
COMPONENT_DOES_NOT_BUILD = Rule("GPU681", _HERE)
COMPONENT_FILE_UNUSABLE = Rule("GPU648", _HERE)
PATCHED_OBJECT_INVALID = Rule("GPU683", _HERE)
INVALID_OBJECT = Rule("GPU690", _HERE)
RETAINED_FOR_NOTHING = Rule("GPU720", _HERE)
RETAINED_CONTRADICTED = Rule("GPU721", _HERE)
POLICY_AMONG_FILES = Rule("GPU800", _HERE)
NOTHING_JUDGED = Rule("GPU801", _HERE)
DEMAND_BEYOND_FLEET = Rule("GPU827", _HERE)
NO_MODEL_HOLDS_POD = Rule("GPU828", _HERE)
ISOLATION_NOT_GIVEN = Rule("GPU829", _HERE)
NODES_WITHOUT_NAMES = Rule("GPU830", _HERE)
WORK_WITHOUT_ROOM = Rule("GPU831", _HERE)
CLUSTER_REMOVED = Rule("GPU718", _HERE)
NOT_JUDGED = Rule("GPU719", _HERE)

RULES: Final = rules_among(globals())
