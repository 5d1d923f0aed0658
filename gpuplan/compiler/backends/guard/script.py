"""Stops a sync that would repartition GPUs that pods hold (`before`), and waits until it has come true (`after`)."""

from __future__ import annotations

import json
import os
import re
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CONFIG = "nvidia.com/mig.config"
STATE = "nvidia.com/mig.config.state"
NODES = "/api/v1/nodes"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
GPUS = re.compile(r"nvidia\.com/(gpu|gpu\..+|mig-.+)")
LONGEST_OUTAGE = 120
SETTLED = 60  # mig-manager looks at the GPUs first, and only then replaces the state of the configuration before
INTERVAL = 10


class GuardError(Exception):
    """Why the sync must not go on."""


def main(arguments: Sequence[str], api: Api) -> int:
    verb, settings = arguments
    try:
        {"before": before, "after": after}[verb](json.loads(Path(settings).read_text("utf-8")), api)
    except GuardError as error:
        say(str(error))
        return 1
    return 0


def before(settings: dict[str, Any], api: Api) -> None:
    """Fail if a pod holds a GPU of a node that is to be partitioned anew: no one knows which of the node's GPUs."""
    targets = {name: (labels.get(CONFIG), target(settings, name, labels)) for name, labels in gpu_nodes(api)}
    changing = {name: pair for name, pair in targets.items() if pair[1] not in (None, pair[0])}
    for name, (config, wanted) in sorted(changing.items()):
        say(f"{name}: from {config or 'no configuration'} to {wanted}")
    claimed = {} if not changing else claims(api)
    held = [text for name in sorted(changing) for text in holders(api, name, claimed)]
    if held:
        drain = f"kubectl drain {' '.join(sorted(changing))} --ignore-daemonsets --delete-emptydir-data"
        raise GuardError("\n".join([*held, f"pods hold GPUs: wait until they end, or `{drain}`, and sync again"]))
    say(f"{len(changing)} nodes are to be partitioned anew, and no pod holds a GPU of theirs")


def after(settings: dict[str, Any], api: Api) -> None:
    """Wait until mig-manager has succeeded on all nodes, and what it says has been the same for a while."""
    since: dict[str, tuple[object, float]] = {}
    end = api.now() + settings["timeoutSeconds"]
    last = ""
    while True:
        waiting, now = [], api.now()
        for name, labels in sorted(gpu_nodes(api)):
            wanted, found = target({**settings, "leaving": None}, name, labels), (labels.get(CONFIG), labels.get(STATE))
            if wanted is None:
                continue
            if since.get(name, (None, 0))[0] != found:
                since[name] = (found, now)
            is_settled = now - since[name][1] >= SETTLED
            if found == (wanted, "failed") and is_settled:
                raise GuardError(f"{name}: mig-manager has failed to apply {wanted}\n{advice(settings, name)}")
            if found != (wanted, "success") or not is_settled:
                state = f"{found[0] or 'no configuration'} is {found[1] or 'not begun'}"
                waiting.append(f"{name}: {state}, {'as yet' if found[0] == wanted else f'and not yet {wanted}'}")
        if not waiting:
            say(f"{len(since)} nodes are partitioned as they should be")
            return
        if now >= end:
            text = "\n".join(waiting)
            raise GuardError(f"{text}\nnot done after {settings['timeoutSeconds']} seconds\n{advice(settings, 'NODE')}")
        if (text := "\n".join(waiting)) != last:
            last = text
            say(text)
        api.sleep(INTERVAL)


def advice(settings: dict[str, Any], node: str) -> str:
    pods = f"-n {settings['namespace']} -l app=nvidia-mig-manager --field-selector spec.nodeName={node}"
    return (
        f"to see why: `kubectl logs -n {settings['namespace']} $(kubectl get pods {pods} -o name)`\n"
        f"mig-manager does not try again by itself; to have it try: `kubectl delete pods {pods}`"
    )


def target(settings: dict[str, Any], name: str, labels: dict[str, str]) -> str | None:
    """The configuration that the sync gives to a node; None for a node of no concern."""
    for part in settings["targets"]:
        is_named = name in part["names"] if "names" in part else re.fullmatch(part["pattern"], name, re.ASCII)
        if is_named and name not in part.get("except", ()):
            return str(part["config"])
    return settings["leaving"] if labels.get("gpuplan.dev/pool") == settings["pool"] else None


