"""The player of kubelets goes on when a server has too much to do."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.api import Api, Refused
from tests.cluster.kubelet import Kubelet
from tests.cluster.processes import until


@pytest.mark.parametrize(
    "trouble",
    [
        Refused(429, "TooManyRequests", "the server has received too many requests"),
        Refused(504, "Timeout", "the server was unable to return a response in time"),
        http.client.IncompleteRead(b""),
        ConnectionResetError(),
    ],
    ids=lambda trouble: type(trouble).__name__,
)
def test_it_looks_again_after_trouble(trouble: Exception) -> None:
    asked: list[str] = []

    def get(path: str) -> dict[str, Any]:
        asked.append(path)
        if len(asked) == 1:
            raise trouble
        return {"metadata": {"resourceVersion": "1"}, "items": []}

    with Kubelet(_Server(get)):
        until(lambda: len(asked) > 1, "it has looked again")


class _Server(Api):
    """One that answers as it is told, and has no events."""

    def __init__(self, get: Callable[[str], dict[str, Any]]) -> None:
        super().__init__(0, "", ssl.create_default_context())
        object.__setattr__(self, "_get", get)

    def get(self, path: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._get(path)  # type: ignore[attr-defined]
        return answer

    def watch(self, path: str, resource_version: str, *, seconds: int) -> Iterator[dict[str, Any]]:
        return iter(())
