"""What a change says beside its class: nodes, capacity, grants, pods, drains, reboots, folders, windows and texts."""

from __future__ import annotations

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests import Subject
from gpuplan.features.changes.model import CapacityChange, Change, GrantChange, NodeImpact
from tests.features.changes import edits
from tests.features.changes.platform import Edit, Platform, between, original, state


def change(before: Edit, edit: Edit, kind: str, name: str, cluster: str = "prod") -> Change:
    """The worst change of a subject."""
    return changes(before, edit, kind, name, cluster)[0]


def changes(before: Edit, edit: Edit, kind: str, name: str, cluster: str = "prod") -> list[Change]:
    found = between(state(before), state(before, edit)).changes
    return [item for item in found if (item.cluster, *item.subject) == (cluster, kind, name)]


def test_a_layout_edited_in_place_says_who_must_end_and_what_vanishes() -> None:
    found = change(original, edits.edit_a_layout, "Pool", "a100-small")
    assert found.change_class is ChangeClass.TWO_STEP
    assert found.what == "layout `seven-small` is edited: from 7x 1g.10gb to 5x 1g.10gb and 1x 2g.20gb"
    assert found.effect == (
        "`seven-small-2d7d978e` vanishes while nodes still name it, as policies say (`--nodes FILE` shows which): one "
        "that restarts before its label moves fails; "
        "mig-manager sets up the GPUs of 1 node at once and drains none: pods that hold them must end first"
    )
    assert found.nodes == NodeImpact(1, (), "gpu-a100-small-[0-9]+")
    assert found.capacity == (
        CapacityChange("a100-small", "1g.10gb", 56, 40),
        CapacityChange("a100-small", "2g.20gb", 0, 8),
    )
    assert found.pods == 56
    assert found.needs_drain
    assert found.folders == ("gpu-operator", "partitions/a100-small", "scheduling", "monitoring")


def test_mig_stays_on_from_one_layout_to_another_so_that_nothing_reboots() -> None:
    assert not change(original, edits.swap_a_layout, "Pool", "a100-small").needs_reboot


def test_a_switch_of_mig_reboots_nodes_where_the_policy_lets_it() -> None:
    def partition_on_dev(platform: Platform) -> None:
        platform.add(
            "Pool", "spare", {"sharing": {"mig": {"layout": "seven-small"}, "exclusive": None}}, "overlays/dev"
        )

    def spare(platform: Platform) -> None:
        nodes = {"count": 1, "gpusPerNode": 8, "namePattern": "gpu-spare-[0-9]+"}
        spec = {"gpu": "A100-80GB", "nodes": nodes, "sharing": {"exclusive": {}}, "workloadTypes": ["tests"]}
        platform.add("Pool", "spare", spec)

    on_prod = change(edits.add_a_spare_pool, edits.partition_the_spare_pool, "Pool", "spare")
    on_dev = change(spare, partition_on_dev, "Pool", "spare", "dev")
    assert (on_prod.needs_reboot, on_dev.needs_reboot) == (True, False)
    assert on_prod.needs_drain
    assert on_dev.needs_drain


def test_pods_at_risk_are_no_more_than_tenants_may_have() -> None:
    """Two nodes of a100-mixed hand out 48 units, of which model-services may have what it is granted."""

    def move(platform: Platform) -> None:
        cut(platform)
        platform.spec("MigLayout", "one-large-two-medium")["instances"] = {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}

    def cut(platform: Platform) -> None:
        platform.spec("Tenant", "model-services")["quotas"][0]["guaranteed"] = 10

    assert change(cut, move, "Pool", "a100-mixed").pods == 10 + 32


def test_windows_of_a_repartition_are_the_pools() -> None:
    def swap(platform: Platform) -> None:
        platform.spec("MigLayout", "two-large")["instances"] = {"4g.40gb": 1, "3g.40gb": 1}

    found = change(original, swap, "Pool", "a100-production")
    assert [(window.schedule, window.duration) for window in found.windows] == [("0 2 * * 6", "4h")]


def test_replicas_change_capacity_and_touch_no_node_label() -> None:
    found = change(original, edits.change_replicas_of_a_pool, "Pool", "a100-shared")
    assert found.what == "GPUs are shared otherwise: from time-slicing with 3 shares to time-slicing with 4 shares"
    assert found.capacity == (CapacityChange("a100-shared", "shared", 96, 128),)
    assert (found.pods, found.needs_drain, found.windows) == (0, False, ())
    assert found.folders == ("gpu-operator", "scheduling")


