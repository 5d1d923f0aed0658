"""Who waits, for what and for how long, with each scheduler: its series as it shapes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.compiler.backends.monitoring.watched import (
    ALLOCATABLE,
    CLAIMS,
    FRACTIONS,
    KUEUE,
    NODES,
    a_cluster,
    a_pod,
    alerts,
    assert_all_samples,
    assert_fires,
    assert_silent,
    objects,
    rules,
)
from tests.plans import a_plan

LARGE, SMALL = "nvidia_com_mig_3g_40gb", "nvidia_com_mig_2g_20gb"
QUEUED = a_cluster(KUEUE)

DEPTH = "tenant:gpuplan_waiting:count"
LONGEST = "tenant:gpuplan_longest_wait_seconds:max"
MEDIAN, NEARLY_ALL = "tenant:gpuplan_wait_seconds:p50", "tenant:gpuplan_wait_seconds:p95"
OF_CLUSTER, OF_TENANTS = "resource:gpuplan_waiting_units:sum", "tenant:gpuplan_waiting_units:sum"
HAD, HAD_OF_POOL = "tenant:gpuplan_requested_units:sum", "pool:gpuplan_requested_units:sum"


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_rules_read_no_series_of_another_scheduler(kind: str) -> None:
    """A trait that two schedulers share must not bring one of them the rules of the other."""
    others = {traits.queue_series.partition("_")[0] for name, traits in SCHEDULERS.items() if name != kind} - {""}
    plan = a_plan(a_cluster(f"  scheduler: {{kind: {kind}}}\n"))
    read = " ".join(str(rule["expr"]) for rule in rules(plan))
    assert set(re.findall(rf"\b(?:{'|'.join(sorted(others))})_\w+", read)) == set()


# --- Pods that have no node --------------------------------------------------------------------------------------


def a_waiting_pod(namespace: str, pod: str, resource: str, count: int, created: int) -> dict[str, str]:
    return a_pod(namespace, pod, "", resource, count, "Pending") | {
        f'kube_pod_created{{namespace="{namespace}",pod="{pod}",uid="{pod}"}}': f"{created}+0x200"
    }


def a_started_pod(namespace: str, pod: str, node: str, created: int, scheduled: int) -> dict[str, str]:
    of = f'namespace="{namespace}",pod="{pod}",uid="{pod}"'
    return {
        f"kube_pod_created{{{of}}}": f"{created}+0x200",
        f"kube_pod_status_scheduled_time{{{of}}}": f"{scheduled}+0x200",
        f'kube_pod_info{{{of},node="{node}",created_by_kind="Job"}}': "1x200",
    }


def test_pods_of_a_tenant_that_no_node_was_found_for(tmp_path: Path) -> None:
    """One that runs, one of nobody and one that wants no GPU are not among them."""
    series = (
        NODES
        | a_waiting_pod("search", "a", LARGE, 2, 60)
        | a_waiting_pod("search-dev", "b", SMALL, 1, 300)
        | a_waiting_pod("of-nobody", "c", LARGE, 1, 0)
        | a_waiting_pod("search", "d", "cpu", 1, 0)
        | a_pod("search", "e", "mixed-1", LARGE, 1)
    )
    expected = {
        DEPTH: {f'{DEPTH}{{tenant="search",state="unschedulable"}}': 2.0},
        LONGEST: {f'{LONGEST}{{tenant="search"}}': 540.0},
        OF_CLUSTER: {f'{OF_CLUSTER}{{resource="{LARGE}"}}': 3.0, f'{OF_CLUSTER}{{resource="{SMALL}"}}': 1.0},
        OF_TENANTS: {
            f'{OF_TENANTS}{{tenant="search",resource="{LARGE}"}}': 2.0,
            f'{OF_TENANTS}{{tenant="search",resource="{SMALL}"}}': 1.0,
        },
    }
    assert_all_samples(tmp_path, a_cluster(), series, expected)


def test_how_long_pods_had_waited_that_were_placed_within_the_hour(tmp_path: Path) -> None:
    """On the nodes of pools: a pod elsewhere has not waited for GPUs. One was placed before that hour."""
    series = (
        NODES
        | a_started_pod("search", "a", "mixed-1", 3600, 3610)
        | a_started_pod("search", "b", "mixed-1", 3600, 3630)
        | a_started_pod("search-dev", "c", "shared-1", 3600, 3690)
        | a_started_pod("search-dev", "g", "shared-1", 3600, 3690)
        | a_started_pod("search", "d", "of-no-pool", 3600, 4200)
        | a_started_pod("of-nobody", "e", "mixed-1", 3600, 4200)
        | a_started_pod("search", "f", "mixed-1", 0, 1200)
    )
    expected = {MEDIAN: {f'{MEDIAN}{{tenant="search"}}': 60.0}, NEARLY_ALL: {f'{NEARLY_ALL}{{tenant="search"}}': 90.0}}
    assert_all_samples(tmp_path, a_cluster(), series, expected, minutes=90)


# --- Kueue -------------------------------------------------------------------------------------------------------

ROLE = 'replica_role="leader"'


def pending(active: int, inadmissible: int, queue: str = "search", role: str = ROLE) -> dict[str, str]:
    name = f'kueue_pending_workloads{{cluster_queue="{queue}",{role}'
    return {f'{name},status="active"}}': f"{active}+0x200", f'{name},status="inadmissible"}}': f"{inadmissible}+0x200"}


def pending_units(resource: str, count: int, queue: str = "search") -> dict[str, str]:
    labels = f'cluster_queue="{queue}",resource="{resource}",{ROLE}'
    return {f"kueue_cluster_queue_resource_pending{{{labels}}}": f"{count}+0x200"}


def a_gated_pod(namespace: str, pod: str, resource: str) -> dict[str, str]:
    """A pod that Kueue holds back: the API server says of it that it is not scheduled, and why."""
    reason = f'kube_pod_status_reason{{namespace="{namespace}",pod="{pod}",reason="SchedulingGated"}}'
    return a_waiting_pod(namespace, pod, resource, 1, 0) | {reason: "1x200"}


def test_workloads_that_wait_in_a_queue_of_kueue(tmp_path: Path) -> None:
    """Its Jobs are suspended and have no pods; gated pods are workloads already. A queue that is no tenant's is out."""
    series = (
        NODES
        | pending(3, 2)
        | pending(9, 9, queue="of-nobody")
        | a_gated_pod("search", "gated", LARGE)
        | a_waiting_pod("search", "admitted", LARGE, 1, 0)
    )
    name = f'{DEPTH}{{tenant="search",state='
    expected = {f'{name}"active"}}': 3.0, f'{name}"inadmissible"}}': 2.0, f'{name}"unschedulable"}}': 1.0}
    assert_all_samples(tmp_path, QUEUED, series, {DEPTH: expected})


