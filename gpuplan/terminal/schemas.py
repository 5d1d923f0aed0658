"""The JSON Schemas of what gpuplan reads and writes, and the starter platform in which editors find them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, assert_never

from gpuplan import handed_in
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.terminal.json_findings import json_text

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from gpuplan.compiler.policy.models import Vocabulary

KINDS: Final = ("Cluster", "Pool", "Gpu", "MigLayout", "PriorityClass", "Tenant", "Workload", "Retained", "Prices")
GIVEN: Final = tuple(entry.partition(":")[2] for entry in handed_in.DOCUMENTS)
"""Kinds of documents that commands are given, and that lie in no platform."""
OUTPUTS: Final[Mapping[str, str]] = {
    "findings": "validate",
    "plan": "show",
    "comparison": "show --scheduler NAME",
    **{name: command for name, (_, command) in handed_in.OUTPUTS.items()},
}
"""What is written, and by which command with `--output-format json`."""

NAMES: Final = ("policy", "overlay", *KINDS, *GIVEN, *OUTPUTS)


def schema(name: str) -> dict[str, Any]:
    """The schema of that name."""
    if name in OUTPUTS:
        return _shipped(name)
    from gpuplan.compiler.policy.schema import overlay_schema, schema_of

    match name:
        case "policy":
            return _with_words(schema_of())
        case "overlay":
            return _with_words(overlay_schema())
        case _ if name in (*KINDS, *GIVEN):
            return _with_words(schema_of(name))
        case _:
            raise GpuplanError(f"no schema `{name}`", f"there are {', '.join(NAMES)}")


def schema_text(name: str) -> str:
    return json_text(schema(name))


def _with_words(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of policies, in which editors find the words that the catalog lists."""
    return {key: _filled(value) for key, value in schema.items()}


def _filled(node: Any) -> Any:  # noqa: ANN401 - JSON
    from gpuplan.compiler.policy.models import Vocabulary

    if isinstance(node, list):
        return [_filled(item) for item in node]
    if not isinstance(node, dict):
        return node
    filled = {key: _filled(value) for key, value in node.items() if key != "format" or not isinstance(value, str)}
    return filled if len(filled) == len(node) else {**filled, **_words(Vocabulary(node["format"]))}


def _words(vocabulary: Vocabulary) -> dict[str, Any]:
    """What a schema says of the words. It refuses only what every finding about them refuses, too."""
    from gpuplan.compiler.catalog import load
    from gpuplan.compiler.catalog.names import GRAMMAR
    from gpuplan.compiler.policy.models import Vocabulary
    from gpuplan.compiler.policy.names import GPU

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
    """The MIG profiles of all models, small ones first."""
    from gpuplan.compiler.catalog import load

    found = {profile.name: profile for gpu in load().all() for profile in gpu.profiles}
    return sorted(found, key=lambda name: (found[name].parsed.compute_slices, found[name].parsed.gigabytes, name))


def _shipped(name: str) -> dict[str, Any]:
    import json
    from importlib import resources

    is_handed_in = name in handed_in.OUTPUTS
    folder = resources.files(handed_in.OUTPUTS[name][0] if is_handed_in else "gpuplan.terminal")
    file = (folder if is_handed_in else folder / "data") / f"{name}.schema.json"
    body: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if name != "plan":
        return body
    from gpuplan.terminal.plan_json import with_new_fields

    return with_new_fields(body)


# --- The starter platform that `gpuplan init` writes ---------------------------------------------------------------

CLUSTER_FOLDER: Final = "overlays/cluster/"
GIT_ATTRIBUTES: Final = ".gitattributes"
NO_LINE_ENDS: Final = "# What gpuplan wrote stays as it is, also where Git changes line ends.\nout/** -text\n"
SCHEMA_FILES: Final = {"policy": ".gpuplan/policy.schema.json", "overlay": ".gpuplan/overlay.schema.json"}
EDITOR: Final = ".vscode/settings.json"
"""Where VS Code, and editors that follow it, look for settings of a folder."""
FILES: Final = {
    "policy": ("policies/**/*.yaml", "policies/**/*.yml"),
    "overlay": ("overlays/**/*.yaml", "overlays/**/*.yml", "!overlays/*/kustomize/**"),
}
"""The files that each schema is for; what is hand-written for kustomize is no policy."""


def scaffold(cluster: str) -> dict[str, str]:
    """The files by path, with one cluster of that name."""
    from importlib import resources

    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - not HTML
    files = {
        path.replace(CLUSTER_FOLDER, f"overlays/{cluster}/"): environment.from_string(text).render(cluster=cluster)
        for path, text in _templates(resources.files("gpuplan.terminal") / "scaffold", "")
    }
    return files | beside_policies()


def beside_policies() -> dict[str, str]:
    """What Git and editors read of a new platform, by path."""
    schemas = {path: schema_text(name) for name, path in SCHEMA_FILES.items()}
    return {GIT_ATTRIBUTES: NO_LINE_ENDS, **schemas, EDITOR: editor_settings(SCHEMA_FILES)}


def editor_settings(schemas: Mapping[str, str]) -> str:
    """Which schema is for which files, as the YAML language server reads it from the settings of an editor.

    A line `# yaml-language-server: $schema=` is for one document and not for those after it.
    """
    return json_text({"yaml.schemas": {path: [*FILES[name]] for name, path in schemas.items()}})


def _templates(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            yield from _templates(item, f"{path}{item.name}/")
        else:
            yield f"{path}{item.name}", item.read_text(encoding="utf-8")
