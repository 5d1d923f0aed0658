"""A request to Run:ai, and the file that holds its body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from gpuplan.manifests import File, Subject
from gpuplan.planning.plan import Stage

FOLDER = f"{Stage.SCHEDULING.value}/runai"


class Request(NamedTuple):
    """``missing`` are the ids that only Run:ai knows, which whoever sends it must add to the body."""

    kind: str
    name: str
    method: str
    path: str
    body: Mapping[str, Any]
    missing: tuple[str, ...]
    about: tuple[Subject, ...]

    @property
    def file(self) -> str:
        """The file with the body, relative to `FOLDER`."""
        return f"{self.kind}/{self.name}.json"


def body_file(request: Request) -> File:
    return File(f"{FOLDER}/{request.file}", (json.dumps(request.body, indent=2) + "\n").encode(), about=request.about)
