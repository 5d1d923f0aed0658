"""Kueue's controller on `prod`: what it admits, lends, takes back and refuses."""

from __future__ import annotations

import itertools
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from gpuplan.compiler.backends import kueue
from gpuplan.compiler.backends.monitoring.rules import sanitized
from gpuplan.compiler.base.diagnostics import Origin, SourceFile, WholeFile
from gpuplan.compiler.catalog.charts import find_scheduler_chart
from gpuplan.compiler.catalog.frameworks import frameworks
from gpuplan.compiler.manifests import File, Manifest
from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan
from gpuplan.features.components.checks.queueing import quotas_refused_by_kueue
from tests.cli.runs import run
from tests.cluster import nodes
from tests.cluster.api import Api, Refused
from tests.cluster.control_plane import ControlPlane
from tests.cluster.example import REPOSITORY, ExampleCluster
from tests.cluster.kueue_configurations import lost, verdict
from tests.cluster.kueue_controller import API_VERSION, kueue_controller, kueue_log, kueue_metrics, kueue_release
from tests.cluster.kueue_jobs import PRIORITY_CLASS, Job, Queue, queues
from tests.cluster.outcomes import in_the_end
from tests.cluster.processes import until
from tests.cluster.programs import need_go
from tests.compiler.backends.monitoring.test_upstream import table
from tests.plans import a_cluster, a_plan
from tests.platforms import document, pool as a_pool, tenant
from tests.promtool import promtool

Record: TypeAlias = Callable[[str, object, object], None]

CHECKS = REPOSITORY / "tests" / "checks"
BORROWING = """\
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: research}
spec: {quotas: [{pool: a100-shared, guaranteed: 24, limit: none}]}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: development}
spec: {quotas: [{pool: a100-shared, guaranteed: 24, lendable: 12}]}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: batch-inference}
spec: {quotas: [{pool: a100-shared, guaranteed: 12, limit: 16}]}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: training}
spec: {preempts: false}
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: evaluation, $patch: delete}
"""
"""On top of `prod`: tenants that borrow without a bound and with one, one that keeps half, and a class that waits."""


@pytest.fixture(scope="module")
def prod() -> Iterator[ExampleCluster]:
    """The example cluster with its Kueue, on a control plane of its own: it holds what other tests want to run."""
    need_go()
    with _start(REPOSITORY) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def borrowing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleCluster]:
    """`prod` with tenants that lend and borrow."""
    need_go()
    repository = tmp_path_factory.mktemp("borrowing")
    for name in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / name, repository / name)
    (repository / "overlays" / "prod" / "borrowing.yaml").write_text(BORROWING, encoding="utf-8")
    built = run("build", "--cluster", "prod", cwd=repository)
    assert built.code == 0, built.err
    with _start(repository) as cluster:
        yield cluster


def _start(repository: Path) -> ExampleCluster:
    configuration = repository / "out" / "prod" / "scheduling" / "kueue-configuration.yaml"
    return ExampleCluster.start("prod", repository, partial(kueue_controller, configuration=configuration))


def _cases(*rules: str) -> list[Path]:
    """The cases of rules, as far as their cluster has Kueue."""
    cases = [path for rule in rules for path in sorted((CHECKS / rule).glob("*.yaml"))]
    return [path for path in cases if "kind: kueue" in path.read_text(encoding="utf-8")]


def _id(case: Path) -> str:
    return f"{case.parent.name}/{case.stem}"


def test_queues_become_active(prod: ExampleCluster, record: Record) -> None:
    bodies = [body for folder in prod.folders for body in folder.objects]
    paths = [prod.api.path_of(body) for body in bodies if body["kind"] in {"ClusterQueue", "LocalQueue"}]
    record("prod: queues that Kueue says are active", len(paths), in_the_end(len(paths), _active, prod.api, paths))


def test_own_work_is_admitted(prod: ExampleCluster, record: Record) -> None:
    for queue in queues(prod):
        if own := _own_units(prod, queue):
            record(f"prod: {queue}: units of its own workloads", own, in_the_end(own, queue.used))


