"""Plays the kubelets of fake nodes: pods that are bound to one run at once, and are gone once deleted.

Stubborn ones run until the end of their grace period, as a container does that ignores SIGTERM.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from http.client import HTTPException
from types import TracebackType
from typing import Any, Final, Self

from tests.cluster.api import Api, Refused

STUBBORN: Final = "tests.gpuplan.dev/stubborn"
"""The annotation of pods that use all of their grace period."""

_LATER = frozenset({410, 429, 500, 503, 504})
"""What a server answers that has forgotten a version, or that has too much to do."""


ENDLESS: Final = ":endless"
"""The tag of images that do not end by themselves."""


class Kubelet:
    """A thread that answers for all nodes, until it is stopped; pods of Jobs end well at once if it ``ends_jobs``."""

    def __init__(self, api: Api, *, ends_jobs: bool = False) -> None:
        self._api = api
        self._ends_jobs = ends_jobs
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._is_stopped.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            try:
                pods = self._api.get("/api/v1/pods")
                for pod in pods["items"]:
                    self._attend(pod)
                for event in self._api.watch("/api/v1/pods", pods["metadata"]["resourceVersion"], seconds=1):
                    if event["type"] in {"ADDED", "MODIFIED"}:
                        self._attend(event["object"])
            except (OSError, ValueError, HTTPException):  # the watch broke off: list and watch anew
                self._is_stopped.wait(0.1)
            except Refused as refused:
                if refused.code not in _LATER:
                    raise
                self._is_stopped.wait(0.1)

    def _attend(self, pod: Mapping[str, Any]) -> None:
        if not pod["spec"].get("nodeName"):
            return
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        try:
            if "deletionTimestamp" in pod["metadata"]:
                if _has_ended(pod["metadata"]):
                    self._end(path, pod)
            elif pod["status"].get("phase") == "Pending":
                owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", ())}
                ends = self._ends_jobs and "Job" in owners and not _is_endless(pod)
                status = ended(pod) if ends else running(pod)
                self._api.patch(f"{path}/status", {"status": status}, kind="strategic")
        except Refused as refused:
            if refused.code not in {404, 409}:  # someone else was faster
                raise

    def _end(self, path: str, pod: Mapping[str, Any]) -> None:
        """Its containers have ended before it goes, which it may not do while others have finalizers on it."""
        if pod["metadata"].get("finalizers") and pod["status"].get("phase") == "Running":
            self._api.patch(f"{path}/status", {"status": {"phase": "Failed"}}, kind="strategic")
        self._api.delete(path, grace_seconds=0)


def _has_ended(metadata: Mapping[str, Any]) -> bool:
    """What runs on is asked again at the next look at all pods, a second later."""
    deadline = datetime.fromisoformat(metadata["deletionTimestamp"])
    return STUBBORN not in metadata.get("annotations", {}) or datetime.now(UTC) >= deadline


def _is_endless(pod: Mapping[str, Any]) -> bool:
    return any(container.get("image", "").endswith(ENDLESS) for container in pod["spec"]["containers"])


def running(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The status of a pod all of whose containers run."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": now}
            for kind in ("Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "started": True,
                "resources": container.get("resources", {}),
                "state": {"running": {"startedAt": now}},
            }
            for container in pod["spec"]["containers"]
        ],
    }


def ended(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The status of a pod whose containers have ended well."""
    found = running(pod)
    for container in found["containerStatuses"]:
        since = container["state"].pop("running")["startedAt"]
        container["state"]["terminated"] = {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": since,
            "finishedAt": since,
        }
        container |= {"ready": False, "started": False}
    for condition in found["conditions"]:
        if condition["type"] != "Initialized":
            condition |= {"status": "False", "reason": "PodCompleted"}
    return {**found, "phase": "Succeeded"}