def test_one_restart_of_the_operators_pods_stands_for_all_its_causes() -> None:
    def edit(platform: Platform) -> None:
        edits.change_replicas_of_a_pool(platform)
        edits.add_an_unused_layout(platform)
        edits.change_helm_values(platform)

    (found,) = changes(original, edit, "Cluster", "prod")
    assert found.what == (
        "the device plugin's file has another `a100-shared`; mig-manager's file gets `whole-bc86fb93`; "
        "settings of `gfd` change"
    )
    assert found.nodes == NodeImpact(12, (), None)
    assert found.pods == 0


def test_a_layout_more_restarts_mig_manager_alone() -> None:
    def h100_without_mig(platform: Platform) -> None:
        platform.spec("Pool", "h100-training")["gpu"] = "L40S-48GB"

    (found,) = changes(h100_without_mig, edits.add_an_unused_layout, "Cluster", "prod")
    assert found.nodes == NodeImpact(10, (), None)


def test_a_quota_says_both_numbers_and_that_what_runs_goes_on() -> None:
    found = change(original, edits.cut_a_quota_under_use, "Tenant", "model-services")
    assert found.what == "a100-mixed 3g.40gb: guarantee from 16 to 4, limit from 16 to 4"
    assert found.effect == "pods that run go on, even beyond a quota; new ones wait or are refused"
    assert found.grants == (GrantChange("model-services", "a100-mixed", "3g.40gb", 16, 4, 16, 4),)
    assert found.folders == ("scheduling", "monitoring")


def test_a_removed_tenant_loses_all_of_its_grants() -> None:
    found = change(original, edits.remove_a_tenant, "Tenant", "batch-inference")
    assert found.grants == (GrantChange("batch-inference", "a100-shared", "shared", 12, 0, 12, 0),)
    assert found.pods == 12
    assert found.at.locate().file.path == "policies/tenants/science.yaml"


def test_a_renamed_pool_is_no_change_of_its_tenants_quotas() -> None:
    found = between(state(original), state(edits.rename_a_pool)).changes
    assert [item for item in found if item.subject == Subject("Tenant", "agents")] == []


def test_a_renamed_pool_says_so() -> None:
    found = change(original, edits.rename_a_pool, "Pool", "a100-assistants")
    assert found.what == "pool `a100-agents` is called `a100-assistants`"
    assert found.folders == (
        "argocd",
        "gpu-operator",
        "namespaces/agents",
        "partitions/a100-agents",
        "partitions/a100-assistants",
        "scheduling",
        "monitoring",
    )


def test_nodes_that_go_to_another_pool_are_named() -> None:
    found = change(edits.add_pools_by_name, edits.move_nodes_between_pools, "Pool", "left")
    assert found.what == "1 node goes to pool `right`"
    assert found.nodes == NodeImpact(1, ("gpu-2",), None)
    assert found.folders == ("partitions/left", "partitions/right", "scheduling", "monitoring")


def test_nodes_that_leave_for_no_pool_lose_their_partitions() -> None:
    found = change(edits.add_spare_nodes, edits.leave_nodes_out_of_a_pattern, "Pool", "spare")
    assert found.what == "2 nodes leave the pool for none, as patterns say (`--nodes FILE` shows which)"
    assert found.nodes == NodeImpact(2, (), "gpu-spare-[0-9]+")


def test_nodes_that_leave_node_objects_stay_as_they_are() -> None:
    """Nothing is pruned of them."""

    def named(*names: str) -> Edit:
        def edit(platform: Platform) -> None:
            edits.add_spare_nodes(platform)
            platform.spec("Cluster", "prod", "overlays/prod")["nodeLabels"] = "node"
            nodes = {"count": len(names), "gpusPerNode": 8, "names": list(names)}
            platform.spec("Pool", "spare", "overlays/prod")["nodes"] = nodes

        return edit

    found = between(state(named("s-1", "s-2")), state(named("s-1")))
    (left,) = (item for item in found.changes if item.what == "1 node leaves the pool for none")
    assert (left.change_class, left.nodes) == (ChangeClass.ADMISSION, NodeImpact(1, ("s-2",), None))
    assert left.effect == "labels and taints stay on them until somebody takes them away"


