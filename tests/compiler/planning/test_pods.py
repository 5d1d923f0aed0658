"""What pods ask for of CPU and memory, containers that workloads add included."""

from __future__ import annotations

from gpuplan.compiler.planning.plan import Counted, Workload
from gpuplan.compiler.planning.pods import asked_by_main, asked_by_pod, requests_of
from tests.platforms import a_platform, document, pool, tenant


def a_workload(*fields: str, defaults: str = "") -> Workload:
    team = tenant("lab", "pool: a, guaranteed: 8", more=defaults)
    work = document("Workload", "chat", "tenant: lab", "pool: a", 'image: "x:1"', "inference: {}", *fields)
    return a_platform(pool("a"), team, work).workloads[0]


def a_patch(*containers: str, init: str = "") -> str:
    return f"podPatch: {{spec: {{containers: [{', '.join(containers)}], initContainers: [{init}]}}}}"


def test_containers_that_run_together_are_added_up() -> None:
    workload = a_workload('cpu: "4"', a_patch("{name: proxy, resources: {requests: {cpu: 500m, memory: 1Gi}}}"))

    assert asked_by_pod(workload, Counted.CPU) == 4500
    assert asked_by_pod(workload, Counted.MEMORY) == 2**30


def test_a_limit_is_a_request_where_there_is_none() -> None:
    workload = a_workload(a_patch("{name: a, resources: {limits: {cpu: 2}}}", "{name: b}"))

    assert asked_by_pod(workload, Counted.CPU) == 2000
    assert asked_by_main(workload, Counted.CPU) is None


def test_every_form_of_an_amount_counts_and_what_is_none_does_not() -> None:
    signed = a_patch(
        "{name: a, resources: {requests: {cpu: '+100'}}}", "{name: b, resources: {requests: {cpu: '1e2'}}}"
    )
    unreadable = a_patch(
        "{name: a, resources: {requests: {cpu: abc}}}", "{name: b, resources: {requests: {cpu: '-1'}}}"
    )

    assert asked_by_pod(a_workload(signed), Counted.CPU) == 200_000
    assert asked_by_pod(a_workload(unreadable), Counted.CPU) is None


def test_an_init_container_asks_for_itself_and_for_those_before_it_that_go_on() -> None:
    init = (
        "{name: agent, restartPolicy: Always, resources: {requests: {cpu: 1}}}, "
        "{name: fetch, resources: {requests: {cpu: 8}}}"
    )

    assert asked_by_pod(a_workload('cpu: "2"', a_patch(init=init)), Counted.CPU) == 9000
    assert asked_by_pod(a_workload('cpu: "10"', a_patch(init=init)), Counted.CPU) == 11000


def test_containers_that_say_nothing_have_the_default_of_their_tenant() -> None:
    workload = a_workload(a_patch("{name: proxy}"), defaults="containers: {cpu: {request: 250m}}")

    assert asked_by_pod(workload, Counted.CPU) == 500


def test_what_is_said_of_main_is_no_container_of_its_own() -> None:
    workload = a_workload('cpu: "4"', a_patch("{name: main, stdin: true}", "{name: old, $patch: delete}"))

    assert [request.container for request in requests_of(workload, Counted.CPU)] == [""]


def test_each_request_is_where_the_patch_says_it() -> None:
    workload = a_workload(a_patch("{name: proxy, resources: {limits: {memory: 1Gi}}}"))

    (request,) = requests_of(workload, Counted.MEMORY)

    assert str(request.at) == "spec.podPatch.spec.containers[0].resources.limits.memory"
