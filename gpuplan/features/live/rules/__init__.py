"""Rules on what others wrote, as `gpuplan import` and `gpuplan drift` read it (GPU806-GPU819)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

CLUSTER_NOT_TOLD = Rule("GPU806", _HERE)
CLUSTER_SETTING_NOT_SAID = Rule("GPU807", _HERE)
LAYOUT_NOT_SAID = Rule("GPU808", _HERE)
SHARING_NOT_SAID = Rule("GPU809", _HERE)
NODES_NOT_SAID = Rule("GPU810", _HERE)
TEAM_SAID_IN_PART = Rule("GPU811", _HERE)
QUOTA_CAPS_NOTHING = Rule("GPU812", _HERE)
QUEUE_NOT_SAID = Rule("GPU813", _HERE)
QUEUE_WITHOUT_EFFECT = Rule("GPU814", _HERE)
WORK_LEFT_ALONE = Rule("GPU815", _HERE)
ACTS_AGAINST_POLICY = Rule("GPU816", _HERE)
HARMFUL_FIRST_SYNC = Rule("GPU817", _HERE)
NOT_READ = Rule("GPU818", _HERE)
TOLD_TWICE = Rule("GPU819", _HERE)

RULES: Final = rules_among(globals())
