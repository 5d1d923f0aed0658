"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# A property is not false for being slow on a busy machine. More examples: GPUPLAN_TEST_EXAMPLES=1000.
EXAMPLES = int(os.environ.get("GPUPLAN_TEST_EXAMPLES", "40"))
settings.register_profile("gpuplan", deadline=None, print_blob=True, max_examples=EXAMPLES)
settings.load_profile("gpuplan")
