"""What takes longer than `make test-cluster` may."""

from __future__ import annotations

import os
from typing import Final

import pytest

IS_ASKED_FOR: Final = bool(os.environ.get("GPUPLAN_TEST_PROOF"))

only_in_proof = pytest.mark.skipif(not IS_ASKED_FOR, reason="`make proof` runs what takes long")
