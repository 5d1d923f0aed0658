"""Runs kustomize, kubeconform and promtool, built from their modules."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.cluster.programs import program


def kustomize(folder: Path) -> list[dict[str, Any]]:
    """The objects that kustomize makes of a folder, in its order."""
    return [body for body in yaml.load_all(_run("kustomize", "build", str(folder)), Loader=yaml.CSafeLoader) if body]


def is_taken_by_promtool(rules: Path) -> bool:
    """Whether promtool finds no fault with a file of rules, whatever it calls it."""
    command = [str(program("prometheus", "promtool")), "check", "rules", "--lint=all", "--lint-fatal", str(rules)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Refusal(NamedTuple):
    """An object that kubeconform refuses or knows no schema of."""

    kind: str
    name: str
    reason: str


def kubeconform(
    objects: Iterable[Mapping[str, Any]], kubernetes: str, definitions: Path, scratch: Path
) -> tuple[int, list[Refusal]]:
    """How many objects kubeconform takes, unknown and doubled fields being errors, and those that it does not take.

    Kubernetes' schemas are those of the package kubernetes-validate, of a release such as `1.34`. Those of custom
    resources are made in `scratch` of the CustomResourceDefinitions in a folder.
    """
    for definition in map(_load, sorted(definitions.glob("*.yaml"))):
        _write_schemas(definition, scratch)
    _copy_schemas(kubernetes, scratch)
    text = _run(
        "kubeconform",
        *("-strict", "-verbose", "-output", "json"),
        *("-schema-location", f"{scratch}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"),
        *("-schema-location", f"{scratch}/{{{{.Group}}}}_{{{{.ResourceAPIVersion}}}}_{{{{.ResourceKind}}}}.json"),
        stdin="\n---\n".join(json.dumps(body) for body in objects),
        codes=(0, 1),
    )
    found = json.loads(text)["resources"]
    valid = [item for item in found if item["status"] == "statusValid"]
    return len(valid), [Refusal(item["kind"], item["name"], item["msg"]) for item in found if item not in valid]


def _copy_schemas(kubernetes: str, folder: Path) -> None:
    """Those of a release, without the ids by which they would be looked for on the network."""
    with as_file(files("kubernetes_validate") / "kubernetes-json-schema" / f"v{kubernetes}.0-local-strict") as schemas:
        for path in schemas.glob("*.json"):
            text = path.read_text(encoding="utf-8").replace('"/api/_definitions.json', '"_definitions.json')
            schema = json.loads(text)
            schema.pop("$id", None)
            (folder / path.name).write_text(json.dumps(schema), encoding="utf-8")


def _write_schemas(definition: Mapping[str, Any], folder: Path) -> None:
    spec = definition["spec"]
    for version in spec["versions"]:
        name = f"{spec['group']}_{version['name']}_{spec['names']['kind'].lower()}.json"
        schema = version["schema"]["openAPIV3Schema"]
        given: dict[str, Any] = {"apiVersion": {}, "kind": {}, "metadata": {}}
        whole = {**schema, "properties": {**given, **schema.get("properties", {})}}
        (folder / name).write_text(json.dumps(_closed(whole)), encoding="utf-8")


def _closed(schema: Any) -> Any:
    """The schema, refusing fields that a definition does not name, as the API server does on request."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    is_object = schema.get("type") == "object" and isinstance(schema.get("properties"), dict)
    if is_object and not schema.get("x-kubernetes-preserve-unknown-fields"):
        closed.setdefault("additionalProperties", False)
    return closed


def _load(path: Path) -> dict[str, Any]:
    body: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return body


def _run(name: str, *arguments: str, stdin: str = "", codes: tuple[int, ...] = (0,)) -> str:
    command = [str(program("validators", name)), *arguments]
    result = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    assert result.returncode in codes, result.stderr + result.stdout
    return result.stdout
