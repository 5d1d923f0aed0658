"""The JSON Schemas of what gpuplan reads and writes, and the files by which editors find them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final, assert_never

from gpuplan import handed_in
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.catalog import load
from gpuplan.compiler.catalog.names import GRAMMAR
from gpuplan.compiler.policy.models import Vocabulary
from gpuplan.compiler.policy.names import GPU
from gpuplan.compiler.policy.schema import overlay_schema, schema_of
from gpuplan.terminal.json_findings import json_text
from gpuplan.terminal.options import GIVEN, KINDS, OUTPUTS, SCHEMAS
from gpuplan.terminal.verbs import late

_with_new_fields = late("gpuplan.terminal.plan_json:with_new_fields")


def schema(name: str) -> dict[str, Any]:
    """Return the schema with a name of `SCHEMAS`."""
    if name in OUTPUTS:
        if name in handed_in.OUTPUTS:
            folder = resources.files(handed_in.OUTPUTS[name][0])
        else:
            folder = resources.files("gpuplan.terminal") / "data"
        body: dict[str, Any] = json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
        if name == "plan":
            _with_new_fields(body)
        return body
    match name:
        case "policy":
            return _with_words(schema_of())
        case "overlay":
            return _with_words(overlay_schema())
        case _ if name in (*KINDS, *GIVEN):
            return _with_words(schema_of(name))
        case _:
            raise GpuplanError(f"no schema `{name}`", f"there are {', '.join(SCHEMAS)}")


def schema_text(name: str) -> str:
    return json_text(schema(name))


def _with_words(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of policies in which editors find the words that the catalog lists."""
    return {key: _filled(value) for key, value in schema.items()}


def _filled(node: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(node, list):
        return [_filled(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    filled = {key: _filled(value) for key, value in node.items() if key != "format" or not isinstance(value, str)}
    return filled if len(filled) == len(node) else {**filled, **_words(Vocabulary(node["format"]))}


def _words(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the part of a schema that lists words. It refuses only what every finding about them refuses, too."""
    match vocabulary:
        case Vocabulary.GPU_MODEL:
            return {"anyOf": [{"enum": list(load().ids())}, GPU.rule]}
        case Vocabulary.MIG_PROFILE:
            return {"anyOf": [{"enum": _profiles()}, {"pattern": GRAMMAR}]}
        case Vocabulary.UNIT:
            return {"examples": ["gpu", "shared", "fraction", *_profiles()]}
        case _:
            assert_never(vocabulary)


def _profiles() -> list[str]:
    """Return the MIG profiles of all models, small ones first."""
    sizes = {
        profile.name: (profile.parsed.compute_slices, profile.parsed.gigabytes, profile.name)
        for gpu in load().all()
        for profile in gpu.profiles
    }
    return sorted(sizes, key=sizes.__getitem__)


# --- Files of a new platform ---------------------------------------------------------------------------------------

GIT_ATTRIBUTES: Final = ".gitattributes"
ATTRIBUTES: Final = """\
# What gpuplan wrote stays as it is, also where Git changes line ends. Reviews need not show what editors read.
out/** -text
.gpuplan/** linguist-generated
"""
SCHEMA_FILES: Final = {"policy": ".gpuplan/policy.schema.json", "overlay": ".gpuplan/overlay.schema.json"}
EDITOR: Final = ".vscode/settings.json"
"""The file in which VS Code, and editors that follow it, look for settings of a folder."""
FILES: Final = {
    "policy": ("policies/**/*.yaml", "policies/**/*.yml"),
    "overlay": ("overlays/**/*.yaml", "overlays/**/*.yml", "!overlays/*/kustomize/**"),
}
"""The files that each schema is for; a file that is hand-written for kustomize is no policy."""


def beside_policies() -> dict[str, str]:
    """Return the files of a new platform for Git and editors, by path. A schema is one line of a first commit."""
    schemas = {path: json_text(schema(name), indent=None) for name, path in SCHEMA_FILES.items()}
    return {GIT_ATTRIBUTES: ATTRIBUTES, **schemas, EDITOR: editor_settings(SCHEMA_FILES)}


def editor_settings(schemas: Mapping[str, str]) -> str:
    """Return settings of an editor that tell the YAML language server which schema is for which files.

    A line `# yaml-language-server: $schema=` is for one document and not for those after it.
    """
    return json_text({"yaml.schemas": {path: [*FILES[name]] for name, path in schemas.items()}})