def test_work_is_admitted_up_to_the_guarantee(prod: ExampleCluster, record: Record) -> None:
    """All queues at once, so that none has what is another's; then all pods find their place."""
    pools = {pool["name"]: nodes.names(pool) for pool in prod.plan["pools"]}
    with ExitStack() as running:
        filled = [(queue, running.enter_context(_filled(prod, queue, _guaranteed(queue)))) for queue in queues(prod)]
        for queue, jobs in filled:
            planned = _guaranteed(queue), 1
            observed = in_the_end(planned, _used_and_waiting, queue, jobs)
            record(f"prod: {queue}: units admitted, Jobs that wait", planned, observed)
        for queue, jobs in filled:
            pods = sum(job.size for job in jobs[:-1])
            observed_pods = in_the_end(pods, _pods_on, pools[queue.quota["pool"]], jobs)
            record(f"prod: {queue}: pods of these on nodes of the pool", pods, observed_pods)


def test_flavor_reaches_pods(prod: ExampleCluster, record: Record) -> None:
    by_pool = {queue.quota["pool"]: queue for queue in queues(prod)}
    for pool in prod.plan["pools"]:
        taints = [f"{taint['key']}={taint['value']}:{taint['effect']}" for taint in pool["taints"]]
        planned = f"{POOL_LABEL}={pool['name']}; {', '.join(taints)}"
        with by_pool[pool["name"]].running(1) as [job]:
            observed = in_the_end(planned, _placement, job)
        record(f"prod: {pool['name']}: selector and tolerations of a Job that has none", planned, observed)


def test_class_gives_its_priority(prod: ExampleCluster, record: Record) -> None:
    by_class = {name: queue for queue in queues(prod) for name in queue.tenant["priority_classes"]}
    for priority in prod.plan["priority_classes"]:
        with by_class[priority["name"]].running(1, priority_class=priority["name"]) as [job]:
            observed = in_the_end(priority["value"], _priority, job)
        record(f"prod: priority of work of class {priority['name']}", priority["value"], observed)


@pytest.mark.parametrize("name", ["prod", "borrowing"])
def test_class_evicts_within_its_queue(name: str, request: pytest.FixtureRequest, record: Record) -> None:
    """All pairs of classes that a tenant has; on `borrowing` the one does not preempt that does on `prod`."""
    cluster: ExampleCluster = request.getfixturevalue(name)
    for queue in queues(cluster):
        for comer, runner in itertools.permutations(queue.tenant["priority_classes"], 2):
            evicts = _may_evict(cluster, queue, comer, runner)
            planned = ("admitted", "evicted") if evicts else ("waiting", "admitted")
            observed = _challenge(cluster, queue, comer, runner, planned)
            record(f"{name}: {queue}: {comer} comes where {runner} runs", planned, observed)


def _challenge(
    cluster: ExampleCluster, queue: Queue, comer: str, runner: str, planned: tuple[str, str]
) -> tuple[str, str]:
    """What becomes of work of one class where work of another has all that there is, and of that."""
    room = _room(cluster, queue, _guaranteed(queue))
    with queue.running(room, priority_class=runner) as [running]:
        until(lambda: running.state() == "admitted", f"{queue} is full", seconds=60)
        with queue.running(1, priority_class=comer) as [coming]:
            return in_the_end(planned, lambda: (coming.state(), running.state()))


WAITING, WAITED_FOR = "tenant:gpuplan_waiting:count", "tenant:gpuplan_waiting_units:sum"


def test_rules_make_what_waits_of_its_own_metrics(prod: ExampleCluster, record: Record, tmp_path: Path) -> None:
    """Its series as they are scraped, to the rules as they are written."""
    queue = queues(prod)[0]
    tenant, resource = queue.tenant["name"], sanitized(queue.quota["resource"])
    with _filled(prod, queue, _guaranteed(queue)) as jobs:
        in_the_end((_guaranteed(queue), 1), _used_and_waiting, queue, jobs)
        until(lambda: _samples(prod, "kueue_cluster_queue_resource_pending")[tenant] == 1, "it is in the metrics")
        scraped = kueue_metrics(prod.control_plane)
    document = {
        "rule_files": [str(path) for path in sorted((prod.out / "monitoring" / "rules").glob("gpuplan-*.yaml"))],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": series, "values": f"{value}+0x20"}
                    for series, value in (line.rsplit(" ", 1) for line in scraped.splitlines())
                    if series.startswith("kueue_") and value not in ("NaN", "+Inf")
                ],
                "promql_expr_test": [
                    _test(f'sum by (tenant) ({WAITING}{{tenant="{tenant}"}})', f'{{tenant="{tenant}"}}'),
                    _test(
                        f'{WAITED_FOR}{{tenant="{tenant}"}}', f'{WAITED_FOR}{{tenant="{tenant}",resource="{resource}"}}'
                    ),
                ],
            }
        ],
    }
    test = tmp_path / "test.yaml"
    test.write_text(yaml.safe_dump(document), encoding="utf-8")
    record(f"prod: {queue}: what the rules say that waits", "SUCCESS", promtool("test", "rules", test).split()[-1])


