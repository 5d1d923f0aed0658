"""What is said of a GPU model that neither the catalog nor a document has: how it is described, never another board."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.wording import listing

_JETSON: Final = regex(r"\b(jetson|orin|xavier|tegra|nano|tx[12]|agx)\b")
"""Words in names of modules with a GPU on the chip, on which the GPU Operator does not run."""


def unknown_gpu(name: str, at: Origin, near: Sequence[str]) -> Finding:
    """The finding; ``near`` are names of the same board, by another spelling."""
    message = f"unknown GPU model `{name}`"
    if near:
        meant = listing(near, None, "or")
        return Finding(at, message, label=f"did you mean {meant}", help=f"write {meant}")
    if _JETSON.search(name.lower().replace("-", " ").replace("_", " ")):
        return Finding(
            at,
            message,
            label="the GPU Operator does not run on Jetson",
            notes=("the GPU Operator runs on nodes with boards, and not where the GPU is on the chip",),
            help="remove it: these nodes are not the GPU Operator's",
        )
    return Finding(
        at,
        message,
        label="not in the catalog",
        notes=(
            "`gpuplan catalog` lists the models; a `Gpu` document describes another one",
            "a node that has it says `nvidia.com/gpu.memory`, `.compute.major`, `.compute.minor`, `.product` by labels",
            "`lspci -nn -d 10de:` prints its PCI id there",
        ),
        help=_instead(name),
    )


def _instead(name: str) -> str:
    """The document to write, and the name by which it is then called."""
    own = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "my-gpu"
    facts = 'memoryMiB: ..., computeCapability: "...", products: [...], pci: ["10de:..."]'
    document = f"{{apiVersion: gpuplan.dev/v1, kind: Gpu, metadata: {{name: {own}}}, spec: {{{facts}}}}}"
    called = "" if own == name else f", and say `gpu: {own}` here"
    return f"add `{document}` with its facts{called}"
