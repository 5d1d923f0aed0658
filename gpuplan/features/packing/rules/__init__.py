"""Rules on what is asked for: the files that say it, and what they leave open (GPU820-826).

Those on what `gpuplan pack` cannot do are GPU827-831 and GPU837.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.compiler.base.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

NO_DEMAND = Rule("GPU820", _HERE)
TABLE_NOT_READ = Rule("GPU821", _HERE)
TEAM_NOT_ON_PLATFORM = Rule("GPU822", _HERE)
DEMAND_UNCLEAR = Rule("GPU823", _HERE)
THROUGHPUT_UNUSABLE = Rule("GPU824", _HERE)
USE_OF_SHARED_GPU = Rule("GPU825", _HERE)
DEMAND_ASSUMED = Rule("GPU826", _HERE)
DEMAND_BEYOND_FLEET = Rule("GPU827", _HERE)
NO_MODEL_HOLDS_POD = Rule("GPU828", _HERE)
ISOLATION_NOT_GIVEN = Rule("GPU829", _HERE)
NODES_WITHOUT_NAMES = Rule("GPU830", _HERE)
WORK_WITHOUT_ROOM = Rule("GPU831", _HERE)
ANSWER_NOT_HELD = Rule("GPU837", _HERE)

RULES: Final = rules_among(globals())