def test_its_metrics_have_the_labels_that_are_read(prod: ExampleCluster, record: Record) -> None:
    with queues(prod)[0].running(1) as [job]:
        in_the_end("admitted", job.state)
        scraped = kueue_metrics(prod.control_plane)
    rows = {name: row for name, row in table().items() if name.startswith("kueue_")}
    for name, row in rows.items():
        found = {label for series in _series(scraped, name) for label in re.findall(r'(\w+)="', series)}
        record(f"prod: labels of {name}", sorted(row["labels"]), sorted(found - {"le"}))


def _test(expr: str, labels: str) -> dict[str, Any]:
    return {"expr": expr, "eval_time": "10m", "exp_samples": [{"labels": labels, "value": 1}]}


def _samples(cluster: ExampleCluster, name: str) -> Mapping[str, float]:
    """The values of a metric, summed up by queue."""
    found: Counter[str] = Counter()
    for line in _series(kueue_metrics(cluster.control_plane), name):
        queue = re.search(r'cluster_queue="([^"]+)"', line)
        found[queue[1] if queue else ""] += float(line.rsplit(" ", 1)[1])  # type: ignore[assignment] # of floats
    return found


def _series(scraped: str, name: str) -> list[str]:
    return [line for line in scraped.splitlines() if line.startswith(f"{name}{{")]


FOREIGN = "priority class production-inference is not open to tenant research"


def test_label_of_another_tenants_class_is_refused(prod: ExampleCluster, record: Record) -> None:
    """Whoever writes it is told, at once and of a Job that waits."""
    with pytest.raises(Refused) as made, _queue_of(prod, "research").running(1, priority_class="production-inference"):
        pass
    with _queue_of(prod, "research").running(1, local_queue="none") as [job], pytest.raises(Refused) as changed:
        prod.api.patch(job.path, {"metadata": {"labels": {PRIORITY_CLASS: "production-inference"}}})
    for what, refused in (("makes a Job with", made), ("gives a Job that waits", changed)):
        observed = FOREIGN if FOREIGN in refused.value.message else refused.value.message
        record(f"prod: research {what} the class of production-inference in the label", FOREIGN, observed)


def test_pods_of_another_tenants_class_are_never_admitted(prod: ExampleCluster, record: Record) -> None:
    """Kueue tells nobody but its log that admission does not let it make the Workload; the Job says nothing."""
    research = _queue_of(prod, "research")
    with research.running(1, priority_class="production-inference", is_labelled=False) as [job]:
        observed = in_the_end(FOREIGN, _logged, FOREIGN, prod.control_plane, job)
        assert job.is_suspended
        assert job.workload() is None
        assert FOREIGN not in " ".join(job.events())
    record("prod: pods of a Job of research have the class of production-inference", FOREIGN, observed)


def test_queue_that_does_not_exist_is_named(prod: ExampleCluster, record: Record) -> None:
    planned = "LocalQueue none doesn't exist"
    with _queue_of(prod, "research").running(1, local_queue="none") as [job]:
        observed = in_the_end(planned, job.why_it_waits)
    record("prod: a Workload of research in a queue that does not exist", planned, observed)


def test_queue_of_another_tenant_takes_nothing(prod: ExampleCluster, record: Record) -> None:
    """Anybody may make a LocalQueue; which namespaces it takes work from says the ClusterQueue."""
    queue = _queue_of(prod, "development")
    theft = {
        "apiVersion": API_VERSION,
        "kind": "LocalQueue",
        "metadata": {"name": "theft", "namespace": queue.namespace},
        "spec": {"clusterQueue": "research"},
    }
    path = prod.api.path_of(prod.api.create(theft))
    try:
        with queue.running(1, local_queue="theft") as [job]:
            planned = "waiting", "workload namespace doesn't match ClusterQueue selector"
            observed = in_the_end(planned, lambda: (job.state(), job.why_it_waits()))
            assert job.is_suspended
    finally:
        prod.api.delete(path)
    record("prod: development makes a LocalQueue to the queue of research", planned, observed)