def test_a_pattern_that_other_pools_take_over_moves_nodes() -> None:
    def divide(platform: Platform) -> None:
        platform.spec("Pool", "spare", "overlays/prod")["nodes"].update(count=1, namePattern="gpu-spare-[0-4]+")
        nodes = {"count": 1, "gpusPerNode": 8, "namePattern": "gpu-spare-[0-9]*[5-9][0-9]*"}
        spec = {"gpu": "A100-80GB", "nodes": nodes, "sharing": {"exclusive": {}}, "workloadTypes": ["tests"]}
        platform.add("Pool", "other", spec, "overlays/prod")

    found = change(edits.add_spare_nodes, divide, "Pool", "spare")
    assert found.what == "1 node goes to pool `other`"
    assert found.change_class is ChangeClass.REPARTITION


def test_a_node_that_comes_to_a_partitioned_pool_is_named_and_drained() -> None:
    found = change(edits.add_pools_by_name, edits.name_one_more_node, "Pool", "right")
    assert found.what == "`gpu-9` joins"
    assert found.effect == (
        "labels and taints come to 1 node; mig-manager partitions the GPUs there, on which nothing may run"
    )
    assert found.nodes == NodeImpact(1, ("gpu-9",), None, are_new=True)
    assert found.needs_drain


def test_nodes_that_a_rollout_moves_do_not_join() -> None:
    def roll_out(platform: Platform) -> None:
        spec = platform.spec("Pool", "spare", "overlays/prod")
        spec["rollout"] = {"sharing": {"exclusive": {}}, "nodes": ["gpu-spare-1"]}

    found = changes(edits.add_spare_nodes, roll_out, "Pool", "spare")
    assert [item.change_class for item in found] == [ChangeClass.REPARTITION, ChangeClass.QUOTA]
    assert [item.what for item in found if "join" in item.what] == []


def test_a_cluster_without_partitions_says_nothing_of_them() -> None:
    def add_cluster(platform: Platform) -> None:
        edits.add_a_cluster(platform)
        for name in ("a100-small", "a100-mixed", "a100-production", "a100-agents"):
            body = {"apiVersion": "gpuplan.dev/v1", "kind": "Pool", "metadata": {"name": name, "$patch": "delete"}}
            platform.files.setdefault("overlays/staging/less.yaml", []).append(body)

    (found,) = between(state(original), state(add_cluster)).changes
    assert (found.what, found.effect, found.needs_drain) == ("cluster is added", "the operator is set up", False)


def test_a_rollout_repartitions_the_nodes_that_it_moves() -> None:
    def roll_out(platform: Platform) -> None:
        spec = platform.spec("Pool", "left", "overlays/prod")
        spec["rollout"] = {"sharing": {"mig": {"layout": "seven-small"}}, "nodes": ["gpu-1"]}

    found = change(edits.add_pools_by_name, roll_out, "Pool", "left")
    assert found.change_class is ChangeClass.REPARTITION
    assert found.nodes == NodeImpact(1, ("gpu-1",), None)


def test_the_end_of_a_rollout_repartitions_what_was_left() -> None:
    target = {"mig": {"layout": "seven-small"}}

    def begin(platform: Platform) -> None:
        edits.add_pools_by_name(platform)
        platform.spec("Pool", "left", "overlays/prod")["rollout"] = {"sharing": target, "nodes": ["gpu-1"]}

    def end(platform: Platform) -> None:
        spec = platform.spec("Pool", "left", "overlays/prod")
        spec["sharing"] = spec.pop("rollout")["sharing"]

    found = [item for item in changes(begin, end, "Pool", "left") if item.change_class is ChangeClass.REPARTITION]
    assert [item.nodes for item in found] == [NodeImpact(1, ("gpu-2",), None)]


def test_what_is_removed_is_shown_where_it_was() -> None:
    found = change(edits.add_a_spare_pool, edits.remove_the_spare_pool, "Pool", "spare")
    assert found.at.locate().file.path == "overlays/prod/more.yaml"


def test_an_inline_layout_edited_in_place_vanishes_too() -> None:
    def inline(platform: Platform) -> None:
        platform.spec("Pool", "a100-small")["sharing"]["mig"] = {"instances": {"1g.10gb": 7}}

    def edit(platform: Platform) -> None:
        platform.spec("Pool", "a100-small")["sharing"]["mig"] = {"instances": {"1g.10gb": 6}}

    assert change(inline, edit, "Pool", "a100-small").change_class is ChangeClass.TWO_STEP


