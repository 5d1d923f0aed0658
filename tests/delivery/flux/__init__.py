"""Tests of `gpuplan.delivery.flux`."""
