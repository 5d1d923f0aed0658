"""Needs from what pods were measured to use."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.planning.plan import Isolation, Plan
from gpuplan.features.packing.sizing.demand import from_files, queries
from gpuplan.features.packing.sizing.demand.measured import ENGINE, MEMORY, workload_of
from gpuplan.features.packing.sizing.needs import Need
from tests.platforms import a_platform, pool, tenant
from tests.promtool import promtool

A100 = "NVIDIA A100-SXM4-80GB"


def a_series(
    metric: str, pod: str, *values: object, uuid: str = "GPU-1", profile: str = "", instance: str = "", **more: str
) -> dict[str, Any]:
    labels = {"__name__": metric, "exported_namespace": "lab", "exported_pod": pod, "UUID": uuid, "modelName": A100}
    labels |= {"namespace": "gpu-operator", "pod": "dcgm-exporter-x", "GPU_I_PROFILE": profile, "GPU_I_ID": instance}
    return {"metric": {**labels, **more}, "values": [[900 * at, str(value)] for at, value in enumerate(values)]}


def an_answer(*series: object, kind: str = "matrix") -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": series}}).encode()


def read(*series: object, plan: Plan | None = None) -> tuple[tuple[Need, ...], list[str]]:
    needs, found = from_files({"use.json": an_answer(*series)}, plan)
    return needs, [item.code for item in found]


def on_1g(metric: str, pod: str, *values: object, instance: str = "7") -> dict[str, Any]:
    return a_series(metric, pod, *values, profile="1g.10gb", instance=instance)


def test_a_pod_needs_its_percentile_and_a_margin_of_its_instance_s_part() -> None:
    (need,), codes = read(
        on_1g(MEMORY, "chat-7d9f8b6c5-x2x4z", 4000, 5000, 5000), on_1g(ENGINE, "chat-7d9f8b6c5-x2x4z", 0.1, 0.5, 0.5)
    )
    assert (need.team, need.name, need.pods, need.memory_mib, codes) == ("lab", "chat", 1, 6000, [])
    assert (need.compute, need.models, need.isolation) == (Fraction(3, 35), ("A100-80GB",), Isolation.HARDWARE)


def test_a_need_is_never_more_than_the_device_that_was_enough() -> None:
    (need,), _ = read(on_1g(MEMORY, "chat-0", 9700), on_1g(ENGINE, "chat-0", 1.3))
    assert (need.memory_mib, need.compute) == (9728, Fraction(1, 7))


def test_pods_at_once_and_sizes_of_a_workload() -> None:
    series = [
        a_series(metric, f"nb-{pod}", *[value] * 3, uuid=f"GPU-{pod}")
        for pod, size in enumerate([4000, 4100, 30000])
        for metric, value in ((MEMORY, size), (ENGINE, 0.2))
    ]
    needs, codes = read(*series)
    assert ([(need.name, need.pods, need.memory_mib) for need in needs], codes) == (
        [("nb", 2, 4920), ("nb", 1, 36000)],
        [],
    )


def test_pods_with_several_whole_gpus() -> None:
    series = [
        a_series(metric, "train-0", 70000 if metric == MEMORY else 1, uuid=f"GPU-{gpu}")
        for gpu in range(4)
        for metric in (MEMORY, ENGINE)
    ]
    (need,), _ = read(*series)
    assert (need.pods, need.gpus, need.isolation, need.compute) == (1, 4, Isolation.WHOLE_GPU, Fraction(1))


def test_gpu825_pods_on_one_gpu_are_measured_together() -> None:
    both = [a_series(MEMORY, pod, 9000, 9000) for pod in ("a-0", "b-0")]
    needs, found = from_files({"use.json": an_answer(*both)})
    assert (needs, [item.code for item in found]) == ((), ["GPU825"])
    assert found[0].finding.notes[0] == "these are `lab/a-0` and `lab/b-0`"


def test_gpu825_a_pod_that_follows_another_shares_nothing() -> None:
    later = a_series(MEMORY, "b-0", 9000, 9000)
    later["values"] = [[900, "9000"], [1800, "9000"]]
    needs, codes = read(
        a_series(MEMORY, "a-0", 9000, 9000), later, a_series(ENGINE, "a-0", 1), a_series(ENGINE, "b-0", 1)
    )
    assert (len(needs), codes) == (2, [])


def at(series: dict[str, Any], *times: int) -> dict[str, Any]:
    return {**series, "values": [[900 * time, "9000"] for time in times]}


def test_gpu825_three_that_follow_one_another_share_nothing() -> None:
    times = {"a-0": (0, 1), "b-0": (1, 2), "c-0": (2, 3)}
    needs, codes = read(*(at(a_series(MEMORY, pod), *some) for pod, some in times.items()))
    assert (sorted(need.name for need in needs), codes) == (["a", "b", "c"], ["GPU826"])


def test_gpu825_pods_that_are_named_by_turns_share_a_gpu() -> None:
    """Without `KUBERNETES_VIRTUAL_GPUS` the exporter names one of them at each scrape."""
    turns = [at(a_series(MEMORY, "a-0"), 0, 2, 5), at(a_series(MEMORY, "b-0"), 1, 3, 4)]
    assert read(*turns) == ((), ["GPU825"])


def test_gpu825_a_pod_may_come_back_by_its_name() -> None:
    series = [at(a_series(MEMORY, "a-0"), 0, 1, 4, 5), at(a_series(MEMORY, "b-0"), 2, 3)]
    assert read(*series)[1] == ["GPU826"]


def test_gpu825_what_changes_between_two_scrapes_is_no_memory_of_their_own() -> None:
    assert read(a_series(MEMORY, "a-0", 9000, 9010), a_series(MEMORY, "b-0", 9010, 9000)) == ((), ["GPU825"])


@pytest.mark.parametrize("honors_labels", [True, False])
def test_gpu820_a_device_that_nobody_has_has_the_exporter_s_labels(honors_labels: bool) -> None:
    idle = on_1g(MEMORY, "chat-0", 12)
    idle["metric"] |= {"namespace": "gpu-operator", "pod": "nvidia-dcgm-exporter-x2x4z"}
    del idle["metric"]["exported_namespace"], idle["metric"]["exported_pod"]
    used = on_1g(MEMORY, "chat-0", 4000, instance="8")
    if honors_labels:
        used["metric"] |= {"namespace": used["metric"].pop("exported_namespace")}
        used["metric"] |= {"pod": used["metric"].pop("exported_pod")}
    needs, _ = read(idle, used)
    assert [(need.team, need.name, need.pods) for need in needs] == [("lab", "chat", 1)]
    assert read(idle) == ((), ["GPU820"])


def test_memory_of_their_own_is_read_on_a_shared_gpu() -> None:
    needs, codes = read(a_series(MEMORY, "a-0", 9000, 9000), a_series(MEMORY, "b-0", 2000, 2000))
    assert [(need.memory_mib, need.compute, need.isolation) for need in needs] == [
        (10800, Fraction(0), Isolation.NONE),
        (2400, Fraction(0), Isolation.NONE),
    ]
    assert codes == ["GPU826"]


def test_gpu825_pods_that_have_more_than_their_gpu_together_are_not_measured_one_by_one() -> None:
    """An A100 80 GB has 81,920 MiB."""

    def two(most: int) -> tuple[object, list[str]]:
        needs, codes = read(a_series(MEMORY, "a-0", 9000, 9000), a_series(MEMORY, "b-0", most, most))
        return [need.name for need in needs], codes

    assert two(81_920 - 9000) == (["a", "b"], ["GPU826"])
    assert two(81_921 - 9000) == ([], ["GPU825"])


def test_gpu826_activity_that_is_zero_throughout_is_told() -> None:
    (need,), found = from_files({"use.json": an_answer(on_1g(MEMORY, "a-0", 4000, 4000), on_1g(ENGINE, "a-0", 0, 0))})
    assert need.compute == 0
    assert [item.finding.message for item in found] == ["1 pod with memory in use, and with compute in no sample"]


def test_gpu826_an_instance_beside_one_of_another_size_counts_whole() -> None:
    large = a_series(MEMORY, "b-0", 9000, profile="3g.40gb", instance="1")
    use = a_series(ENGINE, "b-0", 0.33, profile="3g.40gb", instance="1")
    needs, codes = read(large, use, on_1g(MEMORY, "a-0", 4000), on_1g(ENGINE, "a-0", 0.1))
    assert ([need.compute for need in needs], codes) == ([Fraction(1, 7), Fraction(3, 7)], ["GPU826"])


def test_gpu826_an_instance_beside_an_idle_one_of_another_size_counts_whole() -> None:
    idle = on_1g(MEMORY, "x", 12)
    idle["metric"] |= {"exported_pod": "", "pod": "nvidia-dcgm-exporter-x2x4z"}
    (need,), codes = read(
        a_series(MEMORY, "b-0", 9000, profile="3g.40gb", instance="1"),
        a_series(ENGINE, "b-0", 0.33, profile="3g.40gb", instance="1"),
        idle,
    )
    assert (need.name, need.compute, codes) == ("b", Fraction(3, 7), ["GPU826"])


def test_namespaces_are_those_of_tenants() -> None:
    plan = a_platform(
        pool("a", "mig: {instances: {1g.10gb: 7}}"), tenant("ml", "pool: a, guaranteed: 1", namespaces="lab")
    )
    (need,), codes = read(on_1g(MEMORY, "chat-0", 4000), on_1g(ENGINE, "chat-0", 0.1), plan=plan)
    assert (need.team, need.today, codes) == ("ml", ("a", "1g.10gb"), [])
    other = a_platform(pool("a"), tenant("ml", "pool: a, guaranteed: 1"))
    assert read(on_1g(MEMORY, "chat-0", 4000), on_1g(ENGINE, "chat-0", 0.1), plan=other)[1] == ["GPU822"]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300", "x", None, []])
def test_gpu826_samples_that_are_no_amounts_are_left_out(value: object) -> None:
    series = on_1g(MEMORY, "chat-0", 4000)
    series["values"].append([1800, value])
    needs, codes = read(series, on_1g(ENGINE, "chat-0", 0.1))
    assert ([need.memory_mib for need in needs], codes) == ([4800], ["GPU826"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"status": "success"', "is not JSON"),
        (b'{"status": "error", "error": "timed out"}', "has an error in place of an answer: `timed out`"),
        (an_answer(kind="vector"), "is a `vector`, and no matrix"),
        (an_answer(), "has no use of GPUs by pods"),
        (b'{"status":' + b"[" * 200_000, "is not JSON"),
    ],
)
def test_gpu820_answers_that_say_nothing(content: bytes, words: str) -> None:
    needs, (found,) = from_files({"use.json": content})
    assert (needs, found.code, found.finding.message) == ((), "GPU820", f"`use.json` {words}")


def test_a_table_says_the_same() -> None:
    head = f"timestamp,namespace,pod,UUID,GPU_I_ID,GPU_I_PROFILE,modelName,{MEMORY},{ENGINE}\n"
    sample = f"lab,chat-0,GPU-1,7,1g.10gb,{A100},5000,0.5\n"
    rows = f"2026-01-01T00:00:00Z,{sample}900,{sample}"
    (need,), found = from_files({"use.csv": (head + rows).encode()})
    assert (need.name, need.pods, need.memory_mib, need.compute, found) == ("chat", 1, 6000, Fraction(3, 35), ())


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        ("chat-7d9f8b6c5-x2x4z", "chat"),
        ("exporter-x2x4z", "exporter"),
        ("nb-anna-0", "nb-anna"),
        ("train-worker-3", "train-worker"),
        ("report-28912345-x2x4z", "report"),
        ("redis", "redis"),
    ],
)
def test_a_workload_is_its_pods_names_without_what_controllers_add(pod: str, workload: str) -> None:
    assert workload_of(pod) == workload


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(st.none() | st.floats() | st.text(max_size=4), lambda part: st.lists(part, max_size=3), max_leaves=6)
)
def test_no_answer_makes_it_fall(value: object) -> None:
    series = on_1g(MEMORY, "chat-0", 1)
    from_files({"a.json": an_answer({**series, "values": value}), "b.json": an_answer({"metric": value}, value)})


def test_prometheus_takes_the_query(tmp_path: Path) -> None:
    query = queries().partition("query='")[2].rpartition("'")[0]
    rules = {"groups": [{"name": "use", "rules": [{"record": "use", "expr": query}]}]}
    (tmp_path / "rules.yaml").write_text(json.dumps(rules))
    promtool("check", "rules", tmp_path / "rules.yaml")