@pytest.mark.parametrize("tenant", ["research", "batch-inference"])
def test_idle_units_are_borrowed_up_to_the_limit(borrowing: ExampleCluster, tenant: str, record: Record) -> None:
    queue = _queue_of(borrowing, tenant)
    planned = _most(borrowing, queue), 1
    with _filled(borrowing, queue, planned[0]) as jobs:
        observed = in_the_end(planned, _used_and_waiting, queue, jobs)
    record(f"borrowing: {queue}: units admitted, Jobs that wait", planned, observed)


def test_lender_takes_back(borrowing: ExampleCluster, record: Record) -> None:
    """It evicts for what it lent and for no more: the borrower keeps what others lend, and what is nobody's.

    Which Jobs have to go is open where they were admitted in the same second, so that they are all alike.
    """
    lender, borrower = _queue_of(borrowing, "development"), _queue_of(borrowing, "research")
    lent, most = lender.quota["lendable"], _most(borrowing, borrower)
    planned = _guaranteed(lender), most - lent
    with borrower.running(*[lent] * (_room(borrowing, borrower, most) // lent)) as jobs:
        until(lambda: borrower.used() == most, f"{borrower} has borrowed all that is idle", seconds=60)
        with lender.running(_guaranteed(lender)):
            observed = in_the_end(planned, lambda: (lender.used(), borrower.used()))
            evicted = sum(job.size for job in jobs if job.state() == "evicted")
    record("borrowing: units of development and of research when development comes", planned, observed)
    record("borrowing: units of the Jobs of research that are evicted for it", lent, evicted)


@pytest.mark.parametrize("case", _cases("GPU541", "GPU542", "GPU543", "GPU544"), ids=_id)
def test_objects_that_checks_refuse_are_refused(prod: ExampleCluster, case: Path, record: Record) -> None:
    """The objects of a rule's case, written in spite of the rule."""
    rendered = kueue.render(a_plan(case.read_text(encoding="utf-8")))
    bodies = [found.body for found in rendered if isinstance(found, Manifest)]
    own = [body for body in bodies if body["apiVersion"] == API_VERSION and "namespace" not in body["metadata"]]
    renamed = [{**body, "metadata": {"name": f"case-{body['metadata']['name']}"}} for body in own]
    record(f"Kueue: objects of {_id(case)}", _verdict(case), _verdict_on(prod.api, renamed))


@pytest.mark.parametrize("name", ["fail-limits", "ok-limits"])
def test_quotas_by_hand_that_checks_refuse_are_refused(prod: ExampleCluster, name: str, record: Record) -> None:
    """Each object of the rule's cases by itself."""
    file = CHECKS / "GPU696" / name / "overlays" / "test" / "kustomize" / "queues" / "queue.yaml"
    for body in yaml.safe_load_all(file.read_text(encoding="utf-8")):
        found = Object(Origin(WholeFile(SourceFile(file.name, ""))), body, file.name, "queues")
        planned = "refused" if list(quotas_refused_by_kueue.find(HandFiles(objects=(found,)))) else "taken"
        observed = _verdict_on(prod.api, [body])
        record(f"Kueue: {found.title} of GPU696/{name}", planned, observed)


def test_a_queue_without_a_selector_admits_nothing(prod: ExampleCluster, record: Record) -> None:
    """GPU637; the API server takes it."""
    file = CHECKS / "GPU637" / "fail-no-selector" / "overlays" / "test" / "kustomize" / "queues" / "queue.yaml"
    selectorless = next(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    assert not selectorless["spec"].get("namespaceSelector")
    queue = _queue_of(prod, "development")
    for group in selectorless["spec"]["resourceGroups"]:
        group["flavors"][0]["name"] = queue.quota["pool"]
    local = {
        "apiVersion": API_VERSION,
        "kind": "LocalQueue",
        "metadata": {"name": "selectorless", "namespace": queue.namespace},
        "spec": {"clusterQueue": selectorless["metadata"]["name"]},
    }
    paths = [prod.api.path_of(prod.api.create(body)) for body in (selectorless, local)]
    try:
        with queue.running(1, local_queue="selectorless") as [job]:
            planned = "waiting", "workload namespace doesn't match ClusterQueue selector"
            observed = in_the_end(planned, lambda: (job.state(), job.why_it_waits()))
    finally:
        for path in reversed(paths):
            prod.api.delete(path)
    record("prod: work in a ClusterQueue without a namespaceSelector", planned, observed)


@pytest.mark.parametrize("case", _cases("GPU548"), ids=_id)
def test_configuration_that_checks_refuse_is_refused(case: Path, record: Record, tmp_path: Path) -> None:
    found = verdict(_written(a_plan(case.read_text(encoding="utf-8"))), tmp_path)
    record(f"Kueue: Configuration of {_id(case)}", _verdict(case), str(found))


LAB = a_pool("a", "exclusive: {}", nodes="count: 2, gpusPerNode: 8, cpu: '64', memory: 512Gi")
QUOTA = "pool: a, guaranteed: 8"
GANG = document("Workload", "train", "tenant: lab, pool: a, image: example.com/train:1, training: {pods: 2, gang: 2}")
FRAMEWORKS = [found.kind for found in frameworks().values() if not found.always]
CLAIMS = a_pool("a", "mig: {instances: {1g.10gb: 7}}", "allocation: dra")
MORE = "{resources: {excludeResourcePrefixes: [example.com/]}, clientConnection: {qps: 400}, fairSharing: {}}"
CONFIGURATIONS: Mapping[str, tuple[str, str]] = {
    "queues": ("", LAB + tenant("lab", QUOTA)),
    "a gang": ("", LAB + tenant("lab", QUOTA) + GANG),
    "CPU and memory": ("", LAB + tenant("lab", f"{QUOTA}, cpu: '32', memory: 128Gi")),
    "RDMA": ("", LAB + tenant("lab", QUOTA, more="allow: {rdma: [rdma/hca]}")),
    "claims": ("", CLAIMS + tenant("lab", "pool: a, guaranteed: 56")),
    "frameworks": (f"frameworks: [{', '.join(FRAMEWORKS)}]", LAB + tenant("lab", QUOTA)),
    "more of the policy's": (f"configuration: {MORE}", LAB + tenant("lab", QUOTA)),
}
"""What is said of Kueue, and of a platform; each has something of its own in the Configuration."""


@pytest.mark.parametrize("install", ["helm", "external"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configuration_is_read_as_it_is_written(name: str, install: str, record: Record, tmp_path: Path) -> None:
    """By the loader of its release, which knows no other fields; the one for its chart and the one for people."""
    said, platform = CONFIGURATIONS[name]
    release = kueue_release()
    cluster = a_cluster(f"kind: kueue, version: {release}, install: {install}, kueue: {{{said}}}")
    written = _written(a_plan(cluster + platform))
    found = verdict(written, tmp_path)
    observed = lost(yaml.safe_load(written), found.loaded or {}) if found.is_valid else [found.refusal]
    record(f"Kueue {release}: what is lost of a Configuration with {name} ({install})", [], observed)


def test_settings_that_kueue_knows_are_those_of_the_catalog(record: Record, tmp_path: Path) -> None:
    """Each is read where it says nothing, and another one is refused, as by GPU489."""
    facts = find_scheduler_chart("kueue")
    assert facts is not None
    known = {**dict.fromkeys(facts.settings), "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    found = verdict(yaml.safe_dump(known), tmp_path)
    record("Kueue: keys of a Configuration that it refuses", "", "" if found.is_valid else found.refusal)
    other = verdict(yaml.safe_dump({**known, "managerConfig": {}}), tmp_path)
    record("Kueue: Configuration with another key", "refused", str(other))


def _written(plan: Plan) -> str:
    """The Configuration that gpuplan writes: in the values of the chart, or in a file for people."""
    if values := kueue.helm_values(plan):
        text: str = values["managerConfig"]["controllerManagerConfigYaml"]
        return text
    [written] = [found for found in kueue.render(plan) if isinstance(found, File)]
    return written.data.decode()


def _verdict(case: Path) -> str:
    """Ours."""
    return "refused" if case.name.startswith("fail-") else "taken"


def _verdict_on(api: Api, bodies: list[dict[str, Any]]) -> str:
    """What its schemas and webhooks say."""
    try:
        for body in bodies:
            api.create(body, dry_run=True)
    except Refused as refused:
        if refused.reason not in {"Invalid", "Forbidden"}:
            raise
        return "refused"
    return "taken"


def _may_evict(cluster: ExampleCluster, queue: Queue, evictor: str, victim: str) -> bool:
    """Whether the plan says so."""
    here = queue.quota["pool"], queue.quota["unit"]
    tenant = queue.tenant["name"]
    return any(
        (eviction["pool"], eviction["unit"]) == here
        and eviction["within_tenants"]
        and {"tenant": tenant, "priority_class": evictor} in eviction["evictors"]
        and {"tenant": tenant, "priority_class": victim} in eviction["victims"]
        for eviction in cluster.plan["evictions"]
    )


def _queue_of(cluster: ExampleCluster, tenant: str) -> Queue:
    [queue] = [queue for queue in queues(cluster) if queue.tenant["name"] == tenant]
    return queue


def _guaranteed(queue: Queue) -> int:
    guaranteed: int = queue.quota["guaranteed"]
    return guaranteed


@contextmanager
def _filled(cluster: ExampleCluster, queue: Queue, units: int) -> Iterator[list[Job]]:
    """Jobs for as many units as a queue should let in, and one more; of two that are alike either may wait."""
    with queue.running(_room(cluster, queue, units) - 1) as most:
        in_the_end("admitted", most[0].state)
        with queue.running(1, 1) as rest:
            yield [*most, *rest]


def _room(cluster: ExampleCluster, queue: Queue, units: int) -> int:
    """What the queue's own work leaves of so many units, once all of that has been let in."""
    own = _own_units(cluster, queue)
    until(lambda: queue.used() == own, f"{queue} has its own work and no other", seconds=60)
    return units - own


def _own_units(cluster: ExampleCluster, queue: Queue) -> int:
    """What the workloads in the policy take."""
    here = queue.tenant["name"], queue.quota["pool"], queue.quota["unit"]
    return sum(
        _pods(workload) * workload["units_per_pod"]
        for workload in cluster.plan["workloads"]
        if (workload["tenant"], workload["pool"], workload["unit"]) == here
    )


def _pods(workload: Mapping[str, Any]) -> int:
    """An autoscaler that has no metrics keeps to the least."""
    if workload["kind"] == "training":
        pods: int = workload["pods"]
        return pods
    scaling = workload["autoscaling"]
    least: int = scaling["min_replicas"] if scaling else workload["replicas"]
    return least


def _most(cluster: ExampleCluster, queue: Queue) -> int:
    """What a tenant gets while all others are idle: its own, what is nobody's, and what others lend."""
    here = queue.quota["pool"], queue.quota["unit"]
    units = [(pool["name"], unit) for pool in cluster.plan["pools"] for unit in pool["units"]]
    [free] = [unit["free"] for pool, unit in units if (pool, unit["name"]) == here]
    others = [other for other in queues(cluster) if other.tenant["name"] != queue.tenant["name"]]
    lent = sum(other.quota["lendable"] for other in others if (other.quota["pool"], other.quota["unit"]) == here)
    most: int = _guaranteed(queue) + free + lent
    return most if queue.quota["limit"] is None else min(most, queue.quota["limit"])


def _active(api: Api, paths: list[str]) -> int:
    conditions = [found for path in paths for found in api.get(path).get("status", {}).get("conditions", ())]
    return sum((found["type"], found["status"]) == ("Active", "True") for found in conditions)


def _used_and_waiting(queue: Queue, jobs: list[Job]) -> tuple[int, int]:
    return queue.used(), sum(job.state() == "waiting" for job in jobs)


def _pods_on(names: tuple[str, ...], jobs: list[Job]) -> int:
    return sum(node in names for job in jobs for node in job.nodes())


def _placement(job: Job) -> str:
    """Where the first pod of a Job may run, without what Kubernetes lets any pod tolerate."""
    for pod in job.pods():
        selector = [f"{name}={value}" for name, value in pod["spec"].get("nodeSelector", {}).items()]
        tolerated = [
            f"{found['key']}={found.get('value')}:{found['effect']}"
            for found in pod["spec"]["tolerations"]
            if not found["key"].startswith("node.kubernetes.io/")
        ]
        return f"{', '.join(selector)}; {', '.join(tolerated)}"
    return ""


def _priority(job: Job) -> int | None:
    workload = job.workload()
    priority: int | None = workload["spec"].get("priority") if workload else None
    return priority


def _logged(words: str, control_plane: ControlPlane, job: Job) -> str:
    """The words, when the controller has logged them about the Job; else nothing."""
    about = (line for line in kueue_log(control_plane).splitlines() if f"{job.namespace}/{job.name}" in line)
    return words if any(words in line for line in about) else ""