def test_a_layout_that_keeps_its_content_under_another_name_needs_no_drain() -> None:
    found = change(original, edits.rename_a_layout, "Pool", "a100-production")
    assert found.what == "layout `two-large` is called `halves`"
    assert (found.needs_drain, found.pods) == (False, 0)


def test_what_becomes_of_queues_is_the_schedulers_way() -> None:
    """Kueue keeps a queue that holds work; KAI-Scheduler lets it go, and what waits in it has none."""

    def kai(platform: Platform) -> None:
        platform.cluster("prod")["scheduler"] = {"kind": "kai"}

    kept, gone = (
        change(before, edits.rename_a_tenant, "Tenant", "assistants").effect.split(", and what queues")[0]
        for before in (original, kai)
    )
    assert kept == "its queues are others: the old ones stay while work is in them"
    assert gone == "its queues are others: the old ones go, and what waits in them is never placed"


def test_what_follows_from_one_pool_is_not_said_of_an_edit_of_another() -> None:
    def edit(platform: Platform) -> None:
        edits.change_an_approval(platform)
        platform.spec("Pool", "h100-training")["taints"] = [{"key": "example.com/a", "effect": "NoSchedule"}]

    restarts = change(original, edit, "Cluster", "prod")
    recreates = change(original, edit, "Workload", "support-tuning")

    assert restarts.what == "settings of `daemonsets` and `node-feature-discovery` change"
    assert restarts.at.locate().file.path == "policies/pools/shared.yaml"
    assert recreates.at.locate().file.path == "policies/pools/shared.yaml"


def test_who_reaches_a_service_is_told() -> None:
    reached, asked, gone = (
        change(original, edit, "Workload", "embeddings")
        for edit in (edits.reach_a_service_at_the_nodes, edits.ask_a_service_by_http, edits.take_the_port_of_a_service)
    )

    assert (reached.effect, reached.pods) == (
        "it is reached at other ports, or from elsewhere; nothing that runs is disturbed",
        0,
    )
    assert (asked.effect, asked.pods) == ("its pods are recreated, one after the other", 8)
    assert (gone.effect, gone.pods) == (
        "its pods are recreated, one after the other, and its Service goes: who calls it finds nobody",
        8,
    )


def test_what_a_training_becomes_is_told() -> None:
    """Its pods are counted as those that end, and their checkpoints are not said to go."""
    other, together, by_trainer = (
        change(before, edit, "Workload", "support-tuning")
        for before, edit in (
            (original, edits.change_a_training),
            (edits.have_job_sets, edits.start_a_training_again_together),
            (edits.have_trainer_run_a_training, edits.change_a_training_of_trainer),
        )
    )

    again = "is another one: the pods end, and the new ones start from the beginning"
    assert (other.effect, other.pods) == (f"its Job {again}", 4)
    assert (together.effect, together.pods) == (f"its JobSet {again}", 4)
    assert (by_trainer.effect, by_trainer.pods) == (f"its TrainJob {again}", 4)


def _with_workspace(storage: object) -> Edit:
    def edit(platform: Platform) -> None:
        workspace = {"runTime": "12h", "storage": storage}
        spec = {"tenant": "research", "pool": "a100-shared", "image": "example.com/lab:1", "workspace": workspace}
        platform.add("Workload", "notebook", spec)

    return edit


def _run_longer(platform: Platform) -> None:
    platform.spec("Workload", "notebook")["workspace"]["runTime"] = "24h"


def _make_it_a_batch(platform: Platform) -> None:
    spec = platform.spec("Workload", "notebook")
    spec["batch"] = {"deadline": spec.pop("workspace")["runTime"]}


def _remove_it(platform: Platform) -> None:
    platform.remove("Workload", "notebook")


def test_whoever_works_in_a_workspace_is_told_what_stays() -> None:
    begins = "its Job is another one: the pod ends, whoever works in it or not, and a new one starts"
    kept, lost, gone, removed = (
        change(before, edit, "Workload", "notebook")
        for before, edit in (
            (_with_workspace({"size": "10Gi"}), _run_longer),
            (_with_workspace(None), _run_longer),
            (_with_workspace(None), _make_it_a_batch),
            (_with_workspace({"size": "10Gi"}), _remove_it),
        )
    )
    assert (kept.what, kept.effect, kept.pods) == ("changes: workspace run time", f"{begins}; its volume stays", 1)
    assert lost.effect == f"{begins}; nothing of it stays"
    assert gone.effect.endswith("and its Service goes: who calls it finds nobody")
    assert removed.effect == "its pods end, and its volume goes when a person confirms it"


