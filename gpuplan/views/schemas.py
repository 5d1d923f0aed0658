"""The JSON Schemas that gpuplan publishes: of what it reads, and of what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, assert_never

from gpuplan.diagnostics import GpuplanError
from gpuplan.views.json_findings import json_text

if TYPE_CHECKING:
    from gpuplan.policy.models import Vocabulary

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
            return _with_words(schema_of())
        case "overlay":
            return _with_words(overlay_schema())
        case _ if name in KINDS:
            return _with_words(schema_of(name))
        case _:
            raise GpuplanError(f"no schema `{name}`", f"there are {', '.join(NAMES)}")


def schema_text(name: str) -> str:
    return json_text(schema(name))


def _with_words(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of policies, in which editors find the words that the catalog lists."""
    return {key: _filled(value) for key, value in schema.items()}


def _filled(node: Any) -> Any:  # noqa: ANN401 - JSON
    from gpuplan.policy.models import Vocabulary

    if isinstance(node, list):
        return [_filled(item) for item in node]
    if not isinstance(node, dict):
        return node
    filled = {key: _filled(value) for key, value in node.items() if key != "format" or not isinstance(value, str)}
    return filled if len(filled) == len(node) else {**filled, **_words(Vocabulary(node["format"]))}


def _words(vocabulary: Vocabulary) -> dict[str, Any]:
    """What a schema says of the words. It refuses only what every finding about them refuses, too."""
    from gpuplan.catalog import load
    from gpuplan.catalog.names import GRAMMAR
    from gpuplan.policy.models import Vocabulary

    match vocabulary:
        case Vocabulary.GPU_MODEL:
            return {"enum": list(load().ids())}
        case Vocabulary.MIG_PROFILE:
            return {"anyOf": [{"enum": _profiles()}, {"pattern": GRAMMAR}]}
        case Vocabulary.UNIT:
            return {"examples": ["gpu", "shared", "fraction", *_profiles()]}
        case _:
            assert_never(vocabulary)


def _profiles() -> list[str]:
    """The MIG profiles of all models, small ones first."""
    from gpuplan.catalog import load

    found = {profile.name: profile for gpu in load().all() for profile in gpu.profiles}
    return sorted(found, key=lambda name: (found[name].parsed.compute_slices, found[name].parsed.gigabytes, name))


def _shipped(name: str) -> dict[str, Any]:
    import json
    from importlib import resources

    file = resources.files("gpuplan.views") / "data" / f"{name}.schema.json"
    body: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if name != "plan":
        return body
    from gpuplan.views.plan_json import with_new_fields

    return with_new_fields(body)
