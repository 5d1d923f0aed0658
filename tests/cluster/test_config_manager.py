"""The device plugin's config-manager follows a node's label through a ConfigMap whose name stays.

NVIDIA's own program runs against an API server and a folder that is filled as a kubelet does it. What it looks at is
the same text in all releases from v0.16.2 to v0.20.0 (docs/adr/0025-a-file-may-keep-its-name.md).
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

import pytest

from tests.cluster.config_manager import EMPTY, LABEL, Node, pod
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import Process, until
from tests.compiler.backends.gpu_operator.rendered import a_cluster, a_pool, config_map


def _data(replicas: int) -> Mapping[str, str]:
    """What gpuplan writes for a pool with so many shares: one key."""
    pool = a_pool("x", f"{{timeSlicing: {{replicas: {replicas}}}}}")
    data: Mapping[str, str] = config_map(a_cluster(pool, more="devicePluginConfig: fixed"), "gpuplan-device-plugin")[
        "data"
    ]
    return data


OLD, NEW = _data(2), _data(3)
(OLD_KEY,), (NEW_KEY,) = OLD, NEW
_NUMBERS = count()


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane.start("1.34") as started:
        yield started


@pytest.fixture
def node(plane: ControlPlane, tmp_path: Path) -> Iterator[Node]:
    """One that shares as the old key says, before its pod starts."""
    (tmp_path / "config").mkdir()
    with pod(tmp_path) as within:
        name = f"gpu-{next(_NUMBERS)}"  # a node of its own: no server tells of an earlier label
        metadata = {"name": name, "labels": {LABEL: OLD_KEY}}
        plane.api.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        found = Node(plane, name, tmp_path, within)
        found.bring(OLD)
        yield found
        for process in found.processes:
            process.stop()


@pytest.fixture
def sidecar(node: Node) -> Process:
    """The sidecar of a pod that has started and reads the old key."""
    node.read()
    assert node.begin().returncode == 0
    process = node.start()
    seen = f"Label change detected: {LABEL}={OLD_KEY}"
    until(lambda: seen in process.tail() and "Waiting" in process.tail(1), "it has seen the label", processes=[process])
    assert node.reads == OLD_KEY
    time.sleep(0.2)  # what was signalled has arrived
    node.heard = node.signals
    return process


# --- Orders that are safe ----------------------------------------------------------------------------------------


def test_a_key_that_comes_first_tells_nobody_and_the_label_tells_the_plugin(node: Node, sidecar: Process) -> None:
    node.bring({**OLD, **NEW})
    assert (node.reads, node.signals) == (OLD_KEY, 0)
    node.label(NEW_KEY)
    until(lambda: node.signals == 1, "the plugin reads its file again", processes=[sidecar])
    assert node.reads == NEW_KEY
    assert sidecar.is_running


def test_other_keys_come_and_go_and_the_node_is_told_of_none(node: Node, sidecar: Process) -> None:
    node.bring({**OLD, "other.0000000": "version: v1\n"})
    node.bring(OLD)
    node.plane.api.patch(f"/api/v1/nodes/{node.name}", {"metadata": {"labels": {"other": "1"}}})
    time.sleep(1)  # as long as it takes otherwise, and longer
    assert (node.reads, node.signals, sidecar.is_running) == (OLD_KEY, 0, True)


def test_what_is_left_may_go_once_the_link_leads_elsewhere(node: Node, sidecar: Process) -> None:
    node.bring({**OLD, **NEW})
    node.label(NEW_KEY)
    until(lambda: node.signals == 1, "the plugin reads its file again", processes=[sidecar])
    node.bring(NEW)
    assert node.link.read_text() == NEW[NEW_KEY]
    assert sidecar.is_running


# --- A label that comes before its key ---------------------------------------------------------------------------


def test_a_label_that_comes_first_ends_the_sidecar_and_nothing_changes_yet(node: Node, sidecar: Process) -> None:
    node.label(NEW_KEY)
    until(lambda: not sidecar.is_running, "the sidecar ends")
    assert f"specified config {NEW_KEY} does not exist" in sidecar.tail()
    assert (node.reads, node.signals) == (OLD_KEY, 0)


def test_when_it_starts_again_the_node_shares_nothing_until_the_key_is_there(node: Node, sidecar: Process) -> None:
    """From v0.18.2 on, where it looks before the API server has answered, it takes the label for an empty one."""
    node.label(NEW_KEY)
    until(lambda: not sidecar.is_running, "the sidecar ends")
    until(lambda: _ends(node.start()) and str(node.link.resolve()) == EMPTY, "it takes the label for an empty one")
    assert node.signals
    node.bring({**OLD, **NEW})
    last = node.start()
    until(lambda: node.reads == NEW_KEY, "the link leads to the new key", processes=[last])


def _ends(process: Process) -> bool:
    until(lambda: not process.is_running, "the sidecar ends")
    return True


# --- Orders that gpuplan refuses (GPU702) ------------------------------------------------------------------------


def test_without_the_old_key_the_label_is_never_followed(node: Node, sidecar: Process) -> None:
    node.bring(NEW)
    assert not node.link.exists()  # what starts now, or when kubelet restarts, finds no file
    node.label(NEW_KEY)
    until(lambda: not sidecar.is_running, "the sidecar ends")
    assert "error creating symlink" in sidecar.tail()
    again = node.begin()
    assert again.returncode == 1
    assert "file exists" in again.stderr  # and so it ends each time
    assert (node.reads, node.signals) == (OLD_KEY, 0)


def test_without_the_old_key_a_node_that_loses_its_label_is_not_told_either(node: Node, sidecar: Process) -> None:
    node.bring(NEW)
    node.label(None)
    until(lambda: not sidecar.is_running, "the sidecar ends")
    assert "error creating symlink" in sidecar.tail()


def test_the_old_key_mends_it_when_it_comes_back(node: Node, sidecar: Process) -> None:
    node.bring(NEW)
    node.label(NEW_KEY)
    until(lambda: not sidecar.is_running, "the sidecar ends")
    node.bring({**OLD, **NEW})
    again = node.start()
    until(lambda: node.reads == NEW_KEY, "the link leads to the new key", processes=[again])


def test_other_content_under_a_key_that_stays_tells_nobody(node: Node, sidecar: Process) -> None:
    """Why no key is ever changed in place."""
    node.bring({OLD_KEY: NEW[NEW_KEY]})
    assert node.link.read_text() == NEW[NEW_KEY]
    time.sleep(1)
    assert (node.signals, sidecar.is_running) == (0, True)


# --- What is wrong with some releases ----------------------------------------------------------------------------


def test_an_init_container_takes_the_label_for_an_empty_one(node: Node) -> None:
    """From v0.18.2 on, where it looks before the API server has answered.

    What starts after it has an empty file until the sidecar signals, and where that fails, for good (GPU757).
    """

    def has_begun_with_nothing() -> bool:
        node.link.unlink(missing_ok=True)
        return node.begin().returncode == 0 and str(node.link.resolve()) == EMPTY

    until(has_begun_with_nothing, "it takes the label for an empty one")


def test_the_name_that_the_operator_gives_is_no_process_of_the_mps_daemon(node: Node) -> None:
    """`command` and `PROCESS_TO_SIGNAL` are those of `assets/state-mps-control-daemon` in all releases (GPU756)."""
    node.read("mps-control-daemon")
    node.link.symlink_to(EMPTY)
    sidecar = node.start(tells="/usr/bin/mps-control-daemon")
    until(lambda: not sidecar.is_running, "the sidecar ends")
    assert "no process found" in sidecar.tail(60)
    assert (node.reads, node.signals) == (OLD_KEY, 0)


def test_a_process_without_a_command_line_ends_it_before_it_signals(node: Node) -> None:
    """Until v0.20.0: threads of the kernel have none, and the MPS daemon's sidecar sees them (GPU756)."""
    gone = node.run("zombie", "/bin/bash", "-c", "/bin/sleep 0.1 & exec /bin/sleep infinity")
    until(lambda: _has_zombie(node), "a process has ended, and nobody has asked how", processes=[gone])
    node.read()  # found after it, as pods are after the kernel
    node.link.symlink_to(EMPTY)
    sidecar = node.start()
    until(lambda: not sidecar.is_running, "the sidecar ends")
    assert "index out of range" in sidecar.tail(60)
    assert (node.reads, node.signals) == (OLD_KEY, 0)


def _has_zombie(node: Node) -> bool:
    command = [*node.within, "/bin/bash", "-c", "cat /proc/[0-9]*/stat"]
    return ") Z " in subprocess.run(command, capture_output=True, text=True, check=False).stdout
