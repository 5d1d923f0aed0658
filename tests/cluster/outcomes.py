"""What comes of something, once it has come as planned or will not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from tests.cluster.processes import NotReadyError, until

P = ParamSpec("P")
T = TypeVar("T")


def in_the_end(planned: object, observe: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What is observed once it is what is planned, or when a minute is up."""
    with suppress(NotReadyError):
        until(lambda: observe(*args, **kwargs) == planned, "it comes as planned", seconds=60)
    return observe(*args, **kwargs)
