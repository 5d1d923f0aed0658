"""The JSON Schemas that gpuplan publishes: of what it reads, and of what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.diagnostics import GpuplanError
from gpuplan.views.json_findings import json_text

KINDS: Final = ("Cluster", "Pool", "MigLayout", "PriorityClass", "Tenant", "Workload", "Retained")
OUTPUTS: Final[Mapping[str, str]] = {
    "findings": "validate",
    "plan": "show",
    "comparison": "show --scheduler NAME",
    "diff": "diff",
    "rollout": "rollout",
}
"""What is written, and by which command with `--output-format json`."""

NAMES: Final = ("policy", "overlay", *KINDS, *OUTPUTS)


def schema(name: str) -> dict[str, Any]:
    """The schema of that name."""
    if name in OUTPUTS:
        return _shipped(name)
    from gpuplan.policy.schema import overlay_schema, schema_of

    match name:
        case "policy":
            return schema_of()
        case "overlay":
            return overlay_schema()
        case _ if name in KINDS:
            return schema_of(name)
        case _:
            raise GpuplanError(f"no schema `{name}`", f"there are {', '.join(NAMES)}")


def schema_text(name: str) -> str:
    return json_text(schema(name))


def _shipped(name: str) -> dict[str, Any]:
    import json
    from importlib import resources

    file = resources.files("gpuplan.views") / "data" / f"{name}.schema.json"
    body: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return body
