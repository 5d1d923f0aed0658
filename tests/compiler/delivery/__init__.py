"""Tests of `gpuplan.compiler.delivery`."""