def _remove_embeddings(platform: Platform) -> None:
    platform.remove("Workload", "embeddings")


def test_the_last_work_of_a_namespace_runs_on_when_it_leaves() -> None:
    assert change(original, _remove_embeddings, "Workload", "embeddings").effect == (
        "its pods run on until a person deletes them"
    )


def _scaled(before: Edit, edit: Edit) -> tuple[str, int]:
    found = change(before, edit, "Workload", "embeddings")
    return found.effect, found.pods


def test_pods_that_end_are_counted() -> None:
    assert _scaled(original, edits.change_replicas_of_a_workload) == ("2 of 8 pods end", 2)
    by_load = edits.have_the_load_say_how_many
    assert _scaled(by_load, edits.state_fewer_replicas) == ("up to 2 of 8 pods end", 2)
    assert _scaled(by_load, edits.need_fewer_pods_at_least) == ("6 pods may end when there is less to do", 6)
    assert _scaled(by_load, edits.state_all_replicas)[1] == 0


def test_a_number_that_is_stated_no_more_is_one_at_first() -> None:
    effect, pods = _scaled(original, edits.have_the_load_say_how_many)
    assert pods == 7
    assert effect.startswith(
        "`spec.replicas` leaves its Deployment and is 1: 7 of 8 pods end, and its autoscaler then starts 8 replicas at"
    )
    assert effect.endswith(
        "none ends where another field manager has `replicas: 8` before the sync "
        "(`kubectl apply --server-side --field-manager=handover`)"
    )


def test_of_another_kind_of_object_no_number_leaves() -> None:
    def have_groups_by_load(platform: Platform) -> None:
        edits.give_replicas_a_worker(platform)
        edits.have_the_load_say_how_many(platform)

    effect, pods = _scaled(edits.have_leader_worker_sets, have_groups_by_load)
    assert "spec.replicas" not in effect
    assert pods == 8


def test_what_keda_leaves_idle_stays_so() -> None:
    goes = "the HorizontalPodAutoscaler of KEDA is deleted with its ScaledObject, and nothing scales "
    goes += "until the next sync creates a HorizontalPodAutoscaler"
    idle, _ = _scaled(edits.let_keda_scale_to_zero, edits.scale_without_keda)
    busy, _ = _scaled(edits.let_keda_keep_one, edits.scale_without_keda)
    assert idle.startswith("an idle service stays at 0 pods")
    assert "kubectl scale -n small-inference deployment/embeddings --replicas=1" in idle
    assert idle.endswith(goes)
    assert busy == goes


def test_what_becomes_of_a_volume_is_told() -> None:
    smaller, larger, elsewhere, none = (
        change(edits.keep_checkpoints, edit, "Workload", "support-tuning")
        for edit in (
            edits.keep_fewer_checkpoints,
            edits.keep_more_checkpoints,
            edits.keep_checkpoints_elsewhere,
            edits.keep_no_checkpoints,
        )
    )
    refuses, claim = "the API server refuses", "`support-tuning-checkpoint`"
    without = "and its folder is not synced: it takes its claim to be deleted first, and all that is in it goes"
    assert (smaller.effect, smaller.pods) == (f"{refuses} a smaller size of volume {claim}, {without}", 0)
    assert elsewhere.effect == f"{refuses} another StorageClass of volume {claim}, {without}"
    assert "grows where its StorageClass has `allowVolumeExpansion: true`" in larger.effect
    assert none.effect.endswith(f"; its volume {claim} goes when a person confirms it, with all that is in it")


def test_a_workspace_keeps_no_volume_that_is_refused() -> None:
    def keep_less(platform: Platform) -> None:
        _run_longer(platform)
        platform.spec("Workload", "notebook")["workspace"]["storage"]["size"] = "5Gi"

    found = change(_with_workspace({"size": "10Gi"}), keep_less, "Workload", "notebook")
    assert "its volume stays" not in found.effect
    assert "refuses a smaller size of volume `notebook-storage`" in found.effect


