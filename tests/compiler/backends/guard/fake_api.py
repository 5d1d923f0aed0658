"""An API server on the loopback that knows nodes, pods and claims, and a clock that only moves when someone waits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import SSLContext
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from gpuplan.compiler.backends.guard.script import CLAIMS, NODES, Api

PODS = "/api/v1/pods"
Body = dict[str, Any]
Answer = tuple[int, str]


class Cluster:
    """What there is; ``faults`` are given once each instead of an answer, ``events`` happen when their time comes."""

    def __init__(self, nodes: Mapping[str, Mapping[str, str]], *pods: Body, claims: list[Body] | None = None) -> None:
        self.nodes = {name: {"nvidia.com/gpu.present": "true", **labels} for name, labels in nodes.items()}
        self.pods = list(pods)
        self.claims = claims
        self.page = 250
        self.faults: list[Answer | None] = []
        self.events: list[tuple[float, Callable[[], None]]] = []
        self.time = 0.0
        self.asked: list[str] = []
        self.headers: list[Mapping[str, str]] = []

    def at(self, seconds: float, node: str, **labels: str) -> None:
        """Change labels at a time: ``config`` and ``state``."""
        named = {f"nvidia.com/mig.{'config' if key == 'config' else 'config.state'}": labels[key] for key in labels}
        self.events.append((seconds, lambda: self.nodes[node].update(named)))

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        for item in [item for item in self.events if item[0] <= self.time]:
            self.events.remove(item)
            item[1]()

    def answer(self, path: str) -> Answer | None:
        self.asked.append(path)
        if self.faults:
            return self.faults.pop(0)
        address = urlsplit(path)
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        match address.path:
            case "/api/v1/nodes":
                assert query["labelSelector"] == "nvidia.com/gpu.present=true"
                found = [
                    node(name, labels) for name, labels in self.nodes.items() if "nvidia.com/gpu.present" in labels
                ]
            case "/api/v1/pods":
                name = query["fieldSelector"].removeprefix("spec.nodeName=")
                found = [pod for pod in self.pods if pod["spec"].get("nodeName") == name]
            case "/apis/resource.k8s.io/v1/resourceclaims" if self.claims is not None:
                found = self.claims
            case _:
                return 404, "404 page not found"
        start = int(query.get("continue", 0))
        more = str(start + self.page) if start + self.page < len(found) else ""
        return 200, json.dumps({"metadata": {"continue": more}, "items": found[start : start + self.page]})

    def questions(self, path: str) -> int:
        return sum(urlsplit(asked).path == path for asked in self.asked)


@contextmanager
def serving(cluster: Cluster, folder: Path) -> Iterator[Api]:
    """The cluster's API, to be asked with the token of a folder."""
    (folder / "token").write_text("secret\n")
    with listening(cluster) as port:
        yield Api(lambda: HTTPConnection("127.0.0.1", port, timeout=5), folder, cluster.now, cluster.sleep)


@contextmanager
def listening(cluster: Cluster, tls: SSLContext | None = None) -> Iterator[int]:
    """The port that the cluster's API answers on."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cluster.headers.append(dict(self.headers))
            answer = cluster.answer(self.path)
            if answer is None:
                return  # and the connection is closed
            self.send_response(answer[0])
            self.end_headers()
            self.wfile.write(answer[1].encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def node(name: str, labels: Mapping[str, str]) -> Body:
    return {"metadata": {"name": name, "labels": dict(labels)}}


def pod(
    name: str, where: str, asked: Mapping[str, str] | None = None, phase: str = "Running", init: str | None = None
) -> Body:
    """A pod of the namespace `team`; resources are named without `nvidia.com/`, one of an init container too."""
    requests = {f"nvidia.com/{key}": value for key, value in (asked or {}).items()}
    spec: Body = {"nodeName": where, "containers": [{"resources": {"requests": {"cpu": "1", **requests}}}, {}]}
    if init is not None:
        spec["initContainers"] = [{"resources": {"requests": {f"nvidia.com/{init}": "1"}}}]
    return {"metadata": {"name": name, "namespace": "team"}, "spec": spec, "status": {"phase": phase}}


def claim(name: str, *pods: str, driver: str = "gpu.nvidia.com", **more: bool) -> Body:
    return {
        "metadata": {"name": name, "namespace": "team"},
        "status": {
            "allocation": {"devices": {"results": [{"driver": driver, **more}]}},
            "reservedFor": [{"resource": "pods", "name": pod} for pod in pods],
        },
    }


__all__ = ["CLAIMS", "NODES", "PODS", "Body", "Cluster", "claim", "listening", "node", "pod", "serving"]
