"""What objects are about that no test asks about."""

from __future__ import annotations

from gpuplan.compiler.manifests import Subject

A_CLUSTER = (Subject("Cluster", "dev"),)
