"""Edits to the example platform, each with the class that it must get and what it must name."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests import Subject
from tests.features.changes.platform import Edit, Platform, original

NONE = ChangeClass.NONE
METADATA = ChangeClass.METADATA
QUOTA = ChangeClass.QUOTA
PLUGIN_RESTART = ChangeClass.PLUGIN_RESTART
ADMISSION = ChangeClass.ADMISSION
PREEMPTION_ORDER = ChangeClass.PREEMPTION_ORDER
REPARTITION = ChangeClass.REPARTITION
RECREATE = ChangeClass.RECREATE
TWO_STEP = ChangeClass.TWO_STEP
DESTRUCTIVE = ChangeClass.DESTRUCTIVE


class Case(NamedTuple):
    """An edit of a platform; ``worst`` is the class of all that comes of it, where that is not the subject's."""

    edit: Edit
    change_class: ChangeClass
    subject: Subject | None
    before: Edit = original
    worst: ChangeClass | None = None

    @property
    def name(self) -> str:
        return self.edit.__name__


# --- Nothing that is applied -------------------------------------------------------------------------------------


def rename_a_file(platform: Platform) -> None:
    platform.files["policies/pools/time-slicing.yaml"] = platform.files.pop("policies/pools/shared.yaml")


def reorder_documents(platform: Platform) -> None:
    for documents in platform.files.values():
        documents.reverse()


def reformat(platform: Platform) -> None:
    for path, documents in platform.files.items():
        flow = yaml.safe_dump_all(documents, default_flow_style=True, sort_keys=True, width=60)
        platform.text[path] = f"# rewritten\n\n{flow}"


def move_a_document_to_another_file(platform: Platform) -> None:
    platform.files["policies/layouts.yaml"] += platform.files.pop("policies/priority-classes.yaml")


def change_workload_types(platform: Platform) -> None:
    platform.spec("Pool", "a100-shared")["workloadTypes"].append("notebooks")
    platform.spec("Tenant", "research")["workloadTypes"].append("notebooks")


def change_max_unavailable(platform: Platform) -> None:
    platform.spec("Pool", "a100-production")["disruption"]["maxUnavailable"] = 2


# --- Metadata ----------------------------------------------------------------------------------------------------


def change_a_description(platform: Platform) -> None:
    platform.spec("PriorityClass", "training")["description"] = "Runs with checkpoints."


def guard_a_pool(platform: Platform) -> None:
    platform.spec("Pool", "h100-training")["disruption"] = {"guard": {"image": "registry.example.com/python:3.13"}}


def stop_guarding_a_pool(platform: Platform) -> None:
    del platform.spec("Pool", "a100-production")["disruption"]["guard"]


def change_a_window(platform: Platform) -> None:
    platform.spec("Pool", "a100-production")["disruption"]["windows"][0]["duration"] = "6h"


def change_how_drivers_are_upgraded(platform: Platform) -> None:
    policy = {"upgradePolicy": {"maxParallelUpgrades": 2}}
    platform.cluster("prod")["gpuOperator"]["values"] = {"driver": policy}


def say_prices(platform: Platform) -> None:
    spec = {
        "currency": "EUR",
        "gpus": {"A100-80GB": {"perGpuHour": {"any": 2, "spot": 1}}, "H100-80GB": {"perGpuHour": 4}},
    }
    platform.add("Prices", "list", spec, "overlays/prod")


def change_a_price(platform: Platform) -> None:
    platform.spec("Prices", "list", "overlays/prod")["gpus"]["H100-80GB"] = {"perGpuHour": "4.50"}


def pay_for_spot_nodes(platform: Platform) -> None:
    platform.spec("Pool", "a100-shared")["billing"] = {"term": "spot"}


def change_an_approval(platform: Platform) -> None:
    platform.spec("Pool", "a100-agents")["disruption"] = {"approval": "automatic"}


def change_labels_of_applications(platform: Platform) -> None:
    platform.cluster("prod")["argocd"]["labels"] = {"team": "platform"}


def change_labels_of_monitoring(platform: Platform) -> None:
    platform.cluster("prod")["monitoring"]["labels"] = {"release": "prometheus"}


def disable_an_alert(platform: Platform) -> None:
    platform.cluster("prod")["monitoring"]["disabledAlerts"] = ["GpuFragmentation"]


def stop_monitoring(platform: Platform) -> None:
    del platform.cluster("prod")["monitoring"]


def add_a_node_label(platform: Platform) -> None:
    platform.spec("Pool", "a100-mixed")["nodeLabels"] = {"example.com/rack": "r1"}


# --- Quota -------------------------------------------------------------------------------------------------------


def add_a_node(platform: Platform) -> None:
    platform.spec("Pool", "h100-training")["nodes"]["count"] = 3


def take_a_node(platform: Platform) -> None:
    platform.spec("Pool", "a100-shared")["nodes"]["count"] = 3


def raise_a_quota(platform: Platform) -> None:
    platform.spec("Tenant", "research")["quotas"][0]["guaranteed"] = 40


def cut_a_quota_under_use(platform: Platform) -> None:
    platform.spec("Tenant", "model-services")["quotas"][0]["guaranteed"] = 4


def raise_a_limit(platform: Platform) -> None:
    platform.spec("Tenant", "batch-inference")["quotas"][0]["limit"] = 20


def add_a_tenant(platform: Platform) -> None:
    spec = {"namespaces": ["robotics"], "quotas": [{"pool": "a100-shared", "guaranteed": 2}]}
    platform.add("Tenant", "robotics", spec, "overlays/prod")


def add_a_namespace(platform: Platform) -> None:
    platform.spec("Tenant", "batch-inference")["namespaces"].append("batch-inference-test")


