"""The alerts that gpuplan knows, by name."""

from __future__ import annotations

from enum import StrEnum


class AlertName(StrEnum):
    """An alert; a policy may disable it by this name."""

    ALLOCATED_IDLE = "GpuAllocatedIdle"
    CLOCK_THROTTLED = "GpuClockThrottled"
    DEVICE_PLUGIN_NO_DEVICES = "GpuDevicePluginNoDevices"
    FRAGMENTATION = "GpuFragmentation"
    MIG_CONFIG_FAILED = "GpuMigConfigFailed"
    MIG_CONFIG_STUCK = "GpuMigConfigStuck"
    MIG_LAYOUT_DRIFT = "GpuMigLayoutDrift"
    PLAN_OUT_OF_SYNC = "GpuPlanOutOfSync"
    POOL_BELOW_PLAN = "GpuPoolBelowPlan"
    POOL_LABELS_ABSENT = "GpuPoolLabelsAbsent"
    QUOTA_SATURATED = "GpuQuotaSaturated"
    ROW_REMAP_FAILURE = "GpuRowRemapFailure"
    UNITS_DRIFT = "GpuUnitsDrift"
    XID_ERROR = "GpuXidError"