def test_units_that_wait_in_a_queue_of_kueue(tmp_path: Path) -> None:
    series = (
        NODES
        | pending_units("nvidia.com/mig-3g.40gb", 5)
        | pending_units("nvidia.com/mig-2g.20gb", 0)
        | pending_units("nvidia.com/gpu.shared", 2)
        | pending_units("nvidia.com/mig-3g.40gb", 4, queue="of-nobody")
        | a_gated_pod("search", "gated", LARGE)
        | a_waiting_pod("search", "admitted", SMALL, 1, 0)
    )
    shared = "nvidia_com_gpu_shared"
    expected = {
        OF_CLUSTER: {
            f'{OF_CLUSTER}{{resource="{LARGE}"}}': 9.0,
            f'{OF_CLUSTER}{{resource="{SMALL}"}}': 1.0,
            f'{OF_CLUSTER}{{resource="{shared}"}}': 2.0,
        },
        OF_TENANTS: {
            f'{OF_TENANTS}{{tenant="search",resource="{LARGE}"}}': 5.0,
            f'{OF_TENANTS}{{tenant="search",resource="{SMALL}"}}': 1.0,
            f'{OF_TENANTS}{{tenant="search",resource="{shared}"}}': 2.0,
        },
    }
    assert_all_samples(tmp_path, QUEUED, series, expected)


