"""NVIDIA's GPU Operator beside a control plane: what its chart installs, and its program, which runs without a pod."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from tests.cluster.api import Api, Object, Refused
from tests.cluster.charts import rendered
from tests.cluster.control_plane import ControlPlane, is_ready
from tests.cluster.processes import NotReadyError, Process, serve, until
from tests.cluster.programs import program, source

OPERATOR: Final = "github.com/NVIDIA/gpu-operator"
RELEASE: Final = "v25.3.4"
"""The release of the GPU Operator that the module is, whose chart lies in it."""
CHART: Final = "deployments/gpu-operator"
NAMESPACE: Final = "gpu-operator"
POLICIES: Final = "/apis/nvidia.com/v1/clusterpolicies"

UBUNTU: Final = 'ID=ubuntu\nVERSION_ID="22.04"\n'
OPENSHIFT: Final = 'ID=rhcos\nVERSION_ID="4.20"\nOPENSHIFT_VERSION="4.20"\n'
"""`/etc/os-release` of nodes, which the operator reads where its pod mounts it."""
_PLACES: Final = {b"/opt/gpu-operator/": b"opt//gpu-operator/", b"/host-etc/os-release": b"host-etc//os-release"}
"""Where its image has files, in `controllers/state_manager.go`, `object_controls.go` and `internal/state/manager.go`.

Paths of the same length lead to the folder that the program is started in. So nothing is written below the root of this
machine, two of them can run at once, and no right to mount is asked for, which containers hardly ever have.
"""
_NOT_INSTALLED: Final = frozenset(("ClusterPolicy", "CustomResourceDefinition", "DaemonSet", "Deployment", "Job"))


def chart_objects(values: Mapping[str, Any], namespace: str = NAMESPACE) -> tuple[Object, ...]:
    """What its chart makes of values."""
    return rendered(source("gpu-operator", OPERATOR) / CHART, "gpu-operator", namespace, values)


def install(plane: ControlPlane, objects: tuple[Object, ...], namespace: str = NAMESPACE) -> None:
    """Apply what a chart makes, but for its ClusterPolicy and for what runs in pods."""
    for body in objects:
        if body["kind"] == "CustomResourceDefinition":
            plane.api.apply(body, manager="helm")
    until(lambda: are_kinds_served(plane.api), "its kinds are served")
    plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, manager="helm")
    for body in objects:
        if body["kind"] not in _NOT_INSTALLED and plane.api.find_kind(body["apiVersion"], body["kind"]):
            metadata = {"namespace": namespace, **body["metadata"]}
            plane.api.apply({**body, "metadata": metadata}, manager="helm")


def are_kinds_served(api: Api) -> bool:
    kinds = (("nvidia.com/v1", "ClusterPolicy"), ("nvidia.com/v1alpha1", "NVIDIADriver"))
    return all(api.find_kind(*kind) for kind in kinds)


def apply_policy(plane: ControlPlane, policy: Object) -> None:
    """Apply a ClusterPolicy as the client does, which takes the nulls that the chart renders."""
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(policy))


def describe_nodes(api: Api) -> None:
    """What Node Feature Discovery says of the system of each node, and an annotation, as a kubelet leaves one."""
    feature = "feature.node.kubernetes.io"
    labels = {
        f"{feature}/kernel-version.full": "6.8.0-60-generic",
        f"{feature}/system-os_release.ID": "ubuntu",
        f"{feature}/system-os_release.VERSION_ID": "22.04",
    }
    annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    for node in api.list("/api/v1/nodes"):
        api.patch(
            f"/api/v1/nodes/{node['metadata']['name']}", {"metadata": {"labels": labels, "annotations": annotations}}
        )


def images_of_the_bundle() -> dict[str, str]:
    """The images that OLM tells the operator by its environment."""
    path = source("gpu-operator", OPERATOR) / "bundle/manifests/gpu-operator-certified.clusterserviceversion.yaml"
    bundle = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    [deployment] = bundle["spec"]["install"]["spec"]["deployments"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"] if "value" in variable}


@contextmanager
def operating(
    plane: ControlPlane,
    *,
    system: str = UBUNTU,
    namespace: str = NAMESPACE,
    images: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Process]:
    """A running operator, with the rights of its account.

    Its kinds must be served before. ``system`` is the `os-release` of nodes, ``images`` are those that it has where a
    ClusterPolicy names none.
    """
    folder = Path(tempfile.mkdtemp(prefix="gpu-operator-", dir=plane.folder))
    _unpack(folder, system)
    own = {"KUBECONFIG": str(_kubeconfig(plane, folder, namespace)), "OPERATOR_NAMESPACE": namespace}

    def command(port: int) -> list[str | Path]:
        return [folder / "gpu-operator", "--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{port}"]

    process, _ = serve(command, is_ready, folder / "operator.log", env={**images, **own}, cwd=folder)
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def joining(plane: ControlPlane, namespace: str = NAMESPACE) -> Iterator[None]:
    """An operator that starts as soon as its chart is there, and again when it ends, as its pod would."""
    is_stopped = threading.Event()

    def run() -> None:
        while not is_stopped.wait(0.5):
            with suppress(Refused, OSError, NotReadyError):
                if not is_installed(plane.api, namespace):
                    continue
                with operating(plane, namespace=namespace) as process:
                    while process.is_running and not is_stopped.wait(0.5):
                        pass

    thread = threading.Thread(target=run, name="gpu-operator", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_stopped.set()
        thread.join()


def is_installed(api: Api, namespace: str) -> bool:
    deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/gpu-operator"
    return are_kinds_served(api) and api.find(deployment) is not None


def _unpack(folder: Path, system: str) -> None:
    """The program, and the files of its image, below a folder (`docker/Dockerfile` there)."""
    module = source("gpu-operator", OPERATOR)
    for name, place in (("assets", ""), ("manifests", "manifests")):
        for path in (path for path in (module / name).rglob("*") if path.is_file()):
            target = folder / "opt/gpu-operator" / place / path.relative_to(module / name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    (folder / "host-etc").mkdir()
    (folder / "host-etc/os-release").write_text(system, encoding="utf-8")
    built = program("gpu-operator", "gpu-operator").read_bytes()
    for fixed, relative in _PLACES.items():
        assert fixed in built
        built = built.replace(fixed, relative)
    (folder / "gpu-operator").write_bytes(built)
    (folder / "gpu-operator").chmod(0o755)


def _kubeconfig(plane: ControlPlane, folder: Path, namespace: str) -> Path:
    config = json.loads(plane.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] |= {
        "as": f"system:serviceaccount:{namespace}:gpu-operator",
        "as-groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path
