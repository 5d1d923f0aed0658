"""Give tenants names that they may have, each one of its own."""

from __future__ import annotations

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.policy.names import TENANT

_OTHERS = regex(r"[^a-z0-9]+")


class Names:
    """The names that were given."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def give(self, wish: str) -> str:
        """The wish, if it can be a tenant's name and is no other's; else one that is like it."""
        name = wish if TENANT.is_spelt(wish) else _OTHERS.sub("-", wish.lower()).strip("-") or "team"
        name = name[: TENANT.longest].rstrip("-")
        found, number = name, 2
        while found in self._given:
            end = f"-{number}"
            found, number = f"{name[: TENANT.longest - len(end)].rstrip('-')}{end}", number + 1
        self._given.add(found)
        return found
