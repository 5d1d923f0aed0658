"""Whether fewer GPUs cannot do: beside brute force for every small demand, beside HiGHS for some large ones."""

from __future__ import annotations

from random import Random

from gpuplan.compiler.catalog import Gpu
from tests.cluster.proof import IS_ASKED_FOR
from tests.compiler.planning.placement.oracle import board
from tests.compiler.planning.placement.test_placing import each_mig_gpu
from tests.features.packing.sizing import brute_force, highs
from tests.features.packing.sizing.price_lists import pack

MOST, DEMANDS = (8, 100) if IS_ASKED_FOR else (3, 2)


@each_mig_gpu
def test_every_small_demand_takes_as_many_gpus_as_brute_force_says(gpu: Gpu) -> None:
    judge = board(gpu.id)
    fewest = brute_force.fewest_gpus(gpu.id, MOST)
    wrong = [demand for demand, gpus in fewest.items() if pack(gpu, judge.counts(demand)).gpus != gpus]
    print(f"{gpu.id}: {len(fewest)} demands")
    assert wrong == []


@each_mig_gpu
def test_a_large_demand_takes_as_many_gpus_as_highs_says(gpu: Gpu) -> None:
    judge, random = board(gpu.id), Random(gpu.id)
    for _ in range(DEMANDS):
        instances = random.choice([20, 300, 10**4, 10**6])
        weights = [random.random() ** 3 for _ in judge.names]
        demand = tuple(round(instances * weight / sum(weights)) for weight in weights)
        assert pack(gpu, judge.counts(demand)).gpus == highs.fewest_gpus(gpu.id, demand)
