"""Components of any shape: no crash, no connection, and nothing written but in a copy that is gone afterwards.

They lie far from the overlays, whose own files are judged before anything is built; every second platform is built as
if nothing had been found in them.
"""

from __future__ import annotations

import os
import random
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.pipeline import validate
from gpuplan.features.components.needs import Finder, Needs
from tests.features.components.addresses import (
    ALL,
    FILE_FIELDS,
    FILE_FORMS,
    FOLDER_FIELDS,
    FOLDER_FORMS,
    KUSTOMIZATION,
    Fetching,
)
from tests.kustomizing import need
from tests.listener import Listener

ON_COMPONENTS = {"GPU001", "GPU002", "GPU003", "GPU006", "GPU648", "GPU681", "GPU682", "GPU683"}
"""Errors that a Component far away may have, read or built."""
PER_PLATFORM = 10
PLATFORMS = 15
CLUSTER = f"""\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: dev}}
spec:
  kubernetes: "1.34"
  gpuOperator: {{install: helm, version: v26.7.0}}
  nodeLabels: node
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {{name: science}}
spec:
  namespaces: [{", ".join(f"n{number}" for number in range(PER_PLATFORM))}]
"""
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
NOTES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: other}\ndata: {a: b}\n"
PATHS = (
    *("notes.yaml", "./notes.yaml", ".", "..", "../..", "../n1", "link", "loop", "pipe", "zero", "folder", "shared"),
    *(
        "../../../../shared",
        "../../../../shared",
        "../" * 30 + "etc/passwd",
        "/etc/passwd",
        "/dev/zero",
        "/proc/self/environ",
        "''",
        "~",
    ),
    *('"a\\0b"', '"\\u202e"', "a" * 300, "[a]", "{a: b}", "3", "|\n    notes.yaml\n", "key=notes.yaml", "a=b=c", "=x"),
    *("'%2e%2e/x'", "'C:\\x'", "'\\\\host\\share'", "'${HOME}'", "'$(id)'", "'-h'", "'--enable-helm'", "'*.yaml'"),
)


@pytest.mark.parametrize("seed", range(PLATFORMS))
def test_components_of_any_shape_do_no_harm(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need()
    chance = random.Random(seed)
    root, temporary = tmp_path / "platform", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with Listener() as listener:
        for number in range(PER_PLATFORM):
            lay_out(chance, root, f"n{number}", listener.address)
        (root / "overlays/dev/cluster.yaml").write_text(CLUSTER)
        before = state(tmp_path)
        if seed % 2:
            monkeypatch.setattr(Finder, "find", unsuspecting)
        report = validate(root)
    assert listener.connections == 0
    assert report.is_valid or {item.code for item in report.diagnostics if item.is_error} <= ON_COMPONENTS
    assert state(tmp_path) == before


find = Finder.find


def unsuspecting(finder: Finder, folder: str, at: Origin) -> Needs:
    return replace(find(finder, folder, at), obstacles=(), remote=())


def state(folder: Path) -> dict[str, bytes]:
    """All names, with the content of files and the targets of links."""
    return {str(path.relative_to(folder)): content(path) for path in sorted(folder.rglob("*"))}


def content(path: Path) -> bytes:
    if path.is_symlink():
        return os.fsencode(os.readlink(path))
    return path.read_bytes() if path.is_file() else b""


def lay_out(chance: random.Random, root: Path, namespace: str, address: str) -> None:
    home = root / "far/away/from" / namespace
    home.mkdir(parents=True)
    own = root / "overlays/dev/kustomize/namespaces" / namespace
    own.mkdir(parents=True)
    (own / "kustomization.yaml").write_text(f"{COMPONENT}components: [../../../../../far/away/from/{namespace}]\n")
    fetching = chance.choice(ALL).at(address)
    text = COMPONENT + "".join(some_field(chance, address) for _ in range(chance.randrange(3)))
    text += fetching.text if chance.random() < 0.4 else ""
    (home / "kustomization.yaml").write_text(mangled(chance, text))
    (home / "notes.yaml").write_text(NOTES)
    put(home, fetching)
    for name, target in (("link", "notes.yaml"), ("loop", "loop"), ("zero", "/dev/zero"), ("folder", "../../../..")):
        if chance.random() < 0.3:
            (home / name).symlink_to(target)
    if chance.random() < 0.3:
        os.mkfifo(home / "pipe")
    shared = root / "shared"
    shared.mkdir(exist_ok=True)
    (shared / "kustomization.yaml").write_text(mangled(chance, KUSTOMIZATION + some_field(chance, address)))


def put(home: Path, fetching: Fetching) -> None:
    for path, text in fetching.files.items():
        file = Path(os.path.normpath(home / path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for path, target in fetching.links.items():
        link = Path(os.path.normpath(home / path))
        if not link.is_symlink():
            link.symlink_to(target)


def some_field(chance: random.Random, address: str) -> str:
    field = chance.choice((*FOLDER_FIELDS.values(), *FILE_FIELDS.values()))
    forms = chance.choice((PATHS, PATHS, tuple(FILE_FORMS.values()), tuple(FOLDER_FORMS.values())))
    return field.format(chance.choice(forms).replace("@", address))


def mangled(chance: random.Random, text: str) -> str:
    """Mostly as it was; else with some lines or letters at other places."""
    if chance.random() < 0.6:
        return text
    lines = text.splitlines(keepends=True)
    for _ in range(chance.randrange(1, 4)):
        here, there = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(4):
            case 0:
                lines[here], lines[there] = lines[there], lines[here]
            case 1:
                lines.insert(here, lines[there])
            case 2:
                lines[here] = lines[here].upper() if chance.random() < 0.5 else f" {lines[here]}"
            case _:
                at = chance.randrange(len(lines[here]))
                lines[here] = lines[here][:at] + chance.choice("&*!|>%@`{}[]:,#\t\"'-?~\n") + lines[here][at + 1 :]
    return "".join(lines)