def test_another_way_to_a_service_is_named() -> None:
    def serve_ingresses(platform: Platform) -> None:
        platform.cluster("prod")["ingress"] = {"className": "nginx"}

    found = change(edits.route_a_service, serve_ingresses, "Workload", "embeddings")
    assert found.effect == (
        "it is reached from outside as `embeddings.example.com/` by the controller of IngressClass `nginx`, and no "
        "longer by Gateway `gateways/public`: its HTTPRoute goes, and its Ingress comes; its hosts must lead there; "
        "nothing that runs is disturbed"
    )
    moved = change(edits.route_a_service, edits.route_by_another_gateway, "Workload", "embeddings")
    assert "by Gateway `gateways/private`, and no longer by Gateway `gateways/public`; its hosts" in moved.effect


def test_whose_requests_move_is_told() -> None:
    def take_a_path(platform: Platform) -> None:
        platform.spec("Workload", "chat")["inference"]["route"] = {"hosts": ["embeddings.example.com"], "path": "/v1"}

    def take_another(platform: Platform) -> None:
        platform.spec("Workload", "chat")["inference"]["route"] = {"hosts": ["chat.example.com"], "path": "/v1"}

    found = change(edits.route_a_service, take_a_path, "Workload", "chat")
    moved = "; requests for `embeddings.example.com/v1` come to it, and no longer to `embeddings` of tenant "
    assert found.effect.endswith(f"{moved}`small-inference`")
    assert found.change_class is ChangeClass.ADMISSION
    assert "requests for" not in change(edits.route_a_service, take_another, "Workload", "chat").effect


def test_what_a_canary_gets_and_what_becomes_of_it_is_told() -> None:
    tried, weighed, other, promoted, given_up = (
        change(before, edit, "Workload", "embeddings")
        for before, edit in (
            (edits.route_a_service, edits.try_a_canary),
            (edits.try_a_canary, edits.weigh_a_canary),
            (edits.try_a_canary, edits.try_another_canary),
            (edits.try_a_canary, edits.promote_a_canary),
            (edits.try_a_canary, edits.give_up_a_canary),
        )
    )

    at_ease = "nothing that runs is disturbed"
    assert (tried.effect, tried.pods) == (f"a canary with 1 pod gets 10 of 100 requests; {at_ease}", 0)
    assert (weighed.effect, weighed.pods) == (f"the canary gets 50 of 100 requests, not 10; {at_ease}", 0)
    assert (other.effect, other.pods) == (
        "the canary gets 10 of 100 requests, and its pods are recreated, one after the other",
        1,
    )
    gone = "the pod of the canary ends, and all requests go to the other pods"
    assert (promoted.effect, promoted.pods) == (f"its pods are recreated, one after the other; {gone}", 9)
    assert (given_up.effect, given_up.pods) == (gone, 1)


def test_who_reaches_a_service_from_outside_is_told() -> None:
    routed = change(original, edits.route_a_service, "Workload", "embeddings")
    moved = change(edits.route_a_service, edits.route_by_another_gateway, "Workload", "embeddings")

    assert routed.effect == "it is reached from outside as `embeddings.example.com/`; nothing that runs is disturbed"
    assert moved.what == "another object leads to it on the cluster"


def test_how_nodes_are_chosen_is_said_in_the_words_of_the_pool() -> None:
    def match_more(platform: Platform) -> None:
        platform.spec("Pool", "a100-shared")["nodes"]["namePattern"] = "gpu-a100-shared-[0-9a-f]+"

    def name_it(platform: Platform) -> None:
        nodes = platform.spec("Pool", "a100-small")["nodes"]
        nodes["names"] = [nodes.pop("namePattern").replace("[0-9]+", "1")]

    matched = {item.what for item in changes(original, match_more, "Pool", "a100-shared")}
    assert "the nodes' names match `gpu-a100-shared-[0-9a-f]+`" in matched
    assert [item.what for item in changes(original, name_it, "Pool", "a100-small")] == ["nodes are named"]


def test_what_is_lent_changes_where_the_scheduler_bounds_it() -> None:
    def lend_less(platform: Platform) -> None:
        platform.spec("Tenant", "training")["quotas"][0]["lendable"] = 5

    found = change(original, lend_less, "Tenant", "training")
    assert found.what == "h100-training shared is divided or lent otherwise"
    assert changes(original, lend_less, "Tenant", "training", "openshift") == []
