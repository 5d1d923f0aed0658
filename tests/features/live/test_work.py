"""Work that gpuplan wrote comes back as it was; other work is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.backends import workloads
from gpuplan.compiler.base.diagnostics import Diagnostic, Severity
from gpuplan.compiler.manifests import to_yaml
from gpuplan.compiler.manifests.kinds.imported import READ
from gpuplan.compiler.pipeline.writing import document
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from gpuplan.features.live.drafts import Found
from gpuplan.features.live.dump import read_dump
from gpuplan.features.live.work import read, warned
from gpuplan.features.live.work.pods import KINDS
from tests.laws.properties.work import platforms
from tests.plans import SEPARATOR, a_cluster, a_plan
from tests.platforms import document as policy, pool, tenant

Body = dict[str, Any]

PLATFORM = (
    f"{pool('whole')}{pool('halves', 'mig: {instances: {3g.40gb: 2}}')}"
    f"{tenant('lab', 'pool: whole, unit: gpu, guaranteed: 8', 'pool: halves, unit: 3g.40gb, guaranteed: 4')}"
)
TRAINING = "tenant: lab, pool: whole, image: 'registry.example.com/train:1', training: {pods: 2}"
SERVICE = "tenant: lab, pool: whole, image: 'registry.example.com/serve:1', inference: {}"


def written(text: str) -> tuple[Plan, list[Body]]:
    """The plan without its work, and the objects of that."""
    plan = a_plan(text)
    return replace(plan, workloads=()), [dict(manifest.body) for manifest in workloads.render(plan)]


def imported(plan: Plan, bodies: list[Body]) -> Found:
    text = SEPARATOR.join(map(to_yaml, bodies))
    return read(read_dump({"dump.yaml": text.encode()})[0], plan)


def specs(found: Found) -> dict[str, Mapping[str, Any]]:
    return {draft.name: draft.spec for draft in found.drafts}


def edited(text: str, edit: Callable[[Body], object], kind: str) -> Found:
    """What is read after somebody has changed the objects of a kind."""
    plan, bodies = written(text)
    for body in bodies:
        if body["kind"] == kind:
            edit(body)
    return imported(plan, bodies)


def told(found: Found) -> Diagnostic:
    [diagnostic] = found.diagnostics
    assert diagnostic.code == "GPU815"
    return diagnostic


# --- What gpuplan wrote ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=3)
@given(data=st.data())
def test_random_work_is_built_again_as_it_was(scheduler: str, data: st.DataObject) -> None:
    text = data.draw(platforms(scheduler))
    plan, bodies = written(text)
    found = imported(plan, bodies)
    assert [item.finding.headline for item in found.diagnostics] == []
    documents = "".join(SEPARATOR + to_yaml(document(draft.kind, draft.name, draft.spec)) for draft in found.drafts)
    _, again = written(text.partition(f"{SEPARATOR}apiVersion: gpuplan.dev/v1\nkind: Workload")[0] + documents)
    assert [to_yaml(body) for body in again] == [to_yaml(body) for body in bodies]


def test_all_kinds_of_objects_are_collected() -> None:
    assert set(KINDS) <= READ


def test_training_says_what_is_not_so_anyway() -> None:
    found = imported(*written(PLATFORM + policy("Workload", "train", TRAINING)))
    assert specs(found) == {
        "train": {"tenant": "lab", "batch": {"pods": 2}, "pool": "whole", "image": "registry.example.com/train:1"}
    }
    assert found.drafts[0].sources == ("Job `train-3244eb5f` in namespace `lab` (dump.yaml)",)


def test_service_says_what_is_not_so_anyway() -> None:
    spec = (
        "port: 8080, startup: 10m, probe: {http: /health, timeout: 5s}, autoscaling: {maxReplicas: 3, cpuPercent: 70}"
    )
    text = PLATFORM + policy("Workload", "chat", f"{SERVICE.replace('{}', f'{{{spec}}}')}, cpu: '2'")
    assert specs(imported(*written(text)))["chat"]["inference"] == {
        "port": 8080,
        "probe": {"http": "/health", "timeout": "5s"},
        "startup": "10m",
        "autoscaling": {"maxReplicas": 3, "cpuPercent": 70},
    }
    plain = imported(*written(PLATFORM + policy("Workload", "chat", SERVICE)))
    assert specs(plain)["chat"]["inference"] == {}


def test_pods_of_a_pool_for_training_are_a_training() -> None:
    platform = PLATFORM.replace("sharing: {exclusive: {}}", "sharing: {exclusive: {}}, workloadTypes: [training]")
    found = imported(*written(platform + policy("Workload", "train", TRAINING)))
    assert specs(found)["train"]["training"] == {"pods": 2}


def test_unit_is_named_where_the_pool_has_several() -> None:
    platform = PLATFORM.replace("{3g.40gb: 2}", "{3g.40gb: 1, 2g.20gb: 2}")
    text = platform + policy("Workload", "train", TRAINING.replace("whole", "halves, unit: 3g.40gb, count: 2"))
    spec = specs(imported(*written(text)))["train"]
    assert (spec["unit"], spec["count"]) == ("3g.40gb", 2)


def test_what_somebody_has_patched_is_a_patch() -> None:
    def edit(body: Body) -> None:
        body["spec"]["template"]["spec"]["hostAliases"] = [{"ip": "10.0.0.7", "hostnames": ["store"]}]
        body["spec"]["template"]["spec"]["containers"].append({"name": "proxy", "image": "registry.example.com/p:1"})

    found = edited(PLATFORM + policy("Workload", "chat", SERVICE), edit, "Deployment")
    assert found.diagnostics == ()
    assert specs(found)["chat"]["podPatch"] == {
        "spec": {
            "containers": [{"name": "proxy", "image": "registry.example.com/p:1"}],
            "hostAliases": [{"ip": "10.0.0.7", "hostnames": ["store"]}],
        }
    }


def test_what_no_field_says_leaves_the_work_alone() -> None:
    def edit(body: Body) -> None:
        body["spec"]["minReadySeconds"] = 30

    found = edited(PLATFORM + policy("Workload", "chat", SERVICE), edit, "Deployment")
    assert found.drafts == ()
    assert told(found).finding.headline == (
        "workload `chat` in namespace `lab` is left as it is: gpuplan would write `spec.minReadySeconds` in another way"
    )


def test_job_that_was_changed_has_another_name() -> None:
    """Its pods' variables cannot be changed, so that whoever did has made another Job of the old name."""

    def edit(body: Body) -> None:
        body["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "LOG_LEVEL", "value": "debug"}]

    found = edited(PLATFORM + policy("Workload", "train", TRAINING), edit, "Job")
    assert found.drafts == ()
    assert "gpuplan would call it `train-" in told(found).finding.label


def test_object_that_is_missing_is_named() -> None:
    plan, bodies = written(PLATFORM + policy("Workload", "chat", SERVICE))
    found = imported(plan, [body for body in bodies if body["kind"] != "Service"])
    assert told(found).finding.label == "Service lab/chat is not in the dump, and gpuplan writes it"


def test_token_is_never_written_or_printed() -> None:
    token = "hf_" + "a1B2" * 9

    def edit(body: Body) -> None:
        body["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "HF_TOKEN", "value": token}]

    found = edited(PLATFORM + policy("Workload", "chat", SERVICE), edit, "Deployment")
    assert found.drafts == ()
    assert told(found).finding.label == "variable `HF_TOKEN` of workload `chat` has what looks like a secret"
    assert token not in repr(told(found).finding)


def test_password_of_a_workspace_is_never_written() -> None:
    spec = "tenant: lab, pool: whole, image: 'registry.example.com/lab:1', workspace: {}, env: {JUPYTER_TOKEN: letmein}"
    found = imported(*written(PLATFORM + policy("Workload", "lab", spec)))
    assert found.drafts == ()
    assert told(found).finding.label == "variable `JUPYTER_TOKEN` of workload `lab` has what looks like a secret"
    assert "letmein" not in repr(told(found).finding)


def test_patch_that_no_policy_may_have_leaves_the_work_alone() -> None:
    def edit(body: Body) -> None:
        body["spec"]["template"]["spec"]["schedulerName"] = "volcano"

    found = edited(PLATFORM + policy("Workload", "chat", SERVICE), edit, "Deployment")
    assert found.drafts == ()
    assert told(found).finding.label == ("gpuplan would write `spec.template.spec.schedulerName` in another way")


def test_job_of_before_is_told() -> None:
    plan, bodies = written(PLATFORM + policy("Workload", "train", TRAINING))
    _, before = written(PLATFORM + policy("Workload", "train", TRAINING.replace("train:1", "train:0")))
    before[0]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    bodies[0]["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    found = imported(plan, [*before, *bodies])
    assert specs(found)["train"]["image"] == "registry.example.com/train:1"
    assert told(found).finding.label == "not written"
    assert len(found.drafts[0].remarks) == 1


def test_work_of_a_namespace_without_tenant_is_left() -> None:
    def edit(body: Body) -> None:
        body["metadata"] |= {"namespace": "elsewhere", "labels": {"gpuplan.dev/workload": "chat"}}

    found = edited(PLATFORM + policy("Workload", "chat", SERVICE.replace("{}", "{port: none}")), edit, "Deployment")
    assert told(found).finding.label == "no tenant has the namespace `elsewhere`"


def test_one_name_in_two_namespaces_is_left() -> None:
    plan, bodies = written(PLATFORM + policy("Workload", "chat", SERVICE.replace("{}", "{port: none}")))
    other = deepcopy(bodies[0])
    other["metadata"]["namespace"] = "elsewhere"
    found = imported(plan, [*bodies, other])
    assert found.drafts == ()
    assert {item.finding.message for item in found.diagnostics} == {"workloads in several namespaces are called `chat`"}


# --- What a cluster adds ---------------------------------------------------------------------------------------------


def live(body: Body) -> Body:
    """As an API server gives an object back that it was given."""
    found: Body = json.loads(json.dumps(body, sort_keys=True))
    found["metadata"] |= {"uid": "1", "resourceVersion": "2", "creationTimestamp": "2026-01-01T00:00:00Z"}
    found["metadata"].setdefault("annotations", {})["argocd.argoproj.io/tracking-id"] = "gpu:apps/Deployment:lab/chat"
    found["status"] = {"observedGeneration": 1}
    if body["kind"] == "Service":
        found["spec"] |= {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "ClusterIP"}
        found["spec"]["ports"][0]["protocol"] = "TCP"
    if body["kind"] in ("Deployment", "Job"):
        template = found["spec"]["template"]
        template["metadata"]["creationTimestamp"] = None
        template["spec"] |= {"dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}
        template["spec"].setdefault("schedulerName", "default-scheduler")
        template["spec"].setdefault("restartPolicy", "Always")
        template["spec"]["containers"][0] |= {
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
    if body["kind"] == "Deployment":
        found["spec"] |= {"revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
        template["spec"]["containers"][0]["readinessProbe"] |= {"timeoutSeconds": 1, "periodSeconds": 10}
    if body["kind"] == "Job":
        labels = {"batch.kubernetes.io/controller-uid": "1", "batch.kubernetes.io/job-name": "train"}
        found["spec"] |= {"suspend": False, "selector": {"matchLabels": labels}}
        template["metadata"]["labels"] |= labels
    return found


@pytest.mark.parametrize("spec", [TRAINING, SERVICE])
def test_running_work_comes_back_without_what_the_cluster_adds(spec: str) -> None:
    plan, bodies = written(PLATFORM + policy("Workload", "work", spec))
    found = imported(plan, [live(body) for body in bodies])
    assert found.diagnostics == ()
    assert specs(found) == specs(imported(plan, bodies))


def test_amount_that_the_api_server_has_spelt_otherwise_makes_no_other_job() -> None:
    plan, bodies = written(PLATFORM + policy("Workload", "work", f"{TRAINING}, cpu: '1.5', memory: 0.5Gi"))
    [job] = [live(body) for body in bodies]
    for amounts in job["spec"]["template"]["spec"]["containers"][0]["resources"].values():
        amounts |= {"cpu": "1500m", "memory": "512Mi"}
    found = imported(plan, [job])
    assert found.diagnostics == ()
    assert (specs(found)["work"]["cpu"], specs(found)["work"]["memory"]) == ("1.5", "0.5Gi")


@pytest.mark.parametrize(("label", "is_kueues"), [("managed", True), ("priority-class", False)])
def test_what_kueue_notes_on_work_is_no_part_of_it(label: str, is_kueues: bool) -> None:
    def edit(body: Body) -> None:
        body["spec"]["template"]["metadata"]["labels"][f"kueue.x-k8s.io/{label}"] = "true"

    text = a_cluster("kind: kueue") + PLATFORM + policy("Workload", "chat", SERVICE)
    assert bool(edited(text, edit, "Deployment").drafts) is is_kueues


def test_what_controllers_own_is_passed_over() -> None:
    plan, bodies = written(PLATFORM + policy("Workload", "train", TRAINING))
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "x", "uid": "1", "controller": True}
    bodies[0]["metadata"]["ownerReferences"] = [owner]
    assert imported(plan, bodies) == Found()


# --- Work of others --------------------------------------------------------------------------------------------------


WHOLE = {"gpuplan.dev/pool": "whole"}


def a_deployment(**pod: Any) -> Body:
    container = {
        "name": "serve",
        "image": "registry.example.com/serve:1",
        "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": 1}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve", "namespace": "lab"},
        "spec": {
            "selector": {"matchLabels": {"app": "serve"}},
            "template": {"metadata": {"labels": {"app": "serve"}}, "spec": {"containers": [container], **pod}},
        },
    }


def test_work_of_others_is_a_note() -> None:
    found = imported(a_plan(PLATFORM), [a_deployment(nodeSelector=WHOLE)])
    assert found.drafts == ()
    assert told(found).severity is Severity.NOTE
    assert told(found).finding.message == "Deployment `serve` in namespace `lab` stays as it is, and is no Workload"
    assert told(found).finding.notes == ("it asks for `nvidia.com/gpu`, which pool `whole` hands out",)


def test_selector_that_no_node_will_match_is_a_warning() -> None:
    found = imported(a_plan(PLATFORM), [a_deployment(nodeSelector={**WHOLE, "nvidia.com/mig.config": "all-1g.10gb"})])
    assert told(found).severity is Severity.WARNING
    assert "nvidia.com/mig.config: all-1g.10gb" in told(found).finding.notes[0]


def warning(text: str) -> Plan:
    return a_plan(
        a_cluster("kind: kubernetes").replace("spec:\n", "spec:\n  admission: {enforcement: warn}\n", 1) + text
    )


def test_pods_that_admission_will_refuse_go_on_for_now() -> None:
    found = told(imported(warning(PLATFORM), [a_deployment()]))
    assert found.finding.message == (
        "Deployment `serve` in namespace `lab` is warned of now, and will be refused once `enforcement` is `deny`"
    )
    assert found.finding.notes[0].startswith("admission will refuse pods of Deployment `serve`: ")
    assert found.severity is Severity.WARNING


def test_what_no_node_matches_stops_whatever_admission_does() -> None:
    odd = a_deployment(nodeSelector={"nvidia.com/mig.config": "all-1g.10gb"})
    assert told(imported(warning(PLATFORM), [odd])).finding.message.endswith("will not start again as it is")


def test_a_class_of_no_policy_is_for_admission_to_refuse() -> None:
    work = a_deployment(nodeSelector=WHOLE, priorityClassName="of-others")
    assert told(imported(warning(PLATFORM), [work])).finding.message.endswith("once `enforcement` is `deny`")
    assert told(imported(a_plan(PLATFORM), [work])).finding.message.endswith("will not start again as it is")
    work["metadata"]["namespace"] = "of-nobody"
    assert told(imported(warning(PLATFORM), [work])).finding.message.endswith("will not start again as it is")


def test_drift_names_work_that_is_only_warned_of() -> None:
    dump = read_dump({"dump.yaml": SEPARATOR.join(map(to_yaml, [a_deployment()])).encode()})[0]
    [found] = warned(dump, warning(PLATFORM))
    assert found.finding.message.startswith("Deployment `serve` in namespace `lab` is warned of now")
    assert [*warned(dump, a_plan(PLATFORM))] == []


def test_pods_that_admission_refuses_are_a_warning() -> None:
    found = imported(a_plan(PLATFORM), [a_deployment()])
    assert told(found).severity is Severity.WARNING
    assert "set the nodeSelector gpuplan.dev/pool" in told(found).finding.notes[0]


@pytest.mark.parametrize(("labels", "is_told"), [({}, True), ({"gpuplan.dev/pool": "whole"}, False)])
def test_a_selector_that_no_node_matches_yet_is_to_be_written_after_the_sync(
    labels: dict[str, str], *, is_told: bool
) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "whole-1", "labels": labels}}
    plan = a_plan(PLATFORM.replace("gpusPerNode: 8", "gpusPerNode: 8, names: [whole-1, whole-2]", 1))
    [found] = imported(plan, [a_deployment(), node]).diagnostics
    later = "nodes get `gpuplan.dev/pool` with the sync of `partitions/whole`: before that, select no such label"
    assert (later in found.finding.notes) is is_told
    [found] = imported(plan, [a_deployment(nodeSelector=WHOLE), node]).diagnostics
    assert later not in found.finding.notes


def test_class_that_no_policy_makes_is_a_warning() -> None:
    found = imported(a_plan(PLATFORM), [a_deployment(nodeSelector=WHOLE, priorityClassName="urgent")])
    assert told(found).finding.label == "1 reason below"
    assert told(found).finding.notes[0] == "it names the priority class `urgent`, which is in no policy"


def test_work_that_no_policy_can_say_is_left_to_others() -> None:
    found = imported(a_plan(PLATFORM), [{**a_deployment(nodeSelector=WHOLE), "kind": "StatefulSet"}])
    assert told(found).finding.label == "gpuplan writes no StatefulSets"
    assert told(found).finding.help == "leave it to whoever applies it"


def test_pools_that_hand_out_the_same_are_all_named() -> None:
    platform = f"{a_cluster('kind: kueue')}{PLATFORM}{pool('more')}"
    platform = platform.replace("guaranteed: 8", "guaranteed: 8}, {pool: more, unit: gpu, guaranteed: 8")
    body = a_deployment(nodeSelector=WHOLE)
    body["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "default"}
    [note] = told(imported(a_plan(platform), [body])).finding.notes
    assert note == "it asks for `nvidia.com/gpu`, which pools `more` and `whole` hand out: it may run in any of them"


def test_fraction_is_asked_for_by_an_annotation() -> None:
    platform = f"{a_cluster('kind: kai')}{pool('parts', 'fraction: {}')}"
    body = a_deployment(nodeSelector={"gpuplan.dev/pool": "parts"})
    body["spec"]["template"]["metadata"]["annotations"] = {"gpu-fraction": "0.5"}
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
    found = imported(a_plan(f"{platform}{tenant('lab', 'pool: parts, unit: fraction, guaranteed: 4')}"), [body])
    assert "it asks for `fraction`, which pool `parts` hands out" in told(found).finding.notes


def test_work_that_asks_for_no_gpu_is_nobodys_business() -> None:
    body = a_deployment()
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    assert imported(a_plan(PLATFORM), [body]) == Found()


def test_work_that_has_ended_is_passed_over() -> None:
    body = {**a_deployment(), "apiVersion": "batch/v1", "kind": "Job"}
    body["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert imported(a_plan(PLATFORM), [body]) == Found()


# --- Any shape -------------------------------------------------------------------------------------------------------

_SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 70000) | st.sampled_from(["", "main", "http", "1", "lab", "gpu"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "spec", "1"]), inner, max_size=2)
    ),
    max_leaves=4,
)
APIS = (
    "  apis: [HTTPRoute, InferenceService, JobSet, LeaderWorkerSet, ScaledObject, TrainJob]\n"
    "  gateway: {name: public, namespace: gateways}\n  ingress: {className: nginx}\n"
    "  prometheus: {url: 'http://prometheus:9090'}\n"
)
KINDS_OF_ALL = (
    "config: {a: b}, inference: {probe: {http: /h}, startup: 10m, autoscaling: {maxReplicas: 2, cpuPercent: 70}}",
    "batch: {}, cpu: '2', env: {A: b}, model: {size: 1Gi, download: {image: 'r.example.com/f:1'}}",
    "inference: {route: {hosts: [a.example.com], kind: HTTPRoute}, canary: {weight: 10}, liveness: {grpc: a}}",
    "inference: {route: {hosts: [a.example.com]}, autoscaling: {maxReplicas: 2, query: {promql: up, perPod: 1}}}",
    "inference: {podsPerReplica: 2, worker: {args: [a]}}",
    "inference: {kind: InferenceService}",
    "training: {pods: 2, peers: {}, elastic: {minPods: 1}, checkpoint: {size: 1Gi}, deadline: 1h}",
    "training: {pods: 2, kind: JobSet, peers: {}}",
    "training: {kind: TrainJob, fatalExitCodes: [3]}",
    "workspace: {idle: 1h, storage: {size: 1Gi, group: 100}}",
)


def routes(value: object, route: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [route, *(found for key, item in items for found in routes(item, (*route, key)))]


@settings(max_examples=40)
@given(st.data())
def test_objects_of_any_shape_are_read(data: st.DataObject) -> None:
    scheduler = data.draw(st.sampled_from([*SCHEDULERS]))
    spec = f"tenant: lab, pool: whole, image: 'r.example.com/a:1', {data.draw(st.sampled_from(KINDS_OF_ALL))}"
    text = f"{a_cluster(f'kind: {scheduler}')}{APIS}{PLATFORM}{policy('Workload', 'work', spec)}"
    plan, bodies = written(text)
    bodies.append(a_deployment(nodeSelector=WHOLE, priorityClassName="urgent"))
    body = data.draw(st.sampled_from(bodies))
    *way, last = data.draw(st.sampled_from([route for route in routes(body) if route]))
    changed = deepcopy(body)
    part: Any = changed
    for step in way:
        part = part[step]
    part[last] = data.draw(_SHAPES)
    others = [item for item in bodies if item is not body]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*others, changed]})
    read(read_dump({"dump.json": text.encode()})[0], plan)
