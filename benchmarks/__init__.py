"""Benchmarks: how long gpuplan takes, as ratios to a floor and to a peer measured in the same run."""
