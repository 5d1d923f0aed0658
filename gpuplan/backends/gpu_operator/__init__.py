"""The back end of the stage `gpu-operator`: what the GPU Operator needs to share GPUs as the plan says.

Both ConfigMaps carry a hash of their content in their name, since nothing in the cluster looks at their content again:
mig-manager and the device plugin's config-manager watch one node label each. A new name in the ClusterPolicy changes
the DaemonSets' volumes, and that rolls them.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.gpu_operator import cluster_policy, device_plugin, helm, mig_parted, nfd, olm
from gpuplan.backends.gpu_operator.config_maps import config_map
from gpuplan.backends.gpu_operator.namespace import namespace
from gpuplan.manifests import File, Manifest
from gpuplan.planning.plan import Install, Plan, Stage

_FOLDER = Stage.GPU_OPERATOR.value


def render(plan: Plan) -> Iterator[Manifest | File]:
    """Both ConfigMaps, and whatever makes the operator use them: Helm values, a ClusterPolicy or a patch for one."""
    operator = plan.cluster.gpu_operator
    if operator.install is not Install.EXTERNAL:
        yield Manifest(_FOLDER, namespace(plan))
    partitions = config_map("gpuplan-mig-parted", operator.namespace, mig_parted.data(plan))
    yield Manifest(_FOLDER, partitions)
    sharing_name = ""
    if plan.pools:  # an empty ConfigMap would keep the device plugin from starting: no configuration files available
        sharing = config_map("gpuplan-device-plugin", operator.namespace, device_plugin.data(plan))
        sharing_name = sharing["metadata"]["name"]
        yield Manifest(_FOLDER, sharing)
    names = cluster_policy.ConfigMapNames(partitions["metadata"]["name"], sharing_name)
    match operator.install:
        case Install.HELM:
            yield File(f"{_FOLDER}/{helm.FILE_NAME}", helm.render_values(plan, names))
        case Install.OLM:
            if operator.installs_nfd:
                yield from (Manifest(_FOLDER, body) for body in nfd.objects(plan))
            yield from (Manifest(_FOLDER, body) for body in olm.objects(plan))
            yield Manifest(_FOLDER, cluster_policy.whole(plan, names))
        case Install.EXTERNAL:
            yield Manifest(_FOLDER, cluster_policy.patch(plan, names), is_partial=True)
