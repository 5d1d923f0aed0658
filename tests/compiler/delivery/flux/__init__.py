"""Tests of `gpuplan.compiler.delivery.flux`."""
