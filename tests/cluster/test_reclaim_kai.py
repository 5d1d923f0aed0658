"""KAI-Scheduler v0.12.0 gives alice every GPU that she is guaranteed, whatever a tenant tries that has borrowed it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gpuplan.compiler.planning.kai import queue_name
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL, SCHEDULER_NAME
from tests.cluster import attacks, proof
from tests.cluster.example import ExampleCluster
from tests.cluster.kai_scheduler import kai_controllers, kai_schedulers
from tests.cluster.lending import (
    CLUSTER,
    ELSEWHERE,
    GPUS,
    OWN,
    Attack,
    Outcome,
    Party,
    Stage,
    cases,
    in_words,
    own_place,
    play_all,
    pools,
    write,
)
from tests.cluster.programs import need_go, release
from tests.cluster.squatters import SQUATTERS
from tests.laws.tenancy.proof import reclaim_page, reclaim_path

Record = Callable[[str, object, object], None]
Outcomes = Mapping[Attack, Outcome]

pytestmark = proof.only_in_proof

ALL = (*attacks.KAI, *SQUATTERS)
OPEN: frozenset[Attack] = frozenset()
AT_ONCE = 3
"""Each pool has a scheduler of its own."""
HALF = 0.5


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What has come of each attack on a pool of whole GPUs."""
    return _played(tmp_path_factory.mktemp("whole"), ALL, None)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What has come of each attack on a pool whose GPUs are shared, each by two."""
    return _played(tmp_path_factory.mktemp("shared"), attacks.KAI_FRACTIONS, HALF)


def _played(repository: Path, played: tuple[Attack, ...], fraction: float | None) -> Outcomes:
    need_go()
    names = pools(min(AT_ONCE, len(played)))
    write(repository, "kind: kai", names, "exclusive" if fraction is None else "fraction")
    with ExampleCluster.start(CLUSTER, repository, kai_controllers) as cluster, kai_schedulers(cluster.control_plane):
        stages = [_stage(cluster, name, fraction) for name in names]
        return play_all(played, stages, idle=SQUATTERS)


@pytest.mark.parametrize("attack", cases(ALL, OPEN))
def test_guarantee_is_given_back(whole: Outcomes, attack: Attack, record: Record) -> None:
    print("\n".join(whole[attack].refusals))
    record(f"kai: {in_words(attack)}", f"alice {OWN}/{OWN}", whole[attack].observed)


@pytest.mark.parametrize("attack", cases(attacks.KAI_FRACTIONS, OPEN))
def test_guarantee_of_halves_is_given_back(shared: Outcomes, attack: Attack, record: Record) -> None:
    print("\n".join(shared[attack].refusals))
    record(f"kai, halves of GPUs: {in_words(attack)}", f"alice {OWN}/{OWN}", shared[attack].observed)


def test_without_an_attack_the_whole_pool_is_borrowed(whole: Outcomes, record: Record) -> None:
    """Else nothing would have to be given back."""
    record("kai: GPUs that mallory has when alice comes", GPUS, whole[attacks.nothing].borrowed)


def test_the_page_is_written(whole: Outcomes, shared: Outcomes) -> None:
    seen = {in_words(attack): outcome.observed for attack, outcome in whole.items()}
    halves = {f"{in_words(attack)}, with halves of GPUs": outcome.observed for attack, outcome in shared.items()}
    page = reclaim_page("kai", release("kai", "github.com/NVIDIA/KAI-scheduler"), seen | halves)
    reclaim_path("kai").write_text(page, encoding="utf-8")


def _stage(cluster: ExampleCluster, pool: str, fraction: float | None) -> Stage:
    mallory, alice = (_party(cluster, f"{name}-{pool}", pool, fraction) for name in ("mallory", "alice"))
    return Stage(mallory, alice, _party(cluster, f"eve-{pool}", ELSEWHERE, None))


def _party(cluster: ExampleCluster, name: str, pool: str, fraction: float | None) -> Party:
    labels = {QUEUE_LABEL: queue_name(name, pool), NODE_POOL_LABEL: pool}
    placed = {"schedulerName": SCHEDULER_NAME, **own_place(pool)}
    return Party(cluster.api, name, pool, labels, placed, fraction)