def test_what_gated_pods_want_is_known_where_kueue_does_not_sum_it_up(tmp_path: Path) -> None:
    series = NODES | pending(1, 0) | a_gated_pod("search", "gated", LARGE)
    assert_all_samples(tmp_path, QUEUED, series, {OF_CLUSTER: {f'{OF_CLUSTER}{{resource="{LARGE}"}}': 1.0}})


def test_a_release_of_kueue_that_sums_nothing_up_is_not_asked() -> None:
    old = a_cluster(KUEUE.replace("kueue}", "kueue, version: v0.17.1}"))
    assert not [rule for rule in rules(a_plan(old)) if "resource_pending" in rule["expr"]]
    assert [rule for rule in rules(a_plan(QUEUED)) if "resource_pending" in rule["expr"]]


def a_suspended_job(namespace: str, job: str, created: int, suspended: int = 1) -> dict[str, str]:
    of = f'namespace="{namespace}",job_name="{job}"'
    return {f"kube_job_created{{{of}}}": f"{created}+0x200", f"kube_job_status_suspended{{{of}}}": f"{suspended}+0x200"}


def test_the_job_that_kueue_has_suspended_longest(tmp_path: Path) -> None:
    series = (
        NODES
        | a_suspended_job("search", "a", 120)
        | a_suspended_job("search", "b", 300)
        | a_suspended_job("search", "runs", 0, suspended=0)
        | a_suspended_job("of-nobody", "c", 0)
        | a_gated_pod("search-dev", "d", LARGE)
    )
    assert_all_samples(tmp_path, QUEUED, series, {LONGEST: {f'{LONGEST}{{tenant="search"}}': 600.0}})
    jobs = {name: values for name, values in series.items() if "kube_job" in name}
    assert_all_samples(tmp_path, QUEUED, NODES | jobs, {LONGEST: {f'{LONGEST}{{tenant="search"}}': 480.0}})


def admitted(within: Mapping[str, int], queue: str = "search", priority: str = "high") -> dict[str, str]:
    """A histogram that grows by so many admissions a minute, cumulative by `le`."""
    labels = f'cluster_queue="{queue}",priority_class="{priority}",{ROLE}'
    name = "kueue_admission_wait_time_seconds_bucket"
    return {f'{name}{{{labels},le="{le}"}}': f"0+{count}x200" for le, count in within.items()}


def test_how_long_workloads_had_waited_that_kueue_admitted_within_the_hour(tmp_path: Path) -> None:
    """Of all priorities: of ten a minute five had waited for 10 s at most, and ten for 20 s."""
    series = (
        NODES
        | admitted({"10": 3, "20": 6, "+Inf": 6})
        | admitted({"10": 2, "20": 4, "+Inf": 4}, priority="low")
        | admitted({"10": 0, "20": 9, "+Inf": 9}, queue="of-nobody")
    )
    expected = {MEDIAN: {f'{MEDIAN}{{tenant="search"}}': 10.0}, NEARLY_ALL: {f'{NEARLY_ALL}{{tenant="search"}}': 19.0}}
    assert_all_samples(tmp_path, QUEUED, series, expected, minutes=90)


def test_where_kueue_admits_nothing_there_is_no_time(tmp_path: Path) -> None:
    series = NODES | admitted({"10": 0, "+Inf": 0})
    assert_all_samples(tmp_path, QUEUED, series, {MEDIAN: {}, NEARLY_ALL: {}}, minutes=90)


FULL = (
    a_pod("search", "a", "mixed-1", LARGE, 1)
    | a_pod("search", "b", "mixed-2", LARGE, 1)
    | a_pod("search", "c", "large-1", LARGE, 2)
)


