"""The alerts that gpuplan knows, by name."""

from __future__ import annotations

from enum import StrEnum


class AlertName(StrEnum):
    """An alert; a policy may disable it by this name."""

    ALLOCATED_IDLE = "GpuAllocatedIdle"
    BOARD_DIFFERS = "GpuBoardDiffers"
    CLOCK_THROTTLED = "GpuClockThrottled"
    DEVICE_PLUGIN_NO_DEVICES = "GpuDevicePluginNoDevices"
    DEVICE_UNHEALTHY = "GpuDeviceUnhealthy"
    ECC_ERROR = "GpuEccError"
    FRAGMENTATION = "GpuFragmentation"
    HEALTH_FAILED = "GpuHealthFailed"
    MEMORY_REPAIR_PENDING = "GpuMemoryRepairPending"
    METRICS_ABSENT = "GpuMetricsAbsent"
    MIG_CONFIG_FAILED = "GpuMigConfigFailed"
    MIG_CONFIG_STUCK = "GpuMigConfigStuck"
    MIG_LAYOUT_DRIFT = "GpuMigLayoutDrift"
    MISSING = "GpuMissing"
    NVLINK_DOWN = "GpuNvlinkDown"
    NVLINK_ERRORS = "GpuNvlinkErrors"
    PLAN_OUT_OF_SYNC = "GpuPlanOutOfSync"
    POOL_BELOW_PLAN = "GpuPoolBelowPlan"
    POOL_LABELS_ABSENT = "GpuPoolLabelsAbsent"
    QUEUE_METRICS_ABSENT = "GpuQueueMetricsAbsent"
    QUOTA_SATURATED = "GpuQuotaSaturated"
    RECOVERY_NEEDED = "GpuRecoveryNeeded"
    ROW_REMAP_FAILURE = "GpuRowRemapFailure"
    TOO_HOT = "GpuTooHot"
    UNITS_DRIFT = "GpuUnitsDrift"
    XID_ERROR = "GpuXidError"
