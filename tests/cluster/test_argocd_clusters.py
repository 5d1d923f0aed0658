"""Argo CD syncs each kind of cluster to its end: all is synced and healthy, but for what a guide says of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cluster.control_plane import ControlPlane
from tests.cluster.kai_scheduler import kai_controllers, kai_schedulers
from tests.cluster.kueue_controller import kueue_controller
from tests.cluster.lab import replace_in, syncing
from tests.cluster.processes import until
from tests.cluster.programs import need_go


@contextmanager
def kueue(plane: ControlPlane, out: Path) -> Iterator[None]:
    with kueue_controller(plane, out / "scheduling" / "kueue-configuration.yaml"):
        yield


def test_prod_with_the_controller_of_kueue(tmp_path: Path) -> None:
    """The pool with windows waits for one; `tutorial.md` says so of pools, and `review-a-change.md` of windows."""
    need_go()
    with syncing(tmp_path, "prod", beside=kueue) as lab:
        lab.adopt()
        lab.finish({"gpu-partitions-prod-a100-production": "OutOfSync Missing"})


def test_openshift_with_an_operator_of_olm(tmp_path: Path) -> None:
    need_go()
    with syncing(tmp_path, "openshift") as lab:
        lab.adopt()
        lab.finish()


OVERLAY = Path(__file__).with_name("kai_overlay.yaml")


def with_kai(tree: Path) -> None:
    shutil.rmtree(tree / "overlays/dev")
    (tree / "overlays/dev").mkdir()
    shutil.copy(OVERLAY, tree / "overlays/dev/cluster.yaml")


@contextmanager
def kai(plane: ControlPlane, _: Path) -> Iterator[None]:
    with kai_controllers(plane):
        yield


def test_a_cluster_of_kai_scheduler(tmp_path: Path) -> None:
    """Its schedulers are started for the shards that Argo CD has brought."""
    need_go()
    with syncing(tmp_path, "dev", with_kai, kai) as lab, ExitStack() as later:
        lab.adopt()
        lab.finish(work=False)
        later.enter_context(kai_schedulers(lab.plane))
        lab.argocd.settle(lab.scaled())


def with_root(tree: Path) -> None:
    replace_in(tree / "overlays/dev/cluster.yaml", "  argocd:\n", "  argocd:\n    root: true\n")


def test_a_cluster_with_a_root(tmp_path: Path) -> None:
    """Once it is at its end, what is not of its folders moves neither the root nor what it orders."""
    need_go()
    with syncing(tmp_path, "dev", with_root) as lab:
        lab.adopt()
        lab.finish()
        before = lab.argocd.synced()
        lab.edit("policies/priority-classes.yaml", "that can wait.", "that wait.")
        lab.push("Say it shorter")

        until(lambda: lab.argocd.synced() != before, "something is synced", seconds=60)
        lab.argocd.settle(lab.scaled())

        after = lab.argocd.synced()
        assert {name for name in after if after[name] != before[name]} == {"gpu-tenancy-dev"}
