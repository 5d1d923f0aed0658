"""What the DCGM exporter collects and how Prometheus comes by it, where the cluster is watched.

The operator mounts the ConfigMap and points the exporter to it (`TransformDCGMExporter` in its
`controllers/object_controls.go`), which reads it when it starts: hence the hash in the name. The exporter then collects
these fields and no others, so its own defaults are among them.

`KUBERNETES_VIRTUAL_GPUS` is left alone: it tells the pods on a shared GPU apart, but drops the series of devices that
no pod has (`PodMapper.Process` in `internal/pkg/transformation/kubernetes.go` of NVIDIA/dcgm-exporter).
"""

from __future__ import annotations

from typing import Any

from gpuplan.planning.plan import Monitoring

FILE_NAME = "dcgm-metrics.csv"
"""The key of the ConfigMap: `MetricsConfigFileName` in the operator's `controllers/object_controls.go`."""


def data() -> dict[str, str]:
    return {FILE_NAME: _CSV}


def exporter(monitoring: Monitoring, config_name: str) -> dict[str, Any]:
    """Fields of `dcgmExporter`, of Helm values and of a ClusterPolicy alike.

    The label by which the exporter names its node is about to change its spelling, so Prometheus writes one: `node`.
    """
    labels = {"additionalLabels": dict(sorted(monitoring.spec.labels.items()))} if monitoring.spec.labels else {}
    return {
        "config": {"name": config_name},
        "serviceMonitor": {
            "enabled": True,
            "honorLabels": monitoring.spec.honor_labels,
            **labels,
            "relabelings": [NODE_RELABELING],
        },
    }


NODE_RELABELING = {"action": "replace", "sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}

_CSV = """\
# DCGM field, type, help

DCGM_FI_DRIVER_VERSION, label, Driver version.

# How busy a device is; of MIG devices too
DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Part of time that the compute engine is active.
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, Part of cycles that tensor cores are active.
DCGM_FI_PROF_DRAM_ACTIVE, gauge, Part of cycles that the memory interface is active.
DCGM_FI_PROF_PCIE_TX_BYTES, counter, Bytes sent by PCIe.
DCGM_FI_PROF_PCIE_RX_BYTES, counter, Bytes received by PCIe.
DCGM_FI_DEV_FB_FREE, gauge, Free framebuffer (MiB).
DCGM_FI_DEV_FB_USED, gauge, Used framebuffer (MiB).
DCGM_FI_DEV_FB_RESERVED, gauge, Reserved framebuffer (MiB).

# How busy a whole GPU is; absent or zero where MIG is on
DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (%).
DCGM_FI_DEV_MEM_COPY_UTIL, gauge, Memory utilization (%).
DCGM_FI_DEV_ENC_UTIL, gauge, Encoder utilization (%).
DCGM_FI_DEV_DEC_UTIL, gauge, Decoder utilization (%).
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL, counter, NVLink traffic of all lanes.

# Clocks, heat and power
DCGM_FI_DEV_SM_CLOCK, gauge, SM clock (MHz).
DCGM_FI_DEV_MEM_CLOCK, gauge, Memory clock (MHz).
DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (C).
DCGM_FI_DEV_MEMORY_TEMP, gauge, Memory temperature (C).
DCGM_FI_DEV_POWER_USAGE, gauge, Power draw (W).
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Energy used since boot (mJ).
DCGM_EXP_CLOCK_EVENTS_COUNT, gauge, Clock events of the last minutes by kind.

# Health
DCGM_FI_DEV_XID_ERRORS, gauge, The last Xid.
DCGM_EXP_XID_ERRORS_COUNT, gauge, Xid errors of the last minutes by code.
DCGM_FI_DEV_PCIE_REPLAY_COUNTER, counter, PCIe retries.
DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS, counter, Rows remapped after correctable errors.
DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS, counter, Rows remapped after uncorrectable errors.
DCGM_FI_DEV_ROW_REMAP_FAILURE, gauge, Whether a row could not be remapped.
DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, vGPU licence status.
"""
