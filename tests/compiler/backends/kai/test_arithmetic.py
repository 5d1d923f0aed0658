"""What KAI-Scheduler's own arithmetic lets tenants run is what the policy grants them, for any tree of tenants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction as Ratio

from hypothesis import given

from gpuplan.compiler.planning.kai import Queue, queue_name, queues
from tests.compiler.backends.kai.trees import SLICES, Team, allowed_slices, guaranteed_slices, planned, teams

# --- KAI-Scheduler's arithmetic ----------------------------------------------------------------------------------


def way_up(name: str, by_name: Mapping[str, Queue]) -> Iterable[Queue]:
    while name:
        yield by_name[name]
        name = by_name[name].parent


class Cluster:
    """Queues with work in them. Both checks hold for a queue and for all above it.

    (`isOverLimit` in `max_allowed_check.go` and `isAllocatedNonPreemptibleOverQuota` in `quota_check.go` below
    `pkg/scheduler/plugins/proportion/capacity_policy` of KAI-Scheduler.)
    """

    def __init__(self, found: Iterable[Queue]) -> None:
        self.queues = {queue.name: queue for queue in found}
        self.used = dict.fromkeys(self.queues, Ratio(0))
        self.used_for_good = dict.fromkeys(self.queues, Ratio(0))

    def may_run(self, name: str, gpus: Ratio | int, *, preemptible: bool) -> bool:
        if not gpus:
            return True
        for queue in way_up(name, self.queues):
            if queue.limit is not None and self.used[queue.name] + gpus > queue.limit:
                return False
            if not preemptible and self.used_for_good[queue.name] + gpus > queue.quota:
                return False
        return True

    def run(self, name: str, gpus: Ratio | int) -> None:
        """Work that is not preemptible."""
        assert self.may_run(name, gpus, preemptible=False)
        for queue in way_up(name, self.queues):
            self.used[queue.name] += gpus
            self.used_for_good[queue.name] += gpus


# --- What holds --------------------------------------------------------------------------------------------------


@given(teams())
def test_all_guarantees_hold_at_once(team: tuple[Team, ...]) -> None:
    cluster = Cluster(queues(planned(team)))
    workers = [queue for queue in cluster.queues.values() if queue.takes_work]
    for queue in workers:
        cluster.run(queue.name, queue.quota)
    assert not any(cluster.may_run(queue.name, 1, preemptible=False) for queue in workers)


@given(teams())
def test_what_tenants_are_guaranteed_adds_up(team: tuple[Team, ...]) -> None:
    """Queues at the top hold all that totals count, in compute slices."""
    plan = planned(team)
    wanted = sum(SLICES[total.unit.name] * int(total.guaranteed) for total in plan.totals)
    assert sum(queue.quota for queue in queues(plan) if not queue.parent) == wanted


@given(teams())
def test_a_tenant_alone_may_use_its_limit_and_no_more(team: tuple[Team, ...]) -> None:
    by_name = {member.name: member for member in team}
    found = queues(planned(team))
    for queue in found:
        member = by_name[queue.tenant.name]
        if queue.takes_work and not member.parent:
            cluster, limit = Cluster(found), allowed_slices(member)
            assert cluster.may_run(queue.name, 1000 if limit is None else limit, preemptible=True)
            assert limit is None or not cluster.may_run(queue.name, limit + 1, preemptible=True)


@given(teams())
def test_a_tenant_without_children_has_its_guarantee_to_itself(team: tuple[Team, ...]) -> None:
    found = {queue.name: queue for queue in queues(planned(team))}
    parents = {member.parent for member in team}
    for member in team:
        if member.grants and member.name not in parents:
            assert found[queue_name(member.name, "mig")].quota == guaranteed_slices(member)


@given(teams())
def test_a_queue_holds_all_that_is_promised_below_it(team: tuple[Team, ...]) -> None:
    found = queues(planned(team))
    for queue in found:
        below = sum((child.quota for child in found if child.parent == queue.name), Ratio(0))
        assert queue.takes_work or below <= queue.quota
        assert queue.limit is None or queue.quota <= queue.limit


@given(teams())
def test_work_is_named_by_leaves_and_by_every_tenant_that_has_some(team: tuple[Team, ...]) -> None:
    """KAI-Scheduler passes over work in a queue with others below it (`PushJob` in `job_order_by_queue.go`)."""
    found = queues(planned(team))
    above = {queue.parent for queue in found}
    assert {queue.name for queue in found if queue.takes_work} == {queue.name for queue in found} - above
    working = {queue_name(member.name, "mig") for member in team if member.has_namespaces and member.grants}
    assert working <= {queue.name for queue in found if queue.takes_work}


@given(teams())
def test_a_queue_comes_after_the_one_above_it(team: tuple[Team, ...]) -> None:
    seen = {""}
    for queue in queues(planned(team)):
        assert queue.parent in seen
        assert queue.name not in seen
        seen.add(queue.name)
