"""Rules on what is asked for: the files that say it, and what they leave open (GPU820-GPU826)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpuplan.diagnostics import Rule, rules_among

_HERE: Final = Path(__file__).parent

NO_DEMAND = Rule("GPU820", _HERE)
TABLE_NOT_READ = Rule("GPU821", _HERE)
TEAM_NOT_ON_PLATFORM = Rule("GPU822", _HERE)
DEMAND_UNCLEAR = Rule("GPU823", _HERE)
THROUGHPUT_UNUSABLE = Rule("GPU824", _HERE)
USE_OF_SHARED_GPU = Rule("GPU825", _HERE)
DEMAND_ASSUMED = Rule("GPU826", _HERE)

RULES: Final = rules_among(globals())
