"""The grammar of MIG profile names: ``1g.10gb``, ``1g.10gb+me``, ``1c.3g.40gb``."""

from __future__ import annotations

import re
from functools import lru_cache

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value

_ATTRIBUTE = r"[A-Za-z](?:[A-Za-z0-9.]*[A-Za-z0-9])?"
_PATTERN = regex(
    rf"(?:(?P<c>[0-9]+)c\.)?(?P<g>[0-9]+)g\.(?P<gb>[0-9]+)gb"
    rf"(?:\+(?P<plus>{_ATTRIBUTE}(?:,{_ATTRIBUTE})*)|-(?P<minus>{_ATTRIBUTE}(?:,{_ATTRIBUTE})*))?"
)

GRAMMAR = "^" + re.sub(r"\?P<[a-z]+>", "", _PATTERN.pattern) + "$"
"""The same for a JSON Schema, whose regular expressions are those of JavaScript."""


class ProfileName(Value):
    """A profile's name in parts.

    ``gigabytes`` is the number in the name, a rounded share of the board and not the usable memory.
    ``compute_instance_slices`` is the ``<c>c.`` part, None when the name has none.
    ``attributes`` follow a ``+`` (``me``, ``gfx``), ``exclusions`` a ``-``; a name has one or the other.
    """

    compute_slices: int
    gigabytes: int
    attributes: tuple[str, ...] = ()
    exclusions: tuple[str, ...] = ()
    compute_instance_slices: int | None = None

    @property
    def is_compute_instance(self) -> bool:
        """The name is of a compute instance inside a GPU instance, which nothing in Kubernetes can hand out."""
        return self.compute_instance_slices not in (None, self.compute_slices)

    @property
    def is_long_spelling(self) -> bool:
        """``7c.7g.80gb``: accepted when written, reported back as ``7g.80gb``."""
        return self.compute_instance_slices == self.compute_slices

    @property
    def kind(self) -> tuple[object, ...]:
        """Return the part that it shares with the profiles of other sizes that are of its kind."""
        return self.compute_slices, self.attributes, self.exclusions

    @property
    def is_plain(self) -> bool:
        return not self.attributes and not self.exclusions

    @property
    def gpu_instance(self) -> str:
        """The name of the GPU instance, without a ``<c>c.`` part."""
        base = f"{self.compute_slices}g.{self.gigabytes}gb"
        if self.attributes:
            return f"{base}+{','.join(self.attributes)}"
        return f"{base}-{','.join(self.exclusions)}" if self.exclusions else base

    def __str__(self) -> str:
        prefix = "" if self.compute_instance_slices is None else f"{self.compute_instance_slices}c."
        return f"{prefix}{self.gpu_instance}"


@lru_cache(maxsize=1024)
def parse_profile(name: str) -> ProfileName | None:
    """Read a profile's name; None when it is not one.

    The grammar is that of go-nvlib, which mig-parted uses:
    https://github.com/NVIDIA/go-nvlib/blob/main/pkg/nvlib/device/mig_profile.go
    """
    match = _PATTERN.fullmatch(name)
    if match is None:
        return None
    return ProfileName(
        compute_slices=int(match["g"]),
        gigabytes=int(match["gb"]),
        attributes=_split(match["plus"]),
        exclusions=_split(match["minus"]),
        compute_instance_slices=int(match["c"]) if match["c"] else None,
    )


def resource_suffix(name: str) -> str:
    """A profile's name as resources and labels spell it: ``1g.10gb+me`` is ``nvidia.com/mig-1g.10gb.me``."""
    return name.replace("+", ".")


def _split(attributes: str | None) -> tuple[str, ...]:
    return tuple(attributes.split(",")) if attributes else ()
