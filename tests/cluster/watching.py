"""What Argo CD does with a commit, Application by Application, as its own objects say."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from tests.cluster.api import Refused
from tests.cluster.argo_cd import explained, state_of
from tests.cluster.lab import Lab
from tests.cluster.processes import until

_QUIET: Final = 7.0
"""So many seconds without news are the end: longer than Argo CD waits between two looks at Git."""


@dataclass(slots=True)
class Seen:
    """What was seen since a commit; names are those of Applications."""

    synced: list[str] = field(default_factory=list)
    """Whose syncs began, in that order."""
    waits: dict[str, str] = field(default_factory=dict)
    """What a sync that began waits for at the end, in Argo CD's words."""
    blind: dict[str, str] = field(default_factory=dict)
    """What is not compared at the end, and why."""
    waiting: list[str] = field(default_factory=list)
    """What differs at the end and is synced by nobody."""
    made: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    """Objects, as `KIND/NAME`."""
    seconds: float = 0.0
    """From the commit to the last news."""


class Watch:
    """Looks at all Applications twice in a second, in a thread of its own."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._seen = Seen()
        self._first = self._last = lab.argocd.applications()
        self._start = self._news = time.monotonic()
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        self._thread.join()

    def settled(self, seconds: float = 150) -> Seen:
        """Wait until nothing moves, and say what did since the last time."""
        until(lambda: time.monotonic() - self._news > _QUIET, "nothing moves", seconds=seconds)
        now, seen = self._last, self._seen
        for name, body in sorted(now.items()):
            status = body.get("status", {})
            operation = status.get("operationState", {})
            errors = [item["message"] for item in status.get("conditions", ()) if item["type"].endswith("Error")]
            if errors:
                seen.blind[name] = errors[0]
            elif operation.get("phase") == "Running":
                seen.waits[name] = operation.get("message", "")
            elif status.get("sync", {}).get("status") != "Synced":
                seen.waiting.append(name)
        seen.made = sorted(now.keys() - self._first.keys())
        seen.gone = sorted(self._first.keys() - now.keys())
        seen.seconds = self._news - self._start
        self._seen, self._first = Seen(), now
        return seen

    def begin(self) -> None:
        """Something is about to be done."""
        self._start = self._news = time.monotonic()

    def _run(self) -> None:
        while not self._is_stopped.wait(0.5):
            try:
                now = self._lab.argocd.applications()
            except (Refused, OSError):
                continue
            began = {name: at for name, body in now.items() if (at := _began(body)) != _began(self._last.get(name, {}))}
            self._seen.synced += sorted(began, key=began.__getitem__)
            for name, body in now.items():
                self._seen.pruned += _pruned(body, self._last.get(name, {}))
            if {name: _news(body) for name, body in now.items()} != {
                name: _news(body) for name, body in self._last.items()
            }:
                self._news = time.monotonic()
            self._last = now


def _began(body: Mapping[str, Any]) -> str:
    found: str = body.get("status", {}).get("operationState", {}).get("startedAt", "")
    return found


def _news(body: Mapping[str, Any]) -> object:
    status = body.get("status", {})
    operation = status.get("operationState", {})
    keys = (_began(body), operation.get("phase"), operation.get("message"))
    return state_of(body), keys, [item["type"] for item in status.get("conditions", ())]


def _pruned(body: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    def found(body: Mapping[str, Any]) -> set[str]:
        result = body.get("status", {}).get("operationState", {}).get("syncResult") or {}
        return {
            f"{item['kind']}/{item['name']}" for item in result.get("resources") or () if item.get("status") == "Pruned"
        }

    if _began(body) == _began(before):
        return sorted(found(body) - found(before))
    return sorted(found(body))


def live(lab: Lab) -> dict[str, Any]:
    """What is meant by each object that an Application has: all but what controllers and the API server write."""
    found: dict[str, Any] = {}
    for name, body in sorted(lab.argocd.applications().items()):
        for item in body.get("status", {}).get("resources", ()):
            if item["kind"] in ("Application", "ApplicationSet", "Job"):  # what people say of them; what runs anew
                continue
            version = f"{item['group']}/{item['version']}" if item.get("group") else item["version"]
            path = lab.api.path_of(
                {
                    "apiVersion": version,
                    "kind": item["kind"],
                    "metadata": {"name": item["name"], "namespace": item.get("namespace")},
                }
            )
            found[f"{name}: {item['kind']} {item.get('namespace', '')}/{item['name']}"] = _meant(lab.api.find(path))
    return found


def _meant(body: Mapping[str, Any] | None) -> Any:
    if body is None:
        return None
    metadata = {key: body["metadata"].get(key) for key in ("labels", "finalizers")}
    notes = body["metadata"].get("annotations", {})
    metadata["annotations"] = {key: text for key, text in notes.items() if key != "deployment.kubernetes.io/revision"}
    rest = {key: value for key, value in body.items() if key not in ("metadata", "status", "operation")}
    return json.loads(json.dumps({"metadata": metadata, **rest}, sort_keys=True))


def why(lab: Lab) -> str:
    """All that is not well, for a message."""
    found = lab.argocd.applications()
    return json.dumps(
        {name: explained(body) for name, body in found.items() if state_of(body) != "Synced Healthy"}, indent=1
    )
