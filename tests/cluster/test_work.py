"""Each kind of work on each scheduler: let in, held where a queue holds, scheduled, bound, and counted.

Controllers are the real ones: Kubernetes' own, and of JobSet, LeaderWorkerSet and Trainer the releases that
`go/frameworks` pins, each with the rights of its own account. KServe is played, and KEDA does not run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import pytest

from gpuplan.compiler.admission.arriving import arrivals
from gpuplan.compiler.backends.workloads import render
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.documents import read_text
from gpuplan.compiler.manifests import Identity, to_yaml
from gpuplan.compiler.manifests.kinds.imported import COLLECTED, Collected
from gpuplan.compiler.pipeline.writing import document
from gpuplan.compiler.planning.kai import queue_name
from gpuplan.compiler.planning.plan import POOL_LABEL, Plan
from gpuplan.compiler.planning.resolve import resolve_workload
from gpuplan.compiler.policy import models
from gpuplan.features.live.drafts import Draft
from gpuplan.features.live.dump import read_dump
from gpuplan.features.live.work import read as read_work
from tests.cluster.api import Api, Refused
from tests.cluster.control_plane import ControlPlane
from tests.cluster.delivery import MANAGER, deliveries, identity
from tests.cluster.example import ExampleCluster, provide_volumes, show
from tests.cluster.framework_controllers import FRAMEWORKS, framework_controllers
from tests.cluster.kai_scheduler import kai_controllers, kai_schedulers
from tests.cluster.kueue_controller import API_VERSION, kueue_controller
from tests.cluster.lending import CLUSTER, GPU, write_policy
from tests.cluster.outcomes import in_the_end
from tests.cluster.processes import until
from tests.cluster.programs import need_go
from tests.cluster.released import PROJECTS, WRITTEN, serve_released
from tests.cluster.work import (
    HAND_WRITTEN,
    LAB,
    POOL,
    ROWS,
    Row,
    deployment_by_kserve,
    is_bound,
    is_gated,
    is_of,
    owners,
    platform,
    pods,
)
from tests.plans import a_plan

Record = Callable[[str, object, object], None]

REACHED: Final = ("gateway: {name: public, namespace: gateways}", "ingress: {className: nginx}")
SCHEDULERS: Final = ("kubernetes", "kueue", "kai")
ALL_KINDS: Final = "kueue"
"""The cluster that serves all kinds of objects, those too of which none is written."""
GROUPS: Final = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{LAB}/podgroups"
QUEUE: Final = f"/apis/{API_VERSION}/clusterqueues/{LAB}"


@dataclass(frozen=True)
class Matrix:
    """A cluster of a scheduler with all work on it; ``held`` is what was there of each while the queue held it."""

    scheduler: str
    cluster: ExampleCluster
    shown: Mapping[str, Mapping[str, Any]]
    written: Mapping[str, Mapping[str, Any]]
    held: Mapping[str, tuple[str, int]]

    @property
    def api(self) -> Api:
        return self.cluster.api

    @cached_property
    def plan(self) -> Plan:
        return a_plan((self.cluster.repository / "overlays" / CLUSTER / "policy.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=SCHEDULERS)
def matrix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    """The platform first, and its work when the queue holds: so it is seen that it waits."""
    need_go()
    scheduler: str = request.param
    repository = tmp_path_factory.mktemp(scheduler)
    write(repository, scheduler, ())
    with ExitStack() as running:
        beside = partial(_beside, scheduler=scheduler, repository=repository)
        cluster = running.enter_context(ExampleCluster.start(CLUSTER, repository, beside))
        if scheduler == "kai":
            running.enter_context(kai_schedulers(cluster.control_plane))
        if scheduler == "kueue":
            cluster.api.patch(QUEUE, {"spec": {"stopPolicy": "Hold"}})
        written = apply_work(cluster, repository, scheduler)
        held = {row.name: _held(cluster.api, row) for row in ROWS} if scheduler == "kueue" else {}
        if scheduler == "kueue":
            cluster.api.patch(QUEUE, {"spec": {"stopPolicy": "None"}})
        shown = {found["name"]: found for found in show(CLUSTER, repository)["workloads"]}
        yield Matrix(scheduler, cluster, shown, written, held)
        cluster.control_plane.assert_running()


def write(repository: Path, scheduler: str, rows: tuple[Row, ...]) -> None:
    frameworks = sorted({name for row in ROWS for name in row.frameworks})
    kueue = f", kueue: {{frameworks: [{', '.join(frameworks)}]}}" if scheduler == "kueue" and frameworks else ""
    apis = sorted({name for row in ROWS for name in row.apis})
    more = (f"apis: [{', '.join(apis)}]", *REACHED, "prometheus: {url: 'http://prometheus.monitoring:9090'}")
    documents = [*platform(), *(row.document() for row in rows)]
    write_policy(repository, f"kind: {scheduler}{kueue}", documents, *more)


@contextmanager
def _beside(control_plane: ControlPlane, *, scheduler: str, repository: Path) -> Iterator[None]:
    """Frameworks are there before Kueue, which looks for their kinds as it starts."""
    with ExitStack() as running:
        serve_released(control_plane.api, PROJECTS if scheduler == ALL_KINDS else WRITTEN)
        running.enter_context(framework_controllers(control_plane))
        if scheduler == "kueue":
            configuration = repository / "out" / CLUSTER / "scheduling" / "kueue-configuration.yaml"
            running.enter_context(kueue_controller(control_plane, configuration))
        if scheduler == "kai":
            running.enter_context(kai_controllers(control_plane))
        yield


def apply_work(cluster: ExampleCluster, repository: Path, scheduler: str) -> dict[str, Mapping[str, Any]]:
    """Write the work and apply what has come to the folders; those are the objects by what they are."""
    before = {identity(body) for folder in cluster.folders for body in folder.objects}
    write(repository, scheduler, ROWS)
    folders = [*deliveries(cluster.control_plane, repository, CLUSTER)]
    provide_volumes(cluster.api, folders)
    bodies = [body for folder in folders for body in folder.objects if identity(body) not in before]
    for body in bodies:
        made = cluster.api.apply(body, manager=MANAGER)
        if made["kind"] == "InferenceService":
            cluster.api.apply(deployment_by_kserve(made), manager="kserve")
    return {identity(body): body for body in bodies}


# --- While the queue holds -----------------------------------------------------------------------------------------

SUSPENDED: Final = "suspended as a whole"
GATED: Final = "each pod has a gate"


def _held(api: Api, row: Row) -> tuple[str, int]:
    """How Kueue holds a workload, and how many of its pods are bound all the same."""
    how = until(lambda: _how(api, row), f"Kueue holds {row.name}", seconds=60)
    return how, sum(map(is_bound, pods(api, row)))


def _how(api: Api, row: Row) -> str:
    if _is_suspended(api, row):
        return SUSPENDED
    found = pods(api, row)
    return GATED if len(found) == row.pods and all(map(is_gated, found)) else ""


def _is_suspended(api: Api, row: Row) -> bool:
    """Whether it is an object that Kueue has made a Workload of, and that is suspended."""
    for workload in api.list(f"/apis/{API_VERSION}/namespaces/{LAB}/workloads"):
        for owner in owners(api, workload):
            if is_of(owner, row) and owner["spec"].get("suspend"):
                return True
    return False


# --- The matrix ----------------------------------------------------------------------------------------------------


def bound(matrix: Matrix, row: Row) -> list[dict[str, Any]]:
    """The pods that run on nodes of the pool, once they are as many as planned or a minute is up."""
    in_the_end(row.pods, lambda: sum(map(is_bound, pods(matrix.api, row))))
    return [pod for pod in pods(matrix.api, row) if is_bound(pod)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_work_is_bound(matrix: Matrix, row: Row, record: Record) -> None:
    record(f"{matrix.scheduler}: {row.kind} `{row.name}`: pods bound", row.pods, len(bound(matrix, row)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_pods_are_what_admission_takes_them_for(matrix: Matrix, row: Row) -> None:
    """What `arriving` says of pods, which rules are proven with: who owns them, and what they ask for."""
    for pod in bound(matrix, row):
        *_, root = owners(matrix.api, pod)
        assert root["kind"] == row.kind
        assert identity(root) in matrix.written
        assert _judged(pod) in [_judged(body) for body in expected_pods(matrix, row)]


def expected_pods(matrix: Matrix, row: Row) -> list[Mapping[str, Any]]:
    """What comes of all that is written of a workload, and runs its own container."""
    bodies = [body for body in matrix.written.values() if is_of(body, row)]
    found = [arrival.body for body in bodies for arrival in arrivals(matrix.plan, body, {})]
    return [body for body in found if body["kind"] == "Pod"]


def _judged(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec = pod["spec"]
    [owner] = [found for found in pod["metadata"]["ownerReferences"] if found.get("controller")]
    return {
        "owner": (owner["apiVersion"], owner["kind"]),
        "scheduler": spec["schedulerName"],
        "priority": spec["priority"],
        "pool": spec.get("nodeSelector", {}).get(POOL_LABEL),
        "grace": spec["terminationGracePeriodSeconds"],
        "asks": [container.get("resources", {}).get("limits") for container in spec["containers"]],
        "labels": {
            key: text
            for key, text in pod["metadata"]["labels"].items()
            if key.startswith(("gpuplan.dev/", "kai.scheduler/", "kueue.x-k8s.io/queue-name"))
        },
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("matrix", ["kueue"], indirect=True)
def test_a_queue_that_holds_lets_nothing_start(matrix: Matrix, row: Row, record: Record) -> None:
    """As a whole where Kueue suspends the kind, and by gates on the pods elsewhere, as `arriving` has it."""
    gates = [bool(pod["spec"].get("schedulingGates")) for pod in expected_pods(matrix, row)]
    planned = (GATED if all(gates) else SUSPENDED, 0)
    record(f"kueue: {row.kind} `{row.name}` in a queue that holds: how, pods bound", planned, matrix.held[row.name])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("matrix", ["kai"], indirect=True)
def test_pods_are_grouped_in_their_queue(matrix: Matrix, row: Row) -> None:
    """How many belong together, this release does not read on Jobs: `kai.scheduler/batch-min-member` came later."""
    names = {pod["metadata"]["annotations"]["pod-group-name"] for pod in bound(matrix, row)}
    assert names
    for name in names:
        group = matrix.api.get(f"{GROUPS}/{name}")
        assert group["spec"]["queue"] == queue_name(LAB, POOL)


@pytest.mark.parametrize("matrix", ["kubernetes", "kueue"], indirect=True)
def test_all_of_it_is_counted_as_it_is_shown(matrix: Matrix, record: Record) -> None:
    planned = sum(work["most_pods"] * work["units_per_pod"] for work in matrix.shown.values())
    record(f"{matrix.scheduler}: units of all work: counted", planned, in_the_end(planned, counted, matrix))


def counted(matrix: Matrix) -> int:
    if matrix.scheduler == "kueue":
        queue = matrix.api.get(QUEUE)
        flavors = queue["status"]["flavorsReservation"]
        return sum(int(part["total"]) for flavor in flavors for part in flavor["resources"] if part["name"] == GPU)
    quotas = matrix.api.list(f"/api/v1/namespaces/{LAB}/resourcequotas")
    return sum(int(quota["status"]["used"].get(f"requests.{GPU}", 0)) for quota in quotas)


def test_work_that_runs_is_read_as_it_was_written(matrix: Matrix, record: Record) -> None:
    """Defaults, what controllers add, and Kueue's part of it stand in no policy that an import makes."""
    running = [item for command in COLLECTED for item in collected(matrix, command)]
    found = read_work(read_dump(as_files(running))[0], replace(matrix.plan, workloads=()))
    documents = [parsed(draft) for draft in found.drafts]
    again = tuple(work for at, policy in documents if (work := resolve_workload(matrix.plan, at, policy)[0]))
    ours, theirs = (bodies(plan) for plan in (matrix.plan, replace(matrix.plan, workloads=again)))
    assert [item.finding.headline for item in found.diagnostics] == []
    wrong = sorted(str(name) for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    record(f"{matrix.scheduler}: objects that an import of running work changes", [], wrong)


def bodies(plan: Plan) -> dict[Identity, Mapping[str, Any]]:
    return {item.identity: item.body for item in render(plan)}


def collected(matrix: Matrix, command: Collected) -> Iterator[Mapping[str, Any]]:
    """What a command finds in the namespace of the work, where its kinds are served."""
    if command.namespace:
        return
    _, *arguments = command.command.partition(" > ")[0].split()
    try:
        text = matrix.cluster.control_plane.kubectl(*arguments[:-1], "json")
    except AssertionError:  # no kind of that name is served
        return
    yield from (item for item in json.loads(text)["items"] if item["metadata"].get("namespace") == LAB)


def as_files(bodies: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    return {"work.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": list(bodies)}).encode()}


def parsed(draft: Draft) -> tuple[Origin, models.Workload]:
    [found], _ = read_text("workload.yaml", to_yaml(document(draft.kind, draft.name, draft.spec)))
    return found.origin / "spec", models.Workload.model_validate(found.data)


RELEASED: Final = (
    *(kind for framework in FRAMEWORKS for _, kind in framework.kinds),
    *(kind for project in PROJECTS for kind in project.kinds),
    "Ingress",
)


@pytest.mark.parametrize("kind", RELEASED)
@pytest.mark.parametrize("matrix", [ALL_KINDS], indirect=True)
def test_an_object_of_each_kind_fits_what_its_project_releases(matrix: Matrix, kind: str) -> None:
    """By server-side apply, and one with a field more is refused: so it is no definition that takes anything."""
    body = next((body for body in matrix.written.values() if body["kind"] == kind), HAND_WRITTEN.get(kind))
    assert body is not None, f"no object of {kind}"
    assert matrix.api.apply(body, manager=MANAGER, dry_run=True)["kind"] == kind
    with pytest.raises(Refused, match="field not declared in schema"):
        matrix.api.apply({**body, "spec": {**body["spec"], "unheardOf": 1}}, manager=MANAGER, dry_run=True)
