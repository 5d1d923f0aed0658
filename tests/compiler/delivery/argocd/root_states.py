"""States of an Application that a root syncs, as Argo CD goes through them, and its health in each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

OLD, NEW, LATER = "a" * 40, "b" * 40, "c" * 40
"""The commit that was synced before, the one that the root syncs now, and one after it."""


class State(NamedTuple):
    name: str
    body: Mapping[str, Any]
    status: str
    message: str


def an_application(
    phase: str | None = None,
    *,
    operation: bool = False,
    at: str = NEW,
    reconciled: str = "2026-11-22T10:05:00Z",
    health: str = "Healthy",
    sync: str = "Synced",
    head: str = NEW,
    message: str = "",
    content: str | None = "12345678",
) -> dict[str, Any]:
    """One of two sources, a chart and a folder, that the root wants at `NEW`; its last sync ended at 10:04."""
    annotations = {"gpuplan.dev/revision": NEW} | ({"gpuplan.dev/content": content} if content else {})
    last: dict[str, Any] = {
        "phase": phase,
        "message": message,
        "operation": {"sync": {"revisions": ["v26.7.0", at]}},
        "syncResult": {"revisions": ["v26.7.0", at]},
    }
    if phase not in ("Running", "Terminating"):
        last["finishedAt"] = "2026-11-22T10:04:00Z"
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "gpu-operator-test", "annotations": annotations},
        **({"operation": {"sync": {"revisions": ["v26.7.0", NEW]}}} if operation else {}),
        "status": {
            "health": {"status": health, "message": "x"},
            "reconciledAt": reconciled,
            "sync": {"status": sync, "revisions": ["v26.7.0", head]},
            **({"operationState": last} if phase else {}),
        },
    }


def a_pool(*, at: str) -> dict[str, Any]:
    """One of a single source."""
    body = an_application("Succeeded")
    body["status"]["operationState"] |= {"operation": {"sync": {"revision": at}}, "syncResult": {"revision": at}}
    body["status"]["sync"] = {"status": "OutOfSync", "revision": NEW}
    return body


_NOT_BEGUN: Final = "Its sync has not begun."
_NOT_SEEN: Final = "Argo CD has not looked at it since its sync."
_OTHER: Final = "Another sync was under way, and the commit of the root is not synced."
_EARLY: Final = "2026-11-22T10:03:59Z"

STATES: Final = (
    State("new", an_application(operation=True), "Progressing", _NOT_BEGUN),
    State("not seen by Argo CD", {**an_application(), "status": {}}, "Progressing", _NOT_BEGUN),
    State("asked again", an_application("Succeeded", operation=True, at=OLD), "Progressing", _NOT_BEGUN),
    State("running", an_application("Running", operation=True, message="waiting"), "Progressing", "waiting"),
    State("blocked by a window", an_application("Running", message="blocked"), "Progressing", "blocked"),
    State("terminating", an_application("Terminating", message="ends"), "Progressing", "ends"),
    State("ended", an_application("Succeeded", reconciled=_EARLY), "Progressing", _NOT_SEEN),
    State("seen at once", an_application("Succeeded", reconciled="2026-11-22T10:04:00Z"), "Healthy", "x"),
    State("rolled out", an_application("Succeeded", health="Progressing"), "Progressing", "x"),
    State("healthy", an_application("Succeeded"), "Healthy", "x"),
    State("broken", an_application("Succeeded", health="Degraded"), "Degraded", "x"),
    State("failed", an_application("Failed", message="no"), "Degraded", "Its sync failed: no"),
    State("in error", an_application("Error", message="no"), "Degraded", "Its sync failed: no"),
    # The chart's leftovers wait for a person to prune them, and are no reason to wait.
    State("healthy with leftovers", an_application("Succeeded", sync="OutOfSync"), "Healthy", "x"),
    State("healthy, and changed since", an_application("Succeeded", sync="OutOfSync", head=LATER), "Healthy", "x"),
    State(
        "changed before it is healthy",
        an_application("Succeeded", health="Progressing", sync="OutOfSync", head=LATER),
        "Degraded",
        "A later commit changes it before it is healthy: x",
    ),
    State(
        "rolled out, and others changed",
        an_application("Succeeded", health="Progressing", head=LATER),
        "Progressing",
        "x",
    ),
    State(
        "rolled out with leftovers",
        an_application("Succeeded", health="Progressing", sync="OutOfSync"),
        "Progressing",
        "x",
    ),
    State(
        "broken, and changed since",
        an_application("Succeeded", health="Degraded", sync="OutOfSync", head=LATER),
        "Degraded",
        "x",
    ),
    State("another sync", an_application("Succeeded", at=OLD, sync="OutOfSync"), "Degraded", _OTHER),
    State("a person's sync", an_application("Succeeded", at=LATER, head=LATER), "Healthy", "x"),
    State("a pool", a_pool(at=NEW), "Healthy", "x"),
    State("another sync of a pool", a_pool(at=OLD), "Degraded", _OTHER),
    State("not in order", an_application("Failed", operation=True, content=None), "Healthy", "x"),
)