def test_kueue_holds_work_back_for_large_devices_and_only_small_ones_are_free(tmp_path: Path) -> None:
    series = NODES | ALLOCATABLE | FULL | pending_units("nvidia.com/mig-3g.40gb", 2)
    assert_fires(tmp_path, "GpuFragmentation", series, f'resource="{LARGE}"', QUEUED)


def test_kueue_holds_work_back_for_large_devices_and_some_are_free(tmp_path: Path) -> None:
    series = NODES | ALLOCATABLE | pending_units("nvidia.com/mig-3g.40gb", 2)
    assert_silent(tmp_path, "GpuFragmentation", series, QUEUED)


def test_nobody_scrapes_kueue(tmp_path: Path) -> None:
    assert_fires(tmp_path, "GpuQueueMetricsAbsent", NODES, "", QUEUED)


def test_kueue_is_scraped(tmp_path: Path) -> None:
    assert_silent(tmp_path, "GpuQueueMetricsAbsent", NODES | pending(0, 0), QUEUED)


def test_a_cluster_without_queues_has_none_to_scrape() -> None:
    assert "GpuQueueMetricsAbsent" not in alerts(a_plan(a_cluster()))


# --- Kueue and claims --------------------------------------------------------------------------------------------


def test_claims_are_what_kueue_counts(tmp_path: Path) -> None:
    """Pods request no resource, and the exporter does not know whose a claimed device is."""
    counted = counted_of_claims()
    usage = f'cohort="gpuplan",cluster_queue="search",flavor="claimed",resource="{counted}",{ROLE}'
    series = {f"kueue_cluster_queue_resource_usage{{{usage}}}": "3x200"} | pending_units(counted, 4)
    resource = counted.translate(str.maketrans("./-", "___"))
    units = f'pool="claimed",unit="gpu",resource="{resource}"'
    expected = {
        HAD: {f'{HAD}{{tenant="search",{units}}}': 3.0},
        HAD_OF_POOL: {f"{HAD_OF_POOL}{{{units}}}": 3.0},
        OF_CLUSTER: {f'{OF_CLUSTER}{{resource="{resource}"}}': 4.0},
        OF_TENANTS: {f'{OF_TENANTS}{{tenant="search",resource="{resource}"}}': 4.0},
    }
    assert_all_samples(tmp_path, CLAIMS, series, expected)


def test_a_flavor_that_keeps_its_name_is_its_pool_s(tmp_path: Path) -> None:
    kept = CLAIMS.replace("sharing: {exclusive: {}}", "sharing: {exclusive: {}}\n  names: {resourceFlavor: h100.all}")
    assert kept != CLAIMS
    counted = counted_of_claims()
    usage = f'cohort="gpuplan",cluster_queue="search",flavor="h100.all",resource="{counted}",{ROLE}'
    series = {f"kueue_cluster_queue_resource_usage{{{usage}}}": "3x200"}
    units = f'pool="claimed",unit="gpu",resource="{counted.translate(str.maketrans("./-", "___"))}"'
    expected = {HAD: {f'{HAD}{{tenant="search",{units}}}': 3.0}, HAD_OF_POOL: {f"{HAD_OF_POOL}{{{units}}}": 3.0}}
    assert_all_samples(tmp_path, kept, series, expected)


def counted_of_claims() -> str:
    (found,) = [rule for rule in rules(a_plan(CLAIMS)) if rule.get("record") == "pool:gpuplan_counted:info"]
    return str(found["labels"]["counted"])


PLAIN_CLAIMS = CLAIMS.replace("  scheduler: {kind: kueue}\n", "")


def test_a_pod_that_waits_for_a_claim(tmp_path: Path) -> None:
    """kube-state-metrics 2.20 says which pods have claims, and not of which devices."""
    of = 'namespace="search",pod="a",uid="a"'
    series = {
        f"kube_pod_status_unschedulable{{{of}}}": "1x200",
        f"kube_pod_created{{{of}}}": "60+0x200",
        f'kube_pod_resourceclaim_info{{{of},claim_name="gpu",resourceclaim_template_name="gpuplan-x"}}': "1x200",
    }
    expected = {
        DEPTH: {f'{DEPTH}{{tenant="search",state="unschedulable"}}': 1.0},
        LONGEST: {f'{LONGEST}{{tenant="search"}}': 540.0},
    }
    assert_all_samples(tmp_path, PLAIN_CLAIMS, series, expected)


