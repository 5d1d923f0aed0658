"""What `gpuplan import --commands` collects is what readers read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import gpuplan.features.live
from gpuplan.compiler.manifests.kinds.imported import COLLECTED, READ
from gpuplan.features.live.views import commands

FOLDER = Path(gpuplan.features.live.__file__).parent


def asked(path: Path) -> Iterator[tuple[str, str]]:
    """The kinds that a module asks a dump for, as far as it writes them down where it asks."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("of_kind", "find")
        ):
            words = [item.value for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            if node.func.attr == "of_kind" and len(words) == len(node.args) > 1:
                yield from ((words[0], kind) for kind in words[1:])
            elif node.func.attr == "find" and len(words) > 1:
                yield words[0], words[1]


def test_every_kind_that_is_read_is_collected() -> None:
    missing = {kind for path in FOLDER.rglob("*.py") for kind in asked(path) if kind not in READ}
    assert missing == set()


def test_the_commands_only_read_and_never_secrets() -> None:
    lines = [line for line in commands().splitlines() if not line.startswith("#")]
    assert all(line.startswith("kubectl get ") for line in lines)
    assert "secret" not in "".join(lines).lower()


def test_one_command_holds_kinds_that_stand_and_fall_together() -> None:
    for collected in COLLECTED:
        groups = {group.partition(".")[2] or group for group in collected.kinds if "." in group}
        assert len({group for group in groups if not group.endswith("k8s.io")}) <= 1, collected.file


def test_what_every_cluster_has_is_collected_without_what_newer_ones_have() -> None:
    """Kubernetes serves admission policies by default since 1.30, and kubectl prints nothing at all without them."""
    everywhere = {group for collected in COLLECTED if not collected.where for group in collected.kinds}
    assert "admissionregistration.k8s.io" not in everywhere


def test_what_grows_with_the_cluster_is_collected_as_json() -> None:
    """YAML may have 8 MiB; a node with the fields that each manager owns has some 20 KiB."""
    growing = {"Node", "Deployment", "Job", "NodeFeature", "CustomResourceDefinition"}
    files = {collected.file for collected in COLLECTED for _, kind in collected.pairs if kind in growing}
    assert {file.rpartition(".")[2] for file in files} == {"json"}
