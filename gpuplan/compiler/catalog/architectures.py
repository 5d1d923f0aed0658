"""The architecture of a board by its compute capability, and whether it is a part of a system on a chip."""

from __future__ import annotations

from typing import Final

_ARCHITECTURES: Final = {
    (3, 0): "Kepler",
    (5, 0): "Maxwell",
    (6, 0): "Pascal",
    (7, 0): "Volta",
    (7, 5): "Turing",
    (8, 0): "Ampere",
    (8, 9): "Ada Lovelace",
    (9, 0): "Hopper",
    (10, 0): "Blackwell",
    (13, 0): "Rubin",
}
"""Architectures by the first compute capability of each: `getArchFamily` in `internal/lm/resource.go` of
NVIDIA/k8s-device-plugin.
"""

JETSON: Final = frozenset(((5, 3), (6, 2), (7, 2), (8, 7), (11, 0)))
"""Compute capabilities of Jetson modules: Nano and TX1, TX2, Xavier, Orin, Thor (https://developer.nvidia.com/cuda-gpus).

The GPU Operator "only supports platforms using discrete GPUs", and names Jetson among what it does not support
(https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/platform-support.html).
"""


def architecture_of(capability: tuple[int, int]) -> str:
    """The architecture's name; `unknown` before all that is known."""
    return next((name for first, name in reversed(_ARCHITECTURES.items()) if first <= capability), "unknown")