@pytest.mark.parametrize("text", [CLAIMS, PLAIN_CLAIMS], ids=["kueue", "plain"])
def test_what_needs_the_pod_of_a_device_is_left_out_with_claims(text: str) -> None:
    found = {rule.get("record") or rule["alert"] for rule in rules(a_plan(text))}

    assert not {name for name in found if name.startswith(("tenant:gpuplan_engine", "tenant:gpuplan_memory"))}
    assert "GpuAllocatedIdle" not in found
    assert "pool:gpuplan_engine_active:avg" in found


# --- KAI-Scheduler -----------------------------------------------------------------------------------------------


def allocated(queue: str, gpus: float) -> dict[str, str]:
    """Since 0.16 there are two more labels; Prometheus adds the pod of the queue controller."""
    labels = f'queue_name="{queue}",queue_metadata_name="{queue}",queue_display_name="search",namespace="kai-scheduler"'
    return {f"kai_queue_allocated_gpus{{{labels}}}": f"{gpus}+0x200"}


FRACTION_NODES = {
    'kube_node_labels{node="gpu-1",label_gpuplan_dev_pool="fractions"}': "1x200",
    'kube_node_labels{node="whole-1",label_gpuplan_dev_pool="whole"}': "1x200",
    'kube_node_status_allocatable{node="gpu-1",resource="nvidia_com_gpu",unit="integer"}': "4x200",
    'kube_node_status_allocatable{node="whole-1",resource="nvidia_com_gpu",unit="integer"}': "4x200",
}
RESERVED = a_pod("kai-resource-reservation", "gpu-reservation-gpu-1-x", "gpu-1", "nvidia_com_gpu", 1)
FRACTION, WHOLE = 'unit="fraction",resource="nvidia_com_gpu"', 'unit="gpu",resource="nvidia_com_gpu"'


def test_fractions_are_what_kai_says_that_queues_have(tmp_path: Path) -> None:
    """Pods of fractions request nothing. Whole GPUs of another pool are counted by pods, there as everywhere."""
    series = (
        FRACTION_NODES
        | RESERVED
        | a_pod("search", "whole", "whole-1", "nvidia_com_gpu", 2)
        | allocated("search-fractions", 0.75)
        | allocated("search-whole", 2)
        | allocated("of-nobody", 3)
    )
    expected = {
        HAD: {
            f'{HAD}{{tenant="search",pool="fractions",{FRACTION}}}': 0.75,
            f'{HAD}{{tenant="search",pool="whole",{WHOLE}}}': 2.0,
        },
        "pool:gpuplan_free_units:sum": {
            f'pool:gpuplan_free_units:sum{{pool="fractions",{FRACTION}}}': 3.25,
            f'pool:gpuplan_free_units:sum{{pool="whole",{WHOLE}}}': 2.0,
        },
    }
    assert_all_samples(tmp_path, FRACTIONS, series, expected)


def test_where_nobody_scrapes_kai_gpus_are_taken_that_fractions_are_cut_from(tmp_path: Path) -> None:
    expected = {HAD: {}, HAD_OF_POOL: {f'{HAD_OF_POOL}{{pool="fractions",{FRACTION}}}': 1.0}}
    assert_all_samples(tmp_path, FRACTIONS, FRACTION_NODES | RESERVED, expected)


