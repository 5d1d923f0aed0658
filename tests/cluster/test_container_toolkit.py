"""NVIDIA's container toolkit gives a container the devices that were chosen for it, and those of its image if it may.

Its runtime and its hook run as on a node, with what gpuplan has the operator tell the toolkit; the container runtime
below them and the program that mounts devices are stand-ins, since here are no GPUs. The operator's variables become
options of the same name (`Flags` in `cmd/nvidia-ctk-installer/toolkit/toolkit.go`, the same from v1.16.2 to v1.20.0).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.backends.gpu_operator.rendered import a_cluster, helm_values
from tests.cluster.programs import program

DEVICES = ("all", "GPU-a")
ALL, ONE, NONE = ["all"], ["GPU-a"], list[str]()
WITH_CDI, WITHOUT_CDI = "v26.7.0", "v25.3.4"


@dataclass(frozen=True)
class Container:
    """What of a container the toolkit looks at: an image's variable, devices as the device plugin names them."""

    variable: str = "all"
    mounted: Sequence[str] = ()
    annotated: Sequence[str] = ()
    capabilities: Sequence[str] = ("CAP_CHOWN",)

    def bundle(self, folder: Path) -> None:
        spec = {
            "ociVersion": "1.0.2",
            "root": {"path": "rootfs"},
            "process": {
                "cwd": "/",
                "args": ["run"],
                "env": ["PATH=/bin", f"NVIDIA_VISIBLE_DEVICES={self.variable}"],
                "capabilities": {"bounding": list(self.capabilities)},
            },
            "mounts": [
                {"source": "/dev/null", "destination": f"/var/run/nvidia-container-devices/{device}", "type": "bind"}
                for device in self.mounted
            ],
            "annotations": {"cdi.k8s.io/plugin": f"nvidia.com/gpu={','.join(self.annotated)}"}
            if self.annotated
            else {},
        }
        (folder / "config.json").write_text(json.dumps(spec), encoding="utf-8")


IMAGE = Container()
PRIVILEGED = Container(capabilities=("CAP_CHOWN", "CAP_SYS_ADMIN"))
FOR_RDMA = Container(capabilities=("CAP_CHOWN", "CAP_IPC_LOCK"))
WITH_CDI_DEVICE = Container(annotated=ONE)
WITH_MOUNTED_DEVICE = Container(variable="/var/run/nvidia-container-devices", mounted=ONE)
WITH_NAMED_DEVICE = Container(variable="GPU-a")


def options(version: str, *, closed: bool) -> Mapping[str, str]:
    more = "closeVisibleDevices: true" if closed else ""
    items = helm_values(a_cluster(version=version, more=more)).get("toolkit", {}).get("env", [])
    told = {item["name"].lower().replace("_", "-"): item["value"] for item in items}
    return {"accept-nvidia-visible-devices-envvar-when-unprivileged": "true", **told}


def configured(folder: Path, told: Mapping[str, str], more: str) -> dict[str, str]:
    """The environment that leads the programs to their file."""
    lines = [f"{name} = {value}" for name, value in told.items()]
    path = folder / "nvidia-container-runtime" / "config.toml"
    path.parent.mkdir()
    path.write_text("\n".join((*lines, more)), encoding="utf-8")
    return {"XDG_CONFIG_HOME": str(folder), "PATH": "/usr/bin:/bin"}


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def given_by_runtime(container: Container, told: Mapping[str, str], folder: Path) -> list[str]:
    """The CDI devices that the runtime edits into a container, each of which sets a variable here."""
    edits = [f"- name: '{name}'\n  containerEdits: {{env: ['GIVEN={name}']}}" for name in DEVICES]
    (folder / "cdi").mkdir()
    (folder / "cdi" / "nvidia.yaml").write_text(
        "\n".join(("cdiVersion: 0.5.0", "kind: nvidia.com/gpu", "devices:", *edits)), encoding="utf-8"
    )
    runtimes = script(folder / "runc", "exit 0")
    more = f'[nvidia-container-runtime]\nruntimes = ["{runtimes}"]\nmode = "cdi"\ndebug = "/dev/null"\n'
    more += f'[nvidia-container-runtime.modes.cdi]\nspec-dirs = ["{folder / "cdi"}"]\n'
    container.bundle(folder)
    subprocess.run(
        [program("container-toolkit", "nvidia-container-runtime"), "create", "--bundle", folder, "name"],
        env=configured(folder, told, more),
        check=True,
        capture_output=True,
    )
    process = json.loads((folder / "config.json").read_text(encoding="utf-8"))["process"]
    return [item.removeprefix("GIVEN=") for item in process["env"] if item.startswith("GIVEN=")]


def given_by_hook(container: Container, told: Mapping[str, str], folder: Path) -> list[str]:
    """The devices that the hook has mounted, which it hands to another program as arguments."""
    cli = script(folder / "cli", f'printf "%s\\n" "$@" > {folder / "arguments"}')
    more = f'[nvidia-container-cli]\npath = "{cli}"\n[nvidia-container-runtime-hook]\nskip-mode-detection = true\n'
    container.bundle(folder)
    subprocess.run(
        [program("container-toolkit", "nvidia-container-runtime-hook"), "prestart"],
        input=json.dumps({"pid": 1, "bundle": str(folder)}).encode(),
        env=configured(folder, told, more),
        check=True,
        capture_output=True,
    )
    arguments = folder / "arguments"
    lines = arguments.read_text(encoding="utf-8").splitlines() if arguments.exists() else []
    return [device for line in lines if line.startswith("--device=") for device in line[len("--device=") :].split(",")]


@pytest.mark.parametrize(
    ("container", "opened", "closed"),
    [
        (IMAGE, ALL, NONE),
        (FOR_RDMA, ALL, NONE),
        (PRIVILEGED, ALL, ALL),
        (WITH_CDI_DEVICE, ONE, ONE),
    ],
)
def test_with_cdi(container: Container, opened: list[str], closed: list[str], tmp_path: Path) -> None:
    """Under a RuntimeClass of NVIDIA's; other containers get their CDI devices without the toolkit."""
    for name, is_closed, expected in (("open", False, opened), ("closed", True, closed)):
        (tmp_path / name).mkdir()
        assert given_by_runtime(container, options(WITH_CDI, closed=is_closed), tmp_path / name) == expected


@pytest.mark.parametrize(
    ("container", "opened", "closed"),
    [
        (IMAGE, ALL, NONE),
        (FOR_RDMA, ALL, NONE),
        (PRIVILEGED, ALL, ALL),
        (WITH_NAMED_DEVICE, ONE, NONE),
        (WITH_MOUNTED_DEVICE, ["/var/run/nvidia-container-devices"], ONE),
    ],
)
def test_without_cdi(container: Container, opened: list[str], closed: list[str], tmp_path: Path) -> None:
    """Under the default runtime. What the device plugin names must reach it by mounts once the variable is closed."""
    for name, is_closed, expected in (("open", False, opened), ("closed", True, closed)):
        (tmp_path / name).mkdir()
        assert given_by_hook(container, options(WITHOUT_CDI, closed=is_closed), tmp_path / name) == expected