def change_replicas_of_a_workload(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["replicas"] = 6


def raise_replicas_of_a_workload(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["replicas"] = 7


def have_the_load_say_how_many(platform: Platform) -> None:
    inference = platform.spec("Workload", "embeddings")["inference"]
    inference["autoscaling"] = {"minReplicas": inference.pop("replicas"), "maxReplicas": 8, "requestsPerSecond": 50}


def have_one_replica(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["replicas"] = 1


def bound_the_load(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["autoscaling"]["maxReplicas"] = 7


def need_fewer_pods_at_least(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["autoscaling"]["minReplicas"] = 2


def state_fewer_replicas(platform: Platform) -> None:
    inference = platform.spec("Workload", "embeddings")["inference"]
    inference["replicas"] = 6
    del inference["autoscaling"]


def state_all_replicas(platform: Platform) -> None:
    state_fewer_replicas(platform)
    platform.spec("Workload", "embeddings")["inference"]["replicas"] = 8


def let_keda_scale_to_zero(platform: Platform) -> None:
    route_a_service(platform)
    query = {"promql": "sum(rate(requests_total[2m]))", "perPod": 5}
    scaling = {"minReplicas": 0, "maxReplicas": 8, "query": query}
    inference = platform.spec("Workload", "embeddings")["inference"]
    inference.pop("replicas")
    inference["autoscaling"] = scaling


def let_keda_keep_one(platform: Platform) -> None:
    let_keda_scale_to_zero(platform)
    platform.spec("Workload", "embeddings")["inference"]["autoscaling"]["minReplicas"] = 1


def scale_without_keda(platform: Platform) -> None:
    scaling = platform.spec("Workload", "embeddings")["inference"]["autoscaling"]
    scaling |= {"minReplicas": 1, "requestsPerSecond": 50}
    del scaling["query"]


def change_autoscaling_of_a_workload(platform: Platform) -> None:
    platform.spec("Workload", "chat")["inference"]["autoscaling"]["maxReplicas"] = 6


def reach_a_service_at_the_nodes(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["service"] = {"type": "NodePort", "nodePort": 30080}


def ask_a_service_by_http(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["probe"] = {"http": "/health"}


def route_a_service(platform: Platform) -> None:
    platform.cluster("prod")["apis"] = ["HTTPRoute", "ScaledObject"]
    platform.cluster("prod")["gateway"] = {"name": "public", "namespace": "gateways"}
    platform.cluster("prod")["prometheus"] = {"url": "http://prometheus.monitoring:9090"}
    platform.spec("Workload", "embeddings")["inference"]["route"] = {"hosts": ["embeddings.example.com"]}


def route_by_another_gateway(platform: Platform) -> None:
    platform.cluster("prod")["gateway"]["name"] = "private"


def try_a_canary(platform: Platform) -> None:
    route_a_service(platform)
    canary = {"weight": 10, "image": "registry.example.com/embeddings:9.0.0"}
    platform.spec("Workload", "embeddings")["inference"]["canary"] = canary


def weigh_a_canary(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["canary"]["weight"] = 50


def try_another_canary(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["canary"]["image"] = "registry.example.com/embeddings:9.0.1"


def promote_a_canary(platform: Platform) -> None:
    spec = platform.spec("Workload", "embeddings")
    spec["image"] = spec["inference"].pop("canary")["image"]


def give_up_a_canary(platform: Platform) -> None:
    del platform.spec("Workload", "embeddings")["inference"]["canary"]


def let_keda_scale(platform: Platform) -> None:
    scaling = platform.spec("Workload", "chat")["inference"]["autoscaling"]
    scaling["kind"] = "ScaledObject"


def take_the_port_of_a_service(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["port"] = "none"


def have_leader_worker_sets(platform: Platform) -> None:
    cluster = platform.spec("Cluster", "prod", "overlays/prod")
    cluster["apis"] = ["LeaderWorkerSet"]
    cluster["scheduler"]["kueue"] = {"frameworks": ["LeaderWorkerSet"]}


def give_replicas_a_worker(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["podsPerReplica"] = 2


def have_replicas_with_a_worker(platform: Platform) -> None:
    have_leader_worker_sets(platform)
    give_replicas_a_worker(platform)


def tell_workers_what_to_run(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["inference"]["worker"] = {"args": ["--join"]}


def add_a_workload(platform: Platform) -> None:
    spec = {"tenant": "batch-inference", "training": {}, "pool": "a100-shared", "image": "registry.example.com/x:1.0.0"}
    platform.add("Workload", "scoring", spec, "overlays/prod")


# --- Restarts ----------------------------------------------------------------------------------------------------


def change_replicas_of_a_pool(platform: Platform) -> None:
    platform.spec("Pool", "a100-shared")["sharing"]["timeSlicing"]["replicas"] = 4


def time_slicing_to_mps(platform: Platform) -> None:
    sharing = {"timeSlicing": None, "mps": {"replicas": 2}}
    platform.add("Pool", "h100-training", {"sharing": sharing}, "overlays/prod")


def change_replicas_beside_mps(platform: Platform) -> None:
    change_replicas_of_a_pool(platform)


def upgrade_an_operator_beside_mps(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"].update(version="v26.7.1", driver={"version": "595.91.07"})


def mps_with_a_pinned_driver(platform: Platform) -> None:
    time_slicing_to_mps(platform)
    platform.cluster("prod")["gpuOperator"]["driver"] = {"version": "595.91.07"}


def watch_closer_beside_mps(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["values"] = {"gfd": {"resources": {"limits": {"memory": "200Mi"}}}}


def mps_to_time_slicing(platform: Platform) -> None:
    platform.spec("Pool", "h100-training", "overlays/prod")["sharing"] = {"timeSlicing": {"replicas": 2}}


def add_pools_with_mps(platform: Platform) -> None:
    add_pools_by_name(platform)
    for name in ("left", "right"):
        platform.spec("Pool", name, "overlays/prod")["sharing"] = {"mps": {"replicas": 4}}


def move_nodes_between_pools_with_mps(platform: Platform) -> None:
    move_nodes_between_pools(platform)


def add_whole_pools_and_one_with_mps(platform: Platform) -> None:
    add_whole_pools(platform)
    platform.spec("Pool", "right", "overlays/prod")["sharing"] = {"mps": {"replicas": 4}}


def move_whole_nodes_to_a_pool_with_mps(platform: Platform) -> None:
    move_whole_nodes_between_pools(platform)


def add_an_unused_layout(platform: Platform) -> None:
    platform.add("MigLayout", "whole", {"gpu": "A100-80GB", "instances": {"7g.80gb": 1}})


def edit_an_unused_layout(platform: Platform) -> None:
    platform.spec("MigLayout", "whole")["instances"] = {"4g.40gb": 1}


def remove_an_unused_layout(platform: Platform) -> None:
    platform.remove("MigLayout", "whole")


def edit_an_unused_layout_and_retain_it(platform: Platform) -> None:
    edit_an_unused_layout(platform)
    was = {"configName": "whole-bc86fb93", "gpu": "A100-80GB", "instances": {"7g.80gb": 1}}
    for cluster in ("dev", "openshift", "prod"):
        platform.add("Retained", "whole", {"migLayout": was, "until": "no node names it"}, f"overlays/{cluster}")


def rename_an_unused_layout(platform: Platform) -> None:
    platform.rename("MigLayout", "whole", "all")


def add_a_spare_pool(platform: Platform) -> None:
    platform.add("Pool", "spare", _SPARE, "overlays/prod")


def upgrade_an_operator_with_its_driver_pinned(platform: Platform) -> None:
    platform.cluster("openshift")["gpuOperator"]["version"] = "v26.7.1"


def change_helm_values(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["values"] = {"gfd": {"resources": {"limits": {"memory": "200Mi"}}}}


def change_the_mig_strategy(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["migStrategy"] = "mixed"


def stop_reboots(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["rebootOnMigChange"] = False


def give_unlabelled_nodes_a_file(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["defaultDevicePluginConfig"] = "a100-shared"


def close_visible_devices(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["closeVisibleDevices"] = True


# --- Admission ---------------------------------------------------------------------------------------------------


def change_a_taint(platform: Platform) -> None:
    platform.spec("Pool", "a100-agents")["taints"][0]["value"] = "agents"


def remove_a_taint(platform: Platform) -> None:
    platform.spec("Pool", "a100-agents")["taints"] = []


def change_a_node_label(platform: Platform) -> None:
    platform.spec("Pool", "a100-mixed")["nodeLabels"] = {"example.com/rack": "r2"}


def remove_a_node_label(platform: Platform) -> None:
    del platform.spec("Pool", "a100-mixed")["nodeLabels"]


def open_a_class_to_a_tenant(platform: Platform) -> None:
    platform.add("Tenant", "agents", {"priorityClasses": ["production-inference", "research"]}, "overlays/openshift")


def let_work_of_a_tenant_evict_its_own(platform: Platform) -> None:
    platform.add("Tenant", "agents", {"priorityClasses": ["production-inference", "research"]}, "overlays/prod")


def change_members(platform: Platform) -> None:
    platform.spec("Tenant", "agents")["members"].append("agents-oncall")


def change_pod_security(platform: Platform) -> None:
    platform.spec("Tenant", "training")["allow"] = {"podSecurity": "restricted"}


def grant_rdma(platform: Platform) -> None:
    """The other tenants may not ask for the network cards any more."""
    platform.spec("Tenant", "training")["allow"] = {"rdma": ["rdma/hca_shared_devices_a"]}


def take_namespaces_by_label(platform: Platform) -> None:
    platform.spec("Tenant", "agents")["labelledNamespaces"] = True


def bound_a_class(platform: Platform) -> None:
    quota = platform.spec("Tenant", "model-services")["quotas"][0]
    quota["classLimits"] = {"production-inference": 1}


def give_containers_defaults(platform: Platform) -> None:
    platform.spec("Tenant", "training")["containers"] = {"memory": {"request": "1Gi", "limit": "4Gi"}}


def take_a_quota_away(platform: Platform) -> None:
    platform.spec("Tenant", "model-services")["quotas"].pop()


def use_kubernetes_without_admission_policies(platform: Platform) -> None:
    platform.cluster("dev")["kubernetes"] = "1.29"


def publish_shares_as_gpus(platform: Platform) -> None:
    platform.spec("Pool", "a100-shared")["sharing"]["timeSlicing"]["rename"] = False


def change_units_per_container(platform: Platform) -> None:
    platform.spec("Tenant", "agents")["allow"] = {"unitsPerContainer": 2}


def bound_the_time_to_end(platform: Platform) -> None:
    platform.spec("Tenant", "training")["allow"] = {"gracePeriod": "90s"}


def only_warn(platform: Platform) -> None:
    platform.cluster("dev")["admission"] = {"enforcement": "warn"}


def only_warn_a_tenant(platform: Platform) -> None:
    platform.spec("Tenant", "training")["admission"] = {"enforcement": "warn"}


def only_warn_in_a_namespace(platform: Platform) -> None:
    platform.spec("Tenant", "training")["admission"] = {"namespaces": {"training": "warn"}}


def allow_several_shares(platform: Platform) -> None:
    platform.spec("Pool", "a100-shared")["sharing"]["timeSlicing"]["failRequestsGreaterThanOne"] = False


def add_an_urgent_class(platform: Platform) -> None:
    platform.add("PriorityClass", "urgent", {"value": 2000, "description": "Incidents."})


def remove_a_class(platform: Platform) -> None:
    platform.remove("PriorityClass", "urgent")


def allow_more_than_is_guaranteed(platform: Platform) -> None:
    platform.spec("Tenant", "development", "overlays/dev")["quotas"][0]["limit"] = 6


def cap_what_is_guaranteed(platform: Platform) -> None:
    platform.cluster("dev")["scheduler"] = {"kind": "kubernetes", "cap": "guaranteed"}


def queue_by_kueue(platform: Platform) -> None:
    platform.cluster("dev")["scheduler"] = {"kind": "kueue"}


def share_whole_gpus(platform: Platform) -> None:
    platform.spec("Pool", "spare", "overlays/prod")["sharing"] = {"timeSlicing": {"replicas": 2}}


# --- Who goes first ----------------------------------------------------------------------------------------------


def make_a_class_the_default(platform: Platform) -> None:
    platform.spec("PriorityClass", "research")["default"] = True


def protect_a_class(platform: Platform) -> None:
    platform.spec("PriorityClass", "training")["preemptible"] = False


def add_parents(platform: Platform) -> None:
    for name in ("science", "industry"):
        platform.add("Tenant", name, {"namespaces": []}, "overlays/prod")
    platform.spec("Tenant", "research")["parent"] = "science"
    platform.spec("Tenant", "training")["parent"] = "industry"
    for name in ("dev", "openshift"):
        platform.remove("Cluster", name)
        platform.files = {path: found for path, found in platform.files.items() if f"overlays/{name}/" not in path}


def move_a_tenant_to_another_parent(platform: Platform) -> None:
    platform.spec("Tenant", "research")["parent"] = "industry"


def change_a_weight(platform: Platform) -> None:
    platform.spec("Tenant", "research")["surplus"] = {"weight": 3}


# --- Partitions --------------------------------------------------------------------------------------------------


def swap_a_layout(platform: Platform) -> None:
    platform.spec("Pool", "a100-small")["sharing"]["mig"]["layout"] = "three-medium"
    platform.spec("Workload", "embeddings")["unit"] = "1g.10gb"


def add_a_shared_pool(platform: Platform) -> None:
    platform.add("Pool", "spare", {**_SPARE, "sharing": {"timeSlicing": {"replicas": 3}}}, "overlays/prod")


def partition_shared_gpus(platform: Platform) -> None:
    partition_the_spare_pool(platform)


def publish_partitions_as_gpus_with_another_layout(platform: Platform) -> None:
    sharing = {"mig": {"layout": "two-large", "strategy": "single"}}
    platform.spec("Pool", "spare", "overlays/prod")["sharing"] = sharing


def add_a_pool_without_approval(platform: Platform) -> None:
    platform.add("Pool", "spare", {**_SPARE, "disruption": {"approval": "automatic"}}, "overlays/prod")


def partition_at_once(platform: Platform) -> None:
    partition_the_spare_pool(platform)


def move_all(platform: Platform) -> None:
    """The last step of a rollout but one: every node has partitions, by a file of another name."""
    add_a_shared_pool(platform)
    spec = platform.spec("Pool", "spare", "overlays/prod")
    spec["rollout"] = {"sharing": {"mig": {"layout": "seven-small"}}, "nodes": ["gpu-spare-1"]}


def move_all_without_approval(platform: Platform) -> None:
    move_all(platform)
    platform.spec("Pool", "spare", "overlays/prod")["disruption"] = {"approval": "automatic"}


def settle(platform: Platform) -> None:
    spec = platform.spec("Pool", "spare", "overlays/prod")
    spec["sharing"] = spec.pop("rollout")["sharing"]
    config = {"version": "v1", "flags": {"migStrategy": "mixed"}}
    retained = {"devicePluginConfig": {"key": "spare.rollout", "config": config}, "until": "no node names it"}
    platform.add("Retained", "spare-rollout", retained, "overlays/prod")


def settle_at_once(platform: Platform) -> None:
    settle(platform)


def partition_the_spare_pool(platform: Platform) -> None:
    platform.spec("Pool", "spare", "overlays/prod")["sharing"] = {"mig": {"layout": "seven-small"}}


def make_the_spare_pool_whole(platform: Platform) -> None:
    platform.spec("Pool", "spare", "overlays/prod")["sharing"] = {"exclusive": {}}


def add_a_partitioned_pool(platform: Platform) -> None:
    platform.add("Pool", "spare", {**_SPARE, "sharing": {"mig": {"layout": "seven-small"}}}, "overlays/prod")


def change_the_driver(platform: Platform) -> None:
    platform.cluster("openshift")["gpuOperator"]["driver"]["version"] = "595.91.08"


def upgrade_an_operator_with_its_own_driver(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["version"] = "v26.7.1"


def edit_a_layout_and_retain_the_old_one(platform: Platform) -> None:
    edit_a_layout(platform)
    was = {"configName": "seven-small-2d7d978e", "gpu": "A100-80GB", "instances": {"1g.10gb": 7}}
    for cluster in ("dev", "openshift", "prod"):
        platform.add("Retained", "seven-small", {"migLayout": was, "until": "no node names it"}, f"overlays/{cluster}")


def move_nodes_between_pools(platform: Platform) -> None:
    platform.spec("Pool", "left", "overlays/prod")["nodes"].update(count=1, names=["gpu-1"])
    platform.spec("Pool", "right", "overlays/prod")["nodes"].update(count=2, names=["gpu-2", "gpu-3"])


def move_nodes_between_pools_alike(platform: Platform) -> None:
    move_nodes_between_pools(platform)


def add_pools_alike(platform: Platform) -> None:
    add_pools_by_name(platform)
    platform.spec("Pool", "left", "overlays/prod")["sharing"] = {"mig": {"layout": "seven-small"}}


def add_whole_pools(platform: Platform) -> None:
    add_pools_by_name(platform)
    platform.spec("Pool", "right", "overlays/prod")["sharing"] = {"exclusive": {}}


def move_whole_nodes_between_pools(platform: Platform) -> None:
    move_nodes_between_pools(platform)


def add_pools_alike_that_others_label(platform: Platform) -> None:
    add_pools_alike(platform)
    platform.cluster("prod")["nodeLabels"] = "external"


def move_nodes_that_others_label(platform: Platform) -> None:
    move_nodes_between_pools(platform)


def split_a_pool(platform: Platform) -> None:
    platform.spec("Pool", "left", "overlays/prod")["nodes"].update(count=1, names=["gpu-1"])
    spec = {
        **platform.spec("Pool", "left", "overlays/prod"),
        "nodes": {"count": 1, "gpusPerNode": 8, "names": ["gpu-2"]},
    }
    platform.add("Pool", "middle", spec, "overlays/prod")


def merge_pools(platform: Platform) -> None:
    platform.remove("Pool", "left")
    platform.spec("Pool", "right", "overlays/prod")["nodes"].update(count=3, names=["gpu-1", "gpu-2", "gpu-3"])


def add_pools_one_of_which_evicts(platform: Platform) -> None:
    add_pools_alike(platform)
    platform.spec("Pool", "right", "overlays/prod")["taints"] = [_EVICTING]


def move_nodes_to_a_pool_that_evicts(platform: Platform) -> None:
    move_nodes_between_pools(platform)


def name_one_more_node(platform: Platform) -> None:
    platform.spec("Pool", "right", "overlays/prod")["nodes"].update(count=2, names=["gpu-3", "gpu-9"])


def name_one_more_node_of_whole_gpus(platform: Platform) -> None:
    platform.spec("Pool", "left", "overlays/prod")["nodes"].update(count=3, names=["gpu-1", "gpu-2", "gpu-9"])


def add_a_partitioned_pool_without_names(platform: Platform) -> None:
    add_a_partitioned_pool(platform)
    spec = platform.spec("Pool", "spare", "overlays/prod")
    spec["nodes"] = {"count": 1, "gpusPerNode": 8}


def name_nodes_that_had_no_name(platform: Platform) -> None:
    platform.spec("Pool", "spare", "overlays/prod")["nodes"]["names"] = ["gpu-9"]


def add_pools_by_name(platform: Platform) -> None:
    mig = {"mig": {"layout": "seven-small"}}
    for name, nodes, sharing in (("left", ["gpu-1", "gpu-2"], {"exclusive": {}}), ("right", ["gpu-3"], mig)):
        nodes_spec = {"count": len(nodes), "gpusPerNode": 8, "names": nodes}
        spec = {"gpu": "A100-80GB", "nodes": nodes_spec, "sharing": sharing, "workloadTypes": ["tests"]}
        platform.add("Pool", name, spec, "overlays/prod")


# --- Made anew ---------------------------------------------------------------------------------------------------


def change_the_value_of_a_class(platform: Platform) -> None:
    platform.spec("PriorityClass", "training")["value"] = 600


def let_a_class_preempt(platform: Platform) -> None:
    platform.spec("PriorityClass", "research")["preempts"] = True


def change_a_training(platform: Platform) -> None:
    platform.spec("Workload", "support-tuning")["env"]["EPOCHS"] = "4"


def have_job_sets(platform: Platform) -> None:
    cluster = platform.spec("Cluster", "prod", "overlays/prod")
    cluster["apis"] = ["JobSet", "TrainJob"]
    cluster["scheduler"]["kueue"] = {"frameworks": ["TrainJob"]}


def start_a_training_again_together(platform: Platform) -> None:
    platform.spec("Workload", "support-tuning")["training"]["kind"] = "JobSet"


def have_trainer_run_a_training(platform: Platform) -> None:
    have_job_sets(platform)
    platform.spec("Workload", "support-tuning")["training"]["kind"] = "TrainJob"


def change_a_training_of_trainer(platform: Platform) -> None:
    change_a_training(platform)


def keep_checkpoints(platform: Platform) -> None:
    platform.spec("Workload", "support-tuning")["training"]["checkpoint"] = {"size": "50Gi"}


def keep_fewer_checkpoints(platform: Platform) -> None:
    platform.spec("Workload", "support-tuning")["training"]["checkpoint"]["size"] = "40Gi"


def keep_more_checkpoints(platform: Platform) -> None:
    platform.spec("Workload", "support-tuning")["training"]["checkpoint"]["size"] = "60Gi"


def keep_checkpoints_elsewhere(platform: Platform) -> None:
    platform.spec("Workload", "support-tuning")["training"]["checkpoint"]["storageClass"] = "fast"


def keep_no_checkpoints(platform: Platform) -> None:
    del platform.spec("Workload", "support-tuning")["training"]["checkpoint"]


def go_on_with_fewer_pods(platform: Platform) -> None:
    platform.spec("Workload", "support-tuning")["training"] |= {"peers": {}, "elastic": {"minPods": 2}}


def change_the_image_of_a_service(platform: Platform) -> None:
    platform.spec("Workload", "embeddings")["image"] = "registry.example.com/inference/embeddings:5.1.0"


def state_a_topology(platform: Platform) -> None:
    platform.spec("Pool", "h100-training")["topology"] = ["example.com/rack", "kubernetes.io/hostname"]


def change_a_topology(platform: Platform) -> None:
    platform.spec("Pool", "h100-training")["topology"] = ["example.com/row", "kubernetes.io/hostname"]


def rename_the_cluster_policy(platform: Platform) -> None:
    platform.cluster("openshift")["gpuOperator"]["clusterPolicy"] = "gpus"


def hand_out_whole_gpus_on_dev(platform: Platform) -> None:
    platform.spec("Pool", "a100-shared", "overlays/dev")["sharing"] = {"timeSlicing": None, "exclusive": {}}
    for name in ("development", "research"):
        platform.spec("Tenant", name, "overlays/dev")["quotas"][0]["guaranteed"] = 1
    for kind, name in (("Pool", "a100-mixed"), ("Tenant", "model-services"), ("Workload", "chat")):
        body = platform.document(kind, name, "overlays/dev")
        body["metadata"]["$patch"] = "delete"
        del body["spec"]


def claim_devices(platform: Platform) -> None:
    platform.spec("Pool", "a100-shared", "overlays/dev")["allocation"] = "dra"


def claim_partitions(platform: Platform) -> None:
    hand_out_whole_gpus_on_dev(platform)
    claim_devices(platform)
    sharing = {"timeSlicing": None, "mig": {"instances": {"1g.10gb": 7}}}
    platform.spec("Pool", "a100-shared", "overlays/dev")["sharing"] = sharing
    platform.cluster("dev")["dra"] = {"partitionableDevices": True}
    platform.add("Workload", "evaluation", {"unit": "1g.10gb"}, "overlays/dev")
    for name in ("development", "research"):
        platform.spec("Tenant", name, "overlays/dev")["quotas"][0]["unit"] = "1g.10gb"


def make_partitions_on_demand(platform: Platform) -> None:
    sharing = {"timeSlicing": None, "dynamicMig": {"profiles": ["1g.10gb"]}}
    platform.spec("Pool", "a100-shared", "overlays/dev")["sharing"] = sharing


def claim_partitions_on_demand(platform: Platform) -> None:
    claim_partitions(platform)
    make_partitions_on_demand(platform)


def make_more_kinds_on_demand(platform: Platform) -> None:
    profiles = platform.spec("Pool", "a100-shared", "overlays/dev")["sharing"]["dynamicMig"]["profiles"]
    profiles.append("3g.40gb")


def make_partitions_by_layout_again(platform: Platform) -> None:
    sharing = {"timeSlicing": None, "mig": {"instances": {"1g.10gb": 7}}}
    platform.spec("Pool", "a100-shared", "overlays/dev")["sharing"] = sharing


# --- In two steps ------------------------------------------------------------------------------------------------


def edit_a_layout(platform: Platform) -> None:
    platform.spec("MigLayout", "seven-small")["instances"] = {"1g.10gb": 5, "2g.20gb": 1}
    platform.spec("Workload", "embeddings")["unit"] = "1g.10gb"


def keep_the_name_of_an_entry(platform: Platform) -> None:
    platform.spec("MigLayout", "seven-small")["configName"] = "all-1g.10gb"


def let_an_entry_have_gpuplans_name(platform: Platform) -> None:
    del platform.spec("MigLayout", "seven-small")["configName"]


def let_an_entry_have_gpuplans_name_and_retain_it(platform: Platform) -> None:
    let_an_entry_have_gpuplans_name(platform)
    was = {"configName": "all-1g.10gb", "gpu": "A100-80GB", "instances": {"1g.10gb": 7}}
    for cluster in ("dev", "openshift", "prod"):
        platform.add("Retained", "all", {"migLayout": was, "until": "no node names it"}, f"overlays/{cluster}")


def edit_a_layout_that_keeps_its_name(platform: Platform) -> None:
    edit_a_layout(platform)


def keep_a_key(platform: Platform) -> None:
    platform.spec("Pool", "a100-shared")["names"] = {"devicePluginConfig": "tesla-shared"}


def rename_a_layout(platform: Platform) -> None:
    platform.rename("MigLayout", "two-large", "halves")
    platform.spec("Pool", "a100-production")["sharing"]["mig"]["layout"] = "halves"


def swap_a_layout_and_remove_the_old_one(platform: Platform) -> None:
    swap_a_layout(platform)
    platform.remove("MigLayout", "seven-small")


def rename_a_pool(platform: Platform) -> None:
    platform.rename("Pool", "a100-agents", "a100-assistants")
    for quota in platform.spec("Tenant", "agents")["quotas"]:
        quota["pool"] = "a100-assistants"


def keep_a_queue(platform: Platform) -> None:
    platform.spec("Tenant", "agents")["names"] = {"queues": {"a100-agents": "agents"}}


def keep_queues_of_kueue(platform: Platform) -> None:
    platform.spec("Tenant", "agents")["names"] = {"clusterQueue": "agents-cq", "localQueue": "user-queue"}


def keep_a_flavor(platform: Platform) -> None:
    platform.spec("Pool", "a100-agents")["names"] = {"resourceFlavor": "a100"}


def keep_the_cohort(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"]["kueue"] = {"cohort": "all-gpus"}


def rename_a_tenant(platform: Platform) -> None:
    platform.rename("Tenant", "agents", "assistants")


def give_a_namespace_to_another_tenant(platform: Platform) -> None:
    platform.add("Tenant", "training", {"namespaces": ["training-new"]}, "overlays/prod")
    platform.add("Tenant", "batch-inference", {"namespaces": ["batch-inference", "training"]}, "overlays/prod")


def leave_kueue(platform: Platform) -> None:
    del platform.cluster("prod")["scheduler"]


def go_from_kueue_to_kai(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"] = {"kind": "kai"}


def tell_the_toolkit(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["env"] = {"toolkit": {"CONTAINERD_SOCKET": "/run/k3s/containerd.sock"}}


def mirror_images(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"] |= {"registry": "registry.example.com", "imagePullSecrets": ["mirror"]}


def take_another_catalog(platform: Platform) -> None:
    platform.cluster("openshift")["gpuOperator"]["olm"] = {"catalog": "mirrored-operators"}


def install_kueue(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"] = {"kind": "kueue", "version": "v0.19.1", "install": "helm"}


def upgrade_kueue(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"] = {"kind": "kueue", "version": "v0.19.2", "install": "helm"}


def install_kueue_by_hand(platform: Platform) -> None:
    platform.cluster("prod")["scheduler"] = {"kind": "kueue", "version": "v0.19.1", "install": "external"}


# --- What does not come back -------------------------------------------------------------------------------------


def remove_the_spare_pool(platform: Platform) -> None:
    platform.remove("Pool", "spare")


def add_spare_nodes(platform: Platform) -> None:
    spec = {**_SPARE, "sharing": {"mig": {"layout": "seven-small"}}}
    spec["nodes"] = {"count": 2, "gpusPerNode": 8, "namePattern": "gpu-spare-[0-9]+"}
    platform.add("Pool", "spare", spec, "overlays/prod")


def leave_nodes_out_of_a_pattern(platform: Platform) -> None:
    platform.spec("Pool", "spare", "overlays/prod")["nodes"]["namePattern"] = "gpu-spare-[0-4]"


def match_more_nodes(platform: Platform) -> None:
    platform.spec("Pool", "spare", "overlays/prod")["nodes"]["namePattern"] = "gpu-spare-[0-9a-f]+"


def evict_by_a_taint(platform: Platform) -> None:
    platform.spec("Pool", "a100-agents")["taints"].append(_EVICTING)


def add_a_pool_that_evicts(platform: Platform) -> None:
    platform.add("Pool", "spare", {**_SPARE, "taints": [_EVICTING]}, "overlays/prod")


def add_a_tainted_pool(platform: Platform) -> None:
    taint = {"key": "example.com/maintenance", "effect": "NoSchedule"}
    platform.add("Pool", "spare", {**_SPARE, "taints": [taint]}, "overlays/prod")


def remove_a_tenant(platform: Platform) -> None:
    platform.remove("Tenant", "batch-inference")


def remove_a_namespace(platform: Platform) -> None:
    platform.spec("Tenant", "training")["namespaces"] = ["training-new"]


def remove_a_workload(platform: Platform) -> None:
    platform.remove("Workload", "embeddings")


def remove_a_cluster(platform: Platform) -> None:
    platform.files = {path: found for path, found in platform.files.items() if "overlays/dev/" not in path}


def add_a_cluster(platform: Platform) -> None:
    operator = {"install": "helm", "version": "v26.7.0"}
    platform.add("Cluster", "staging", {"kubernetes": "1.34", "gpuOperator": operator}, "overlays/staging")


def leave_argocd(platform: Platform) -> None:
    del platform.cluster("prod")["argocd"]


def go_from_argocd_to_flux(platform: Platform) -> None:
    del platform.cluster("prod")["argocd"]
    platform.cluster("prod")["flux"] = {"source": {"kind": "GitRepository", "name": "gpu"}}


def sync_another_cluster(platform: Platform) -> None:
    platform.cluster("prod")["argocd"]["destination"] = {"name": "prod-2"}


def sync_through_a_root(platform: Platform) -> None:
    platform.cluster("prod")["argocd"]["root"] = True


def sync_without_a_root(platform: Platform) -> None:
    platform.cluster("prod")["argocd"]["root"] = False


def swap_a_layout_under_a_root(platform: Platform) -> None:
    swap_a_layout(platform)


def change_an_approval_under_a_root(platform: Platform) -> None:
    change_an_approval(platform)


def label_nodes_elsewhere(platform: Platform) -> None:
    platform.cluster("prod")["nodeLabels"] = "external"


def match_boards(platform: Platform) -> None:
    """Nodes with another board lose their labels, and their partitions."""
    platform.cluster("prod")["matchBoards"] = True


def match_boards_no_more(platform: Platform) -> None:
    platform.cluster("prod").pop("matchBoards")


def add_a_pool_by_board(platform: Platform) -> None:
    nodes = {"count": 2, "gpusPerNode": 8, "matchBoards": True}
    sharing = {"mig": {"instances": {"1g.18gb": 7}}}
    platform.add("Pool", "h200", {"gpu": "H200-141GB", "nodes": nodes, "sharing": sharing}, "overlays/prod")


def _by_board(platform: Platform) -> Any:
    return platform.spec("Pool", "h200", "overlays/prod")


def add_a_pool_by_name(platform: Platform) -> None:
    add_a_pool_by_board(platform)
    name_nodes_by_board(platform)


def name_nodes_by_board(platform: Platform) -> None:
    """As many as there are: none leaves."""
    del _by_board(platform)["nodes"]["matchBoards"]
    _by_board(platform)["nodes"]["names"] = ["h200-1", "h200-2"]


def name_fewer_nodes_by_board(platform: Platform) -> None:
    del _by_board(platform)["nodes"]["matchBoards"]
    _by_board(platform)["nodes"] |= {"names": ["h200-1"], "count": 1}


def take_all_nodes_with_the_board(platform: Platform) -> None:
    """Those that are named and have another one go."""
    del _by_board(platform)["nodes"]["names"]
    _by_board(platform)["nodes"]["matchBoards"] = True


def move_a_node_by_board(platform: Platform) -> None:
    """It had the pool's labels by its board, and has others by its name."""
    _by_board(platform)["rollout"] = {"sharing": {"mig": {"instances": {"2g.35gb": 3}}}, "nodes": ["x-1"]}


def remove_a_pool_by_board(platform: Platform) -> None:
    platform.remove("Pool", "h200")


def name_a_driver(platform: Platform) -> None:
    platform.spec("Pool", "a100-mixed")["driver"] = {"version": "570.195.03"}


def name_two_drivers(platform: Platform) -> None:
    name_a_driver(platform)
    platform.spec("Pool", "a100-agents")["driver"] = {"version": "570.195.03"}


def add_a_pool_by_pattern(platform: Platform) -> None:
    nodes = {"count": 2, "gpusPerNode": 8, "namePattern": "zz-[0-9]+"}
    spec = {"gpu": "H200-141GB", "nodes": nodes, "sharing": {"exclusive": {}}, "driver": {"version": "570.195.03"}}
    platform.add("Pool", "h200", spec, "overlays/prod")


def add_a_pool_by_board_with_a_driver(platform: Platform) -> None:
    add_a_pool_by_pattern(platform)
    choose_nodes_with_a_driver_by_board(platform)


def add_a_pool_by_pattern_and_board(platform: Platform) -> None:
    add_a_pool_by_pattern(platform)
    match_boards(platform)


def add_a_pool_by_name_with_a_driver(platform: Platform) -> None:
    add_a_pool_by_pattern(platform)
    name_nodes_with_a_driver(platform)


def choose_nodes_with_a_driver_by_board(platform: Platform) -> None:
    """Which nodes have the board, nobody has said: all of them may get another driver."""
    _by_board(platform)["nodes"] = {"count": 2, "gpusPerNode": 8, "matchBoards": True}


def add_a_pool_by_pattern_that_evicts(platform: Platform) -> None:
    add_a_pool_by_pattern(platform)
    _by_board(platform)["taints"] = [{"key": "example.com/own", "value": "yes", "effect": "NoExecute"}]


def choose_nodes_that_evict_by_board(platform: Platform) -> None:
    choose_nodes_with_a_driver_by_board(platform)


def choose_named_nodes_with_a_driver_by_board(platform: Platform) -> None:
    choose_nodes_with_a_driver_by_board(platform)


def name_nodes_with_a_driver(platform: Platform) -> None:
    _by_board(platform)["nodes"] = {"count": 2, "gpusPerNode": 8, "names": ["zz-1", "zz-2"]}


def match_names_with_a_driver(platform: Platform) -> None:
    _by_board(platform)["nodes"] = {"count": 2, "gpusPerNode": 8, "namePattern": "zz-[0-9]+"}


def choose_another_board_with_a_driver(platform: Platform) -> None:
    _by_board(platform)["gpu"] = "L40S-48GB"


def match_boards_beside_a_driver(platform: Platform) -> None:
    match_boards(platform)


def match_boards_beside_a_driver_no_more(platform: Platform) -> None:
    match_boards_no_more(platform)


def name_another_driver(platform: Platform) -> None:
    platform.spec("Pool", "a100-mixed")["driver"]["version"] = "580.95.05"


def choose_kernel_modules(platform: Platform) -> None:
    platform.spec("Pool", "a100-mixed")["driver"]["kernelModules"] = "open"


def change_the_driver_of_the_rest(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["driver"] = {"version": "580.126.09"}


def upgrade_drivers_otherwise(platform: Platform) -> None:
    values = platform.cluster("prod")["gpuOperator"].setdefault("values", {})
    values["driver"] = {"upgradePolicy": {"maxParallelUpgrades": 3}}


def name_a_second_driver(platform: Platform) -> None:
    platform.spec("Pool", "a100-agents")["driver"] = {"version": "570.195.03"}


def name_one_driver_less(platform: Platform) -> None:
    del platform.spec("Pool", "a100-agents")["driver"]


def name_no_driver(platform: Platform) -> None:
    del platform.spec("Pool", "a100-mixed")["driver"]


def add_pools_with_drivers(platform: Platform) -> None:
    add_whole_pools(platform)
    platform.spec("Pool", "left", "overlays/prod")["driver"] = {"version": "570.195.03"}


def move_whole_nodes_to_another_driver(platform: Platform) -> None:
    """Nothing else of their GPUs changes."""
    move_whole_nodes_between_pools(platform)


def install_elsewhere(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["namespace"] = "nvidia"


def install_by_others(platform: Platform) -> None:
    platform.cluster("prod")["gpuOperator"]["install"] = "external"


def operated_by_others(platform: Platform) -> None:
    operator = platform.cluster("prod")["gpuOperator"]
    operator["install"] = "external"
    operator.pop("values", None)


def leave_the_cluster_policy_to_its_owner(platform: Platform) -> None:
    """What leaves the folder stays in the ClusterPolicy, until its owner merges the snippet."""
    platform.cluster("prod")["gpuOperator"]["clusterPolicyPatch"] = "snippet"


def merged_by_others(platform: Platform) -> None:
    operated_by_others(platform)
    leave_the_cluster_policy_to_its_owner(platform)


def change_what_an_owner_merges(platform: Platform) -> None:
    operator = platform.cluster("prod")["gpuOperator"]
    operator["rebootOnMigChange"] = not operator.get("rebootOnMigChange", False)


_EVICTING = {"key": "example.com/maintenance", "effect": "NoExecute"}
_SPARE: dict[str, Any] = {
    "gpu": "A100-80GB",
    "nodes": {"count": 1, "gpusPerNode": 8, "namePattern": "gpu-spare-[0-9]+"},
    "sharing": {"exclusive": {}},
    "workloadTypes": ["tests"],
}


def pool(name: str) -> Subject:
    return Subject("Pool", name)


def tenant(name: str) -> Subject:
    return Subject("Tenant", name)


def cluster(name: str) -> Subject:
    return Subject("Cluster", name)


def workload(name: str) -> Subject:
    return Subject("Workload", name)


def priority(name: str) -> Subject:
    return Subject("PriorityClass", name)


def layout(name: str) -> Subject:
    return Subject("MigLayout", name)


PRICES = Subject("Prices", "list")


CASES = (
    Case(rename_a_file, NONE, None),
    Case(reorder_documents, NONE, None),
    Case(reformat, NONE, None),
    Case(move_a_document_to_another_file, NONE, None),
    Case(change_workload_types, NONE, None),
    Case(change_max_unavailable, NONE, None),
    Case(change_a_description, METADATA, priority("training")),
    Case(guard_a_pool, METADATA, pool("h100-training")),
    Case(stop_guarding_a_pool, METADATA, pool("a100-production")),
    Case(change_a_window, METADATA, pool("a100-production")),
    Case(change_how_drivers_are_upgraded, METADATA, cluster("prod")),
    Case(change_an_approval, METADATA, pool("a100-agents")),
    Case(change_labels_of_applications, METADATA, cluster("prod")),
    Case(change_labels_of_monitoring, METADATA, cluster("prod")),
    Case(sync_without_a_root, METADATA, cluster("prod"), before=sync_through_a_root),
    Case(change_an_approval_under_a_root, METADATA, pool("a100-agents"), before=sync_through_a_root),
    Case(disable_an_alert, METADATA, cluster("prod")),
    Case(add_a_node_label, METADATA, pool("a100-mixed")),
    Case(say_prices, METADATA, PRICES),
    Case(change_a_price, METADATA, PRICES, before=say_prices),
    Case(pay_for_spot_nodes, METADATA, pool("a100-shared"), before=say_prices),
    Case(pay_for_spot_nodes, NONE, None),
    Case(add_a_node, QUOTA, pool("h100-training")),
    Case(take_a_node, QUOTA, pool("a100-shared")),
    Case(raise_a_quota, QUOTA, tenant("research")),
    Case(cut_a_quota_under_use, QUOTA, tenant("model-services")),
    Case(raise_a_limit, QUOTA, tenant("batch-inference")),
    Case(add_a_tenant, QUOTA, tenant("robotics")),
    Case(add_a_namespace, QUOTA, tenant("batch-inference")),
    Case(change_replicas_of_a_workload, RECREATE, workload("embeddings")),
    Case(raise_replicas_of_a_workload, QUOTA, workload("embeddings"), before=change_replicas_of_a_workload),
    Case(have_the_load_say_how_many, RECREATE, workload("embeddings")),
    Case(have_the_load_say_how_many, QUOTA, workload("embeddings"), before=have_one_replica),
    Case(bound_the_load, RECREATE, workload("embeddings"), before=have_the_load_say_how_many),
    Case(need_fewer_pods_at_least, RECREATE, workload("embeddings"), before=have_the_load_say_how_many),
    Case(state_fewer_replicas, RECREATE, workload("embeddings"), before=have_the_load_say_how_many),
    Case(state_all_replicas, QUOTA, workload("embeddings"), before=have_the_load_say_how_many),
    Case(scale_without_keda, TWO_STEP, workload("embeddings"), before=let_keda_scale_to_zero),
    Case(scale_without_keda, QUOTA, workload("embeddings"), before=let_keda_keep_one),
    Case(keep_fewer_checkpoints, RECREATE, workload("support-tuning"), before=keep_checkpoints),
    Case(keep_more_checkpoints, QUOTA, workload("support-tuning"), before=keep_checkpoints),
    Case(keep_checkpoints_elsewhere, RECREATE, workload("support-tuning"), before=keep_checkpoints),
    Case(keep_no_checkpoints, DESTRUCTIVE, workload("support-tuning"), before=keep_checkpoints),
    Case(change_autoscaling_of_a_workload, RECREATE, workload("chat")),
    Case(add_a_workload, QUOTA, workload("scoring")),
    Case(change_replicas_of_a_pool, PLUGIN_RESTART, pool("a100-shared")),
    Case(add_an_unused_layout, PLUGIN_RESTART, layout("whole")),
    Case(edit_an_unused_layout_and_retain_it, PLUGIN_RESTART, layout("whole"), before=add_an_unused_layout),
    Case(add_a_spare_pool, PLUGIN_RESTART, pool("spare")),
    Case(name_one_more_node_of_whole_gpus, PLUGIN_RESTART, pool("left"), before=add_pools_by_name),
    Case(change_helm_values, PLUGIN_RESTART, cluster("prod")),
    Case(change_the_mig_strategy, PLUGIN_RESTART, cluster("prod")),
    Case(stop_reboots, PLUGIN_RESTART, cluster("prod")),
    Case(give_unlabelled_nodes_a_file, PLUGIN_RESTART, cluster("prod")),
    Case(close_visible_devices, PLUGIN_RESTART, cluster("prod")),
    Case(stop_monitoring, PLUGIN_RESTART, cluster("prod")),
    Case(reach_a_service_at_the_nodes, ADMISSION, workload("embeddings")),
    Case(route_a_service, QUOTA, workload("embeddings")),
    Case(route_by_another_gateway, ADMISSION, workload("embeddings"), before=route_a_service),
    Case(try_a_canary, QUOTA, workload("embeddings")),
    Case(weigh_a_canary, ADMISSION, workload("embeddings"), before=try_a_canary),
    Case(try_another_canary, RECREATE, workload("embeddings"), before=try_a_canary),
    Case(promote_a_canary, DESTRUCTIVE, workload("embeddings"), before=try_a_canary),
    Case(give_up_a_canary, DESTRUCTIVE, workload("embeddings"), before=try_a_canary),
    Case(let_keda_scale, QUOTA, workload("chat"), before=route_a_service),
    Case(add_a_tainted_pool, ADMISSION, pool("spare")),
    Case(move_whole_nodes_between_pools, ADMISSION, pool("left"), before=add_whole_pools),
    Case(move_nodes_that_others_label, ADMISSION, pool("left"), before=add_pools_alike_that_others_label),
    Case(take_a_quota_away, ADMISSION, tenant("model-services")),
    Case(use_kubernetes_without_admission_policies, ADMISSION, cluster("dev")),
    Case(publish_shares_as_gpus, ADMISSION, pool("a100-shared"), worst=RECREATE),
    Case(change_a_taint, ADMISSION, pool("a100-agents")),
    Case(remove_a_taint, ADMISSION, pool("a100-agents")),
    Case(change_a_node_label, ADMISSION, pool("a100-mixed"), before=add_a_node_label),
    Case(remove_a_node_label, ADMISSION, pool("a100-mixed"), before=add_a_node_label),
    Case(open_a_class_to_a_tenant, ADMISSION, tenant("agents")),
    Case(change_members, ADMISSION, tenant("agents")),
    Case(change_pod_security, ADMISSION, tenant("training")),
    Case(grant_rdma, ADMISSION, tenant("training")),
    Case(change_units_per_container, ADMISSION, tenant("agents")),
    Case(bound_the_time_to_end, ADMISSION, tenant("training")),
    Case(only_warn, ADMISSION, cluster("dev")),
    Case(only_warn_a_tenant, ADMISSION, tenant("training")),
    Case(only_warn_in_a_namespace, ADMISSION, tenant("training")),
    Case(take_namespaces_by_label, ADMISSION, tenant("agents")),
    Case(bound_a_class, QUOTA, tenant("model-services")),
    Case(give_containers_defaults, ADMISSION, tenant("training")),
    Case(allow_several_shares, ADMISSION, pool("a100-shared")),
    Case(share_whole_gpus, ADMISSION, pool("spare"), before=add_a_spare_pool),
    Case(remove_a_class, ADMISSION, priority("urgent"), before=add_an_urgent_class),
    Case(cap_what_is_guaranteed, ADMISSION, cluster("dev"), before=allow_more_than_is_guaranteed),
    # Classes that preempt do not with Kueue, and no class can change that; pods get another queue.
    Case(queue_by_kueue, ADMISSION, cluster("dev"), worst=RECREATE),
    Case(add_an_urgent_class, PREEMPTION_ORDER, priority("urgent")),
    Case(make_a_class_the_default, PREEMPTION_ORDER, priority("research")),
    Case(protect_a_class, PREEMPTION_ORDER, priority("training")),
    Case(move_a_tenant_to_another_parent, PREEMPTION_ORDER, tenant("research"), before=add_parents),
    Case(let_work_of_a_tenant_evict_its_own, PREEMPTION_ORDER, tenant("agents")),
    Case(change_a_weight, PREEMPTION_ORDER, tenant("research")),
    # MPS daemons restart with the device plugin's file, whichever pool's part of it changes, and end what runs.
    Case(change_replicas_beside_mps, REPARTITION, cluster("prod"), before=time_slicing_to_mps),
    Case(upgrade_an_operator_beside_mps, REPARTITION, cluster("prod"), before=mps_with_a_pinned_driver),
    Case(watch_closer_beside_mps, PLUGIN_RESTART, cluster("prod"), before=time_slicing_to_mps),
    # A daemon that starts leaves each GPU to its server, which does not start beside what holds the GPU already.
    Case(time_slicing_to_mps, REPARTITION, pool("h100-training")),
    Case(move_whole_nodes_to_a_pool_with_mps, REPARTITION, pool("left"), before=add_whole_pools_and_one_with_mps),
    Case(mps_to_time_slicing, REPARTITION, pool("h100-training"), before=time_slicing_to_mps),
    Case(swap_a_layout, REPARTITION, pool("a100-small")),
    Case(swap_a_layout_under_a_root, REPARTITION, pool("a100-small"), before=sync_through_a_root),
    Case(partition_the_spare_pool, REPARTITION, pool("spare"), before=add_a_spare_pool),
    Case(add_a_partitioned_pool, REPARTITION, pool("spare")),
    Case(move_nodes_between_pools, REPARTITION, pool("left"), before=add_pools_by_name),
    Case(match_more_nodes, REPARTITION, pool("spare"), before=add_spare_nodes),
    Case(name_one_more_node, REPARTITION, pool("right"), before=add_pools_by_name),
    Case(name_nodes_that_had_no_name, REPARTITION, pool("spare"), before=add_a_partitioned_pool_without_names),
    Case(change_the_driver, REPARTITION, cluster("openshift")),
    Case(upgrade_an_operator_with_its_own_driver, REPARTITION, cluster("prod")),
    # Another release brings other images for the driver's pods, whichever driver they load.
    Case(upgrade_an_operator_with_its_driver_pinned, REPARTITION, cluster("openshift")),
    Case(edit_a_layout_and_retain_the_old_one, REPARTITION, pool("a100-small")),
    Case(add_a_cluster, REPARTITION, cluster("staging")),
    Case(change_the_value_of_a_class, RECREATE, priority("training")),
    Case(let_a_class_preempt, RECREATE, priority("research")),
    Case(ask_a_service_by_http, RECREATE, workload("embeddings")),
    Case(change_a_training, RECREATE, workload("support-tuning")),
    Case(start_a_training_again_together, DESTRUCTIVE, workload("support-tuning"), before=have_job_sets),
    Case(change_a_training_of_trainer, RECREATE, workload("support-tuning"), before=have_trainer_run_a_training),
    Case(keep_checkpoints, RECREATE, workload("support-tuning")),
    Case(go_on_with_fewer_pods, RECREATE, workload("support-tuning")),
    Case(change_the_image_of_a_service, RECREATE, workload("embeddings")),
    Case(change_a_topology, RECREATE, pool("h100-training"), before=state_a_topology),
    Case(rename_the_cluster_policy, RECREATE, cluster("openshift")),
    Case(make_partitions_on_demand, DESTRUCTIVE, pool("a100-shared"), before=claim_partitions),
    Case(make_partitions_by_layout_again, REPARTITION, pool("a100-shared"), before=claim_partitions_on_demand),
    Case(make_more_kinds_on_demand, QUOTA, pool("a100-shared"), before=claim_partitions_on_demand),
    Case(claim_devices, RECREATE, pool("a100-shared"), before=hand_out_whole_gpus_on_dev),
    # Nodes may still name what no pool uses any more.
    Case(edit_an_unused_layout, TWO_STEP, layout("whole"), before=add_an_unused_layout),
    Case(remove_an_unused_layout, TWO_STEP, layout("whole"), before=add_an_unused_layout),
    Case(rename_an_unused_layout, TWO_STEP, layout("all"), before=add_an_unused_layout),
    # Partitions stay in one order of two syncs.
    Case(move_nodes_between_pools_alike, TWO_STEP, pool("left"), before=add_pools_alike),
    # Without their label, for as long as neither rule is for them, nodes publish GPUs whole beside pods that share one.
    Case(move_nodes_between_pools_with_mps, TWO_STEP, pool("left"), before=add_pools_with_mps),
    Case(split_a_pool, TWO_STEP, pool("left"), before=add_pools_alike),
    Case(merge_pools, DESTRUCTIVE, pool("left"), before=add_pools_alike),
    # Between the operator's files and the labels nodes hand out what they never should.
    Case(make_the_spare_pool_whole, TWO_STEP, pool("spare"), before=add_a_partitioned_pool),
    Case(partition_shared_gpus, TWO_STEP, pool("spare"), before=add_a_shared_pool),
    Case(publish_partitions_as_gpus_with_another_layout, TWO_STEP, pool("spare"), before=add_a_partitioned_pool),
    Case(partition_at_once, TWO_STEP, pool("spare"), before=add_a_pool_without_approval),
    Case(settle_at_once, TWO_STEP, pool("spare"), before=move_all_without_approval),
    Case(settle, ADMISSION, pool("spare"), before=move_all),
    Case(edit_a_layout, TWO_STEP, pool("a100-small")),
    Case(edit_a_layout_that_keeps_its_name, REPARTITION, pool("a100-small"), before=keep_the_name_of_an_entry),
    Case(let_an_entry_have_gpuplans_name, TWO_STEP, pool("a100-small"), before=keep_the_name_of_an_entry),
    Case(
        let_an_entry_have_gpuplans_name_and_retain_it,
        PLUGIN_RESTART,
        pool("a100-small"),
        before=keep_the_name_of_an_entry,
    ),
    Case(keep_a_key, TWO_STEP, pool("a100-shared")),
    Case(rename_a_layout, TWO_STEP, pool("a100-production")),
    Case(swap_a_layout_and_remove_the_old_one, TWO_STEP, pool("a100-small")),
    Case(rename_a_pool, TWO_STEP, pool("a100-assistants")),
    Case(rename_a_tenant, TWO_STEP, tenant("assistants")),
    Case(keep_a_queue, TWO_STEP, tenant("agents"), before=go_from_kueue_to_kai),
    Case(keep_queues_of_kueue, TWO_STEP, tenant("agents"), before=queue_by_kueue),
    Case(keep_a_flavor, TWO_STEP, pool("a100-agents"), before=queue_by_kueue),
    Case(keep_the_cohort, PREEMPTION_ORDER, cluster("prod"), before=queue_by_kueue),
    Case(give_a_namespace_to_another_tenant, TWO_STEP, tenant("training")),
    Case(tell_the_toolkit, PLUGIN_RESTART, cluster("prod")),
    Case(mirror_images, REPARTITION, cluster("prod")),
    Case(take_another_catalog, PLUGIN_RESTART, cluster("openshift")),
    Case(install_kueue, ADMISSION, cluster("prod")),
    Case(upgrade_kueue, ADMISSION, cluster("prod"), before=install_kueue),
    Case(install_kueue_by_hand, DESTRUCTIVE, cluster("prod"), before=install_kueue),
    Case(leave_kueue, TWO_STEP, cluster("prod")),
    Case(sync_through_a_root, TWO_STEP, cluster("prod")),
    Case(go_from_kueue_to_kai, TWO_STEP, cluster("prod")),
    Case(remove_the_spare_pool, DESTRUCTIVE, pool("spare"), before=add_a_spare_pool),
    Case(leave_nodes_out_of_a_pattern, DESTRUCTIVE, pool("spare"), before=add_spare_nodes),
    Case(add_a_pool_that_evicts, DESTRUCTIVE, pool("spare")),
    Case(move_nodes_to_a_pool_that_evicts, DESTRUCTIVE, pool("left"), before=add_pools_one_of_which_evicts),
    Case(evict_by_a_taint, DESTRUCTIVE, pool("a100-agents")),
    Case(remove_a_tenant, DESTRUCTIVE, tenant("batch-inference")),
    Case(remove_a_namespace, DESTRUCTIVE, tenant("training")),
    Case(take_the_port_of_a_service, DESTRUCTIVE, workload("embeddings")),
    Case(remove_a_workload, DESTRUCTIVE, workload("embeddings")),
    Case(give_replicas_a_worker, DESTRUCTIVE, workload("embeddings"), before=have_leader_worker_sets),
    Case(tell_workers_what_to_run, RECREATE, workload("embeddings"), before=have_replicas_with_a_worker),
    Case(remove_a_cluster, DESTRUCTIVE, cluster("dev")),
    Case(leave_argocd, DESTRUCTIVE, cluster("prod")),
    Case(go_from_argocd_to_flux, DESTRUCTIVE, cluster("prod")),
    Case(sync_another_cluster, DESTRUCTIVE, cluster("prod")),
    Case(label_nodes_elsewhere, DESTRUCTIVE, cluster("prod")),
    Case(match_boards, DESTRUCTIVE, pool("a100-mixed")),
    Case(match_boards_no_more, REPARTITION, pool("a100-mixed"), before=match_boards),
    Case(add_a_pool_by_board, REPARTITION, pool("h200")),
    Case(name_nodes_by_board, REPARTITION, pool("h200"), before=add_a_pool_by_board),
    Case(name_fewer_nodes_by_board, DESTRUCTIVE, pool("h200"), before=add_a_pool_by_board),
    Case(take_all_nodes_with_the_board, DESTRUCTIVE, pool("h200"), before=add_a_pool_by_name),
    Case(move_a_node_by_board, REPARTITION, pool("h200"), before=add_a_pool_by_board),
    Case(remove_a_pool_by_board, DESTRUCTIVE, pool("h200"), before=add_a_pool_by_board),
    Case(choose_nodes_with_a_driver_by_board, REPARTITION, pool("h200"), before=add_a_pool_by_pattern),
    Case(choose_named_nodes_with_a_driver_by_board, REPARTITION, pool("h200"), before=add_a_pool_by_name_with_a_driver),
    Case(choose_nodes_that_evict_by_board, DESTRUCTIVE, pool("h200"), before=add_a_pool_by_pattern_that_evicts),
    Case(match_names_with_a_driver, REPARTITION, pool("h200"), before=add_a_pool_by_board_with_a_driver),
    Case(name_nodes_with_a_driver, REPARTITION, pool("h200"), before=add_a_pool_by_board_with_a_driver),
    Case(choose_another_board_with_a_driver, REPARTITION, pool("h200"), before=add_a_pool_by_board_with_a_driver),
    Case(match_boards_beside_a_driver, REPARTITION, pool("h200"), before=add_a_pool_by_pattern, worst=DESTRUCTIVE),
    Case(match_boards_beside_a_driver_no_more, REPARTITION, pool("h200"), before=add_a_pool_by_pattern_and_board),
    Case(name_a_driver, REPARTITION, cluster("prod")),
    Case(name_another_driver, REPARTITION, pool("a100-mixed"), before=name_a_driver),
    Case(choose_kernel_modules, REPARTITION, pool("a100-mixed"), before=name_a_driver),
    Case(change_the_driver_of_the_rest, REPARTITION, cluster("prod"), before=name_a_driver),
    Case(upgrade_drivers_otherwise, METADATA, pool("a100-mixed"), before=name_a_driver),
    Case(name_a_second_driver, REPARTITION, pool("a100-agents"), before=name_a_driver),
    Case(name_one_driver_less, DESTRUCTIVE, pool("a100-agents"), before=name_two_drivers),
    Case(name_no_driver, DESTRUCTIVE, cluster("prod"), before=name_a_driver),
    Case(move_whole_nodes_to_another_driver, REPARTITION, pool("left"), before=add_pools_with_drivers),
    Case(install_elsewhere, DESTRUCTIVE, cluster("prod")),
    Case(install_by_others, DESTRUCTIVE, cluster("prod")),
    Case(leave_the_cluster_policy_to_its_owner, METADATA, cluster("prod"), operated_by_others),
    Case(change_what_an_owner_merges, PLUGIN_RESTART, cluster("prod"), merged_by_others),
)

INDEPENDENT: tuple[Edit, ...] = (
    rename_a_file,
    reorder_documents,
    change_workload_types,
    change_a_description,
    change_a_window,
    change_labels_of_applications,
    add_a_node_label,
    add_a_node,
    cut_a_quota_under_use,
    raise_a_limit,
    add_a_tenant,
    change_autoscaling_of_a_workload,
    add_a_workload,
    change_replicas_of_a_pool,
    add_an_unused_layout,
    add_a_spare_pool,
    change_helm_values,
    change_members,
    change_pod_security,
    add_an_urgent_class,
    change_a_weight,
    change_the_driver,
    change_the_value_of_a_class,
    change_a_training,
    rename_a_layout,
    evict_by_a_taint,
    label_nodes_elsewhere,
)
"""Edits that can be made together, in any order: no two change the same field."""