def test_a_pod_of_a_fraction_waits(tmp_path: Path) -> None:
    """It requests nothing: what it wants is in an annotation, which its scheduler alone reads."""
    of = 'namespace="search",pod="a",uid="a"'
    series = FRACTION_NODES | {
        f"kube_pod_status_unschedulable{{{of}}}": "1x200",
        f"kube_pod_created{{{of}}}": "60+0x200",
        f'kube_pod_scheduler{{{of},name="kai-scheduler"}}': "1x200",
        'kube_pod_status_unschedulable{namespace="search",pod="plain",uid="b"}': "1x200",
        'kube_pod_scheduler{namespace="search",pod="plain",uid="b",name="default-scheduler"}': "1x200",
    }
    expected = {
        DEPTH: {f'{DEPTH}{{tenant="search",state="unschedulable"}}': 1.0},
        LONGEST: {f'{LONGEST}{{tenant="search"}}': 540.0},
    }
    assert_all_samples(tmp_path, FRACTIONS, series, expected)


def test_how_long_pods_of_fractions_had_waited(tmp_path: Path) -> None:
    series = FRACTION_NODES | a_started_pod("search", "a", "gpu-1", 3600, 3645)
    assert_all_samples(tmp_path, FRACTIONS, series, {MEDIAN: {f'{MEDIAN}{{tenant="search"}}': 45.0}}, minutes=90)


def test_a_pod_that_holds_a_gpu_for_fractions_is_not_called_idle(tmp_path: Path) -> None:
    labels = 'node="gpu-1",gpu="0",exported_namespace="{}",exported_pod="a"'
    idle = {f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels.format('kai-resource-reservation')}}}": "0x200"}
    assert_silent(tmp_path, "GpuAllocatedIdle", idle, FRACTIONS, 125)
    other = {f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels.format('search')}}}": "0x200"}
    expected = 'exported_namespace="search",exported_pod="a",node="gpu-1"'
    assert_fires(tmp_path, "GpuAllocatedIdle", other, expected, FRACTIONS, 125)


def test_a_queue_of_others_is_not_counted_beside_them() -> None:
    """In KAI-Scheduler it has all that these have."""
    child = "---\napiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {name: part}\nspec:\n  parent: search\n"
    quota = "  namespaces: [part]\n  quotas: [{pool: whole, guaranteed: 1}]\n"
    found = [
        rule for rule in rules(a_plan(FRACTIONS + child + quota)) if rule.get("record") == "queue:gpuplan_tenant:info"
    ]

    assert [rule["labels"] for rule in found] == [
        {"pool": "whole", "queue": "part-whole", "tenant": "part"},
        {"pool": "fractions", "queue": "search-fractions", "tenant": "search"},
        {"pool": "whole", "queue": "search-whole", "tenant": "search"},
    ]


def test_nobody_scrapes_kai(tmp_path: Path) -> None:
    assert_fires(tmp_path, "GpuQueueMetricsAbsent", FRACTION_NODES, "", FRACTIONS)


# --- Who scrapes -------------------------------------------------------------------------------------------------


def test_a_prometheus_that_selects_by_label_finds_kueue() -> None:
    """As its own ServiceMonitor, which has no labels to select it by."""
    body = objects(a_plan(a_cluster(KUEUE, "{labels: {release: kps}}")), "ServiceMonitor")["gpuplan-kueue"]

    assert (body["metadata"]["namespace"], body["metadata"]["labels"]) == ("monitoring", {"release": "kps"})
    assert body["spec"]["namespaceSelector"] == {"matchNames": ["kueue-system"]}
    assert body["spec"]["selector"] == {
        "matchLabels": {"app.kubernetes.io/component": "metrics-service", "app.kubernetes.io/name": "kueue"}
    }
    assert body["spec"]["endpoints"][0]["scheme"] == "https"


def test_the_monitor_of_kueues_chart_is_enough_elsewhere() -> None:
    assert objects(a_plan(QUEUED), "ServiceMonitor") == {}


def test_prometheus_finds_the_queue_controller_of_kai() -> None:
    """Its operator makes a monitor only together with a Prometheus of its own."""
    body = objects(a_plan(FRACTIONS), "ServiceMonitor")["gpuplan-kai-queues"]

    assert body["spec"] == {
        "endpoints": [{"port": "metrics", "path": "/metrics"}],
        "namespaceSelector": {"matchNames": ["kai-scheduler"]},
        "selector": {"matchLabels": {"app": "queue-controller"}},
    }
