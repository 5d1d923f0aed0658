"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# A property is not false for being slow on a busy machine.
settings.register_profile("gpuplan", deadline=None, print_blob=True)
settings.load_profile("gpuplan")
