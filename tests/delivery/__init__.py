"""Tests of `gpuplan.delivery`."""
