"""Kueue gives alice every GPU that she is guaranteed, whatever a tenant tries that has borrowed it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from tests.cluster import attacks, proof
from tests.cluster.example import ExampleCluster
from tests.cluster.kueue_controller import kueue_controller
from tests.cluster.kueue_jobs import QUEUE
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
    play_all,
    pools,
    write,
)
from tests.cluster.programs import need_go, release
from tests.cluster.squatters import SQUATTERS
from tests.laws.tenancy.proof import reclaim_page, reclaim_path

Record = Callable[[str, object, object], None]

ALL = (*attacks.KUEUE, *SQUATTERS)
pytestmark = proof.only_in_proof

OPEN: frozenset[Attack] = frozenset()
AT_ONCE = 6


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Attack, Outcome]:
    """What has come of each attack, on a pool of its own."""
    need_go()
    repository, names = tmp_path_factory.mktemp("kueue"), pools(AT_ONCE)
    write(repository, "kind: kueue", names)
    configuration = repository / "out" / CLUSTER / "scheduling" / "kueue-configuration.yaml"
    beside = partial(kueue_controller, configuration=configuration)
    with ExampleCluster.start(CLUSTER, repository, beside) as cluster:
        return play_all(ALL, [_stage(cluster, name) for name in names], idle=SQUATTERS)


@pytest.mark.parametrize("attack", cases(ALL, OPEN))
def test_guarantee_is_given_back(outcomes: Mapping[Attack, Outcome], attack: Attack, record: Record) -> None:
    print("\n".join(outcomes[attack].refusals))
    record(f"kueue: {in_words(attack)}", f"alice {OWN}/{OWN}", outcomes[attack].observed)


def test_without_an_attack_the_whole_pool_is_borrowed(outcomes: Mapping[Attack, Outcome], record: Record) -> None:
    """Else nothing would have to be given back."""
    record("kueue: GPUs that mallory has when alice comes", GPUS, outcomes[attacks.nothing].borrowed)


def test_the_page_is_written(outcomes: Mapping[Attack, Outcome]) -> None:
    seen = {in_words(attack): outcome.observed for attack, outcome in outcomes.items()}
    page = reclaim_page("kueue", release("kueue", "sigs.k8s.io/kueue"), seen)
    reclaim_path("kueue").write_text(page, encoding="utf-8")


def _stage(cluster: ExampleCluster, pool: str) -> Stage:
    queue = {QUEUE: "default"}
    mallory, alice = (Party(cluster.api, f"{name}-{pool}", pool, queue) for name in ("mallory", "alice"))
    return Stage(mallory, alice, Party(cluster.api, f"eve-{pool}", ELSEWHERE, queue))