def gpu_nodes(api: Api) -> Iterator[tuple[str, dict[str, str]]]:
    """Names and labels of the nodes whose GPUs the operator has found."""
    for node in api.items(NODES, labelSelector="nvidia.com/gpu.present=true"):
        yield node["metadata"]["name"], node["metadata"].get("labels") or {}


def holders(api: Api, node: str, claimed: dict[tuple[str, str], str]) -> Iterator[str]:
    """The pods that hold GPUs of a node. Those that have ended hold none; those that are ending still do."""
    for pod in api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={node}"):
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
            what = [*requested(pod["spec"]), *([f"the claim {claimed[key]}"] if key in claimed else [])]
            if what:
                yield f"{node}: {'/'.join(key)} holds {', '.join(what)}"


def requested(spec: dict[str, Any]) -> list[str]:
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    found = [(container.get("resources") or {}).get("requests") or {} for container in containers]
    return sorted({name for requests in found for name in requests if GPUS.fullmatch(name) and requests[name] != "0"})


def claims(api: Api) -> dict[tuple[str, str], str]:
    """The pods that hold GPUs by Dynamic Resource Allocation, each with a claim; who only watches holds none."""
    found = {}
    for claim in api.items(CLAIMS, missing_ok=True):
        status, namespace = claim.get("status") or {}, claim["metadata"]["namespace"]
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        if any(result["driver"] == "gpu.nvidia.com" and not result.get("adminAccess") for result in results):
            for user in status.get("reservedFor") or ():
                found[namespace, user["name"]] = claim["metadata"]["name"]
    return found


class Api:
    """The API server, as the pod's ServiceAccount."""

    def __init__(
        self,
        connect: Callable[[], HTTPConnection],
        account: Path,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.connect = connect
        self.account = account
        self.now = now
        self.sleep = sleep

    def items(self, path: str, *, missing_ok: bool = False, **query: str) -> Iterator[dict[str, Any]]:
        """All objects of a list, page by page; none where there is no such list."""
        more: dict[str, str] = {}
        while True:
            page = self.get(f"{path}?{urlencode({**query, 'limit': '250', **more})}", missing_ok=missing_ok)
            yield from page.get("items") or ()
            more = {"continue": (page.get("metadata") or {}).get("continue") or ""}
            if not more["continue"]:
                return

    def get(self, path: str, *, missing_ok: bool) -> dict[str, Any]:
        """What the server answers; an outage, such as that of a server which restarts, is waited for."""
        start, delay = self.now(), 1
        while True:
            status, answer = self.ask(path)
            if status == 200:
                return dict(answer)
            if status == 404 and missing_ok:
                return {}
            if 0 < status < 500 and status != 429:
                raise GuardError(f"GET {path}: {status} {answer.get('message') or 'refused'}")
            if self.now() - start >= LONGEST_OUTAGE:
                raise GuardError(f"GET {path}: no answer for {LONGEST_OUTAGE} seconds: {answer.get('message')}")
            self.sleep(delay)
            delay = min(2 * delay, 15)

    def ask(self, path: str) -> tuple[int, dict[str, Any]]:
        """The status, 0 where there is none, and the answer. The token is read each time, for it is replaced."""
        kind = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        token = (self.account / "token").read_text("utf-8")
        headers = {
            "Authorization": f"Bearer {token.strip()}",
            "Accept": kind if path.startswith(NODES) else "application/json",
        }
        connection = self.connect()
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException) as error:
            return 0, {"message": str(error) or type(error).__name__}
        finally:
            connection.close()
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if isinstance(answer, dict):
            return response.status, answer
        return (0 if response.status == 200 else response.status), {"message": f"{response.status} {response.reason}"}


def in_cluster(account: Path) -> Api:
    """As client libraries find it. Certificates of older clusters lack what Python 3.13 asks for on top of X.509.

    (https://github.com/kubernetes-client/python/issues/2394)
    """
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
    trusted = ssl.create_default_context(cafile=str(account / "ca.crt"))
    trusted.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return Api(lambda: HTTPSConnection(host, port, timeout=30, context=trusted), account)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], in_cluster(ACCOUNT)))
