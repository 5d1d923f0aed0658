"""NVIDIA's container toolkit gives a container the devices that were chosen for it, and those of its image if it may.

Its runtime and its hook run as on a node, with what gpuplan has the operator tell the toolkit; the container runtime
below them and the program that mounts devices are stand-ins, since here are no GPUs. The operator's variables become
options of the same name (`Flags` in `cmd/nvidia-ctk-installer/toolkit/toolkit.go`, the same from v1.16.2 to v1.20.0).
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.programs import program
from tests.compiler.backends.gpu_operator.rendered import a_cluster, helm_values

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
    env: Sequence[str] = ()

    def bundle(self, folder: Path) -> None:
        spec = {
            "ociVersion": "1.0.2",
            "root": {"path": "rootfs"},
            "process": {
                "cwd": "/",
                "args": ["run"],
                "env": ["PATH=/bin", f"NVIDIA_VISIBLE_DEVICES={self.variable}", *self.env],
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
    [(IMAGE, ALL, NONE), (FOR_RDMA, ALL, NONE), (PRIVILEGED, ALL, ALL), (WITH_CDI_DEVICE, ONE, ONE)],
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


FOR_CARDS = ("NVIDIA_MOFED=enabled",)
CARDS = ["/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"]


def cards_given_by_runtime(container: Container, told: Mapping[str, str], mode: str, folder: Path) -> list[str]:
    """The network cards of the node that the runtime adds to a container."""
    root = folder / "driver"
    (root / "dev" / "infiniband").mkdir(parents=True)
    for path in ("/dev/nvidiactl", *CARDS):
        try:
            os.mknod(f"{root}{path}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("devices cannot be made here")
    (folder / "cdi").mkdir()
    (folder / "cdi" / "nvidia.yaml").write_text(
        "{cdiVersion: 0.5.0, kind: nvidia.com/gpu, devices: [{name: GPU-a, containerEdits: {env: [GIVEN=GPU-a]}}]}",
        encoding="utf-8",
    )
    runtimes = script(folder / "runc", "exit 0")
    more = f'[nvidia-container-cli]\nroot = "{root}"\n[nvidia-container-runtime-hook]\npath = "{runtimes}"\n'
    more += f'[nvidia-container-runtime]\nruntimes = ["{runtimes}"]\nmode = "{mode}"\ndebug = "/dev/null"\n'
    more += f'[nvidia-container-runtime.modes.cdi]\nspec-dirs = ["{folder / "cdi"}"]\n'
    container.bundle(folder)
    subprocess.run(
        [program("container-toolkit", "nvidia-container-runtime"), "create", "--bundle", folder, "name"],
        env=configured(folder, told, more),
        check=True,
        capture_output=True,
    )
    linux = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("linux", {})
    return [device["path"] for device in linux.get("devices", [])]


@pytest.mark.parametrize(
    ("container", "version", "closed", "expected"),
    [
        (Container(variable="GPU-a", env=FOR_CARDS), WITHOUT_CDI, False, CARDS),
        (Container(variable="/var/run/nvidia-container-devices", mounted=ONE, env=FOR_CARDS), WITHOUT_CDI, True, CARDS),
        (Container(variable="GPU-a"), WITHOUT_CDI, False, NONE),
        (Container(variable="GPU-a", env=FOR_CARDS), WITHOUT_CDI, True, NONE),
        (Container(variable="void", env=FOR_CARDS), WITHOUT_CDI, False, NONE),
        (Container(annotated=ONE, env=FOR_CARDS), WITH_CDI, True, NONE),
    ],
)
def test_without_cdi_a_container_with_a_gpu_has_all_cards_by_a_variable(
    container: Container, version: str, *, closed: bool, expected: list[str], tmp_path: Path
) -> None:
    """Which is why `no-network-cards-by-variable` is there. An image may have the variable as well."""
    mode = "legacy" if version is WITHOUT_CDI else "cdi"
    assert cards_given_by_runtime(container, options(version, closed=closed), mode, tmp_path) == expected
