"""KAI-Scheduler beside a control plane: its webhooks, pod grouper, binder, and a scheduler for each shard."""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.api import Api, Object, Refused
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import Process, serve, until
from tests.cluster.programs import program, source
from tests.cluster.webhooks import WEBHOOK_CONFIGURATIONS, Certificate, on_loopback

_MODULE = "github.com/NVIDIA/KAI-scheduler"
_MANAGER = "kai"
_RESERVATIONS = "kai-resource-reservation"
_PODS = f"/api/v1/namespaces/{_RESERVATIONS}/pods"
_INDEX = "run.ai/reserve_for_gpu_index"
"""Where a reservation pod says which GPU it has got (`pkg/binder/binding/resourcereservation` of KAI-Scheduler)."""
_QUIET = ("--metrics-bind-address=0", "--health-probe-bind-address=0")


@contextmanager
def kai_controllers(control_plane: ControlPlane) -> Iterator[None]:
    """All but the schedulers, which need shards.

    What it installs are its definitions, but for that of SchedulingShards, which lacks fields that ours have, and the
    webhooks, but for their address.
    """
    _install(control_plane.api)
    folder = control_plane.folder / "kai"
    certificate = Certificate.issue()
    certificates = certificate.write(folder)

    def webhooks(port: int) -> Sequence[str | Path]:
        for body in _objects(control_plane):
            if body["kind"] in WEBHOOK_CONFIGURATIONS:
                control_plane.api.apply(on_loopback(body, port, certificate), manager=_MANAGER, force=True)
        return _command(control_plane, "webhooks", f"--port={port}", f"--cert-dir={certificates}")

    with ExitStack() as running:
        served, _ = serve(webhooks, certificate.is_served, folder / "webhooks.log")
        running.callback(served.stop)
        for name in ("podgrouper", "binder"):
            running.callback(Process(_command(control_plane, name, *_QUIET), folder / f"{name}.log").stop)
        running.enter_context(_reservations(control_plane.api))
        yield


@contextmanager
def kai_schedulers(control_plane: ControlPlane) -> Iterator[None]:
    """A scheduler for each SchedulingShard, with the flags and the configuration that its operator would give it."""
    objects = {(body["kind"], body["metadata"]["name"]): body for body in _objects(control_plane)}
    with ExitStack() as running:
        for kind, name in sorted(objects):
            if kind == "ConfigMap":
                scheduler = _start_scheduler(control_plane, objects[kind, name], objects["Deployment", name])
                running.callback(scheduler.stop)
        yield


def _start_scheduler(control_plane: ControlPlane, configuration: Object, deployment: Object) -> Process:
    """The later of two equal flags counts; no server of it has a port that is known."""
    path = control_plane.folder / "kai" / f"{configuration['metadata']['name']}.yaml"
    path.write_text(configuration["data"]["config.yaml"], encoding="utf-8")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    own = (f"--scheduler-conf={path}", "--listen-address=127.0.0.1:0", "--plugin-server-port=-1")
    return Process(_command(control_plane, "scheduler", *container["args"], *own), path.with_suffix(".log"))


def reserved_gpus(api: Api) -> int:
    """How many GPUs are shared: a reservation pod holds each."""
    return len(api.list(_PODS))


def _install(api: Api) -> None:
    for path in sorted((source("kai", _MODULE) / "deployments" / "kai-scheduler" / "crds").glob("*.yaml")):
        definition = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        if definition["spec"]["names"]["kind"] != "SchedulingShard":
            api.apply(definition, manager=_MANAGER)
    until(lambda: api.find_kind("scheduling.run.ai/v2", "Queue"), "queues are served")
    for name in (_RESERVATIONS, "kai-scale-adjust"):
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, manager=_MANAGER)
    account = {"name": _RESERVATIONS, "namespace": _RESERVATIONS}
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, manager=_MANAGER)


def _command(control_plane: ControlPlane, name: str, *flags: str) -> list[str | Path]:
    return [program("kai", "kai"), name, control_plane.kubeconfig, *flags]


def _objects(control_plane: ControlPlane) -> list[dict[str, Any]]:
    """What its operator would install."""
    command = [str(part) for part in _command(control_plane, "objects")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    objects: list[dict[str, Any]] = json.loads(ended.stdout)
    return objects


@contextmanager
def _reservations(api: Api) -> Iterator[None]:
    """Play the reservation pods, which hold a GPU for the fractions on it: each says that it has got the next free."""
    is_stopped = threading.Event()
    thread = threading.Thread(target=_reserve, args=(api, is_stopped), name="reservations", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_stopped.set()
        thread.join()


def _reserve(api: Api, is_stopped: threading.Event) -> None:
    while not is_stopped.wait(0.1):
        with suppress(OSError):  # the server was too slow: look again
            _answer(api, api.list(_PODS))


def _answer(api: Api, pods: Sequence[dict[str, Any]]) -> None:
    taken = {(pod["spec"]["nodeName"], _index(pod)) for pod in pods}
    for pod in pods:
        if _index(pod) is None:
            node = pod["spec"]["nodeName"]
            free = next(index for index in itertools.count() if (node, index) not in taken)
            taken.add((node, free))
            with suppress(Refused):  # it has gone meanwhile
                api.patch(f"{_PODS}/{pod['metadata']['name']}", {"metadata": {"annotations": {_INDEX: str(free)}}})


def _index(pod: dict[str, Any]) -> int | None:
    found = pod["metadata"].get("annotations", {}).get(_INDEX)
    return None if found is None else int(found)
