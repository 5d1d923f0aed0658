"""What hand-written Components are built with reaches no network, and what would need one is said."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.pipeline import Report, build, validate
from gpuplan.features.components import kustomize
from gpuplan.features.components.checks.references import Reference
from gpuplan.features.components.kustomize import confinement
from gpuplan.features.components.printing import print_stream
from tests.features.components.addresses import ALL, KUSTOMIZATION, Fetching
from tests.kustomizing import need
from tests.listener import Listener

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: dev}
spec:
  kubernetes: "1.34"
  gpuOperator: {install: helm, version: v26.7.0}
  nodeLabels: node
"""
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
HOME = "overlays/dev/kustomize/workloads"
NOTES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: other}\ndata: {a: b}\n"
needs_confinement = pytest.mark.skipif(not kustomize.can_confine(), reason="this system keeps nothing from a network")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "overlays/dev/cluster.yaml", CLUSTER)
    return tmp_path


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as listener:
        yield listener


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def component(root: Path, rest: str, **files: str) -> Path:
    write(root / HOME / "kustomization.yaml", COMPONENT + rest)
    for name, text in files.items():
        write(root / HOME / f"{name}.yaml", text)
    return root / HOME


def lay_out(root: Path, fetching: Fetching) -> None:
    home = component(root, fetching.text)
    for path, text in fetching.files.items():
        write(Path(root / HOME / path).resolve(), text)
    for path, target in fetching.links.items():
        (home / path).symlink_to(target)


def program(folder: Path, script: str) -> str:
    """A Python script in the place of kustomize."""
    write(folder / "kustomize", f"#!{sys.executable} -IS\n{script}\n")
    (folder / "kustomize").chmod(0o755)
    return str(folder / "kustomize")


def codes(report: Report) -> list[str]:
    return sorted({item.code for item in report.diagnostics if item.severity != "note"})


def messages(report: Report) -> str:
    return "\n".join(" ".join((item.finding.message, *item.finding.notes)) for item in report.diagnostics)


# --- What is said ------------------------------------------------------------------------------------------------


def test_there_are_many_forms() -> None:
    assert len(ALL) >= 60
    assert len({item.name for item in ALL}) == len(ALL)


@pytest.mark.parametrize("fetching", ALL, ids=lambda item: item.name)
def test_a_reference_to_another_place_is_found_and_not_followed(root: Path, fetching: Fetching) -> None:
    with Listener() as listener:
        lay_out(root, fetching.at(listener.address))
        report = validate(root)
        found = [item for item in report.diagnostics if item.code == "GPU644"]
        what = "helmCharts" if fetching.name == "chart" else listener.address.partition(":")[0]
        assert found, messages(report)
        assert all(what in item.finding.message for item in found)
    assert listener.connections == 0


def test_it_is_found_on_the_line_that_has_it(root: Path) -> None:
    component(root, "transformers:\n  - plugin.yaml\n")
    write(root / HOME / "plugin.yaml", "apiVersion: builtin\nkind: PatchTransformer\npath: http://example.com/a\n")
    [found] = [item.finding.at.locate() for item in validate(root).diagnostics if item.code == "GPU644"]
    assert (found.file.path, found.span.start.line) == (f"{HOME}/plugin.yaml", 3)


def test_names_that_only_look_like_addresses_are_files(root: Path) -> None:
    need()
    component(
        root,
        "configMapGenerator:\n  - {name: a, namespace: b, files: [icons@2x/a/b], literals: [url=http://a/b]}\n"
        "resources: [notes@2/a/b.yaml]\n",
    )
    write(root / HOME / "icons@2x/a/b", "a")
    write(root / HOME / "notes@2/a/b.yaml", NOTES)
    assert codes(validate(root)) == []


# --- What holds whatever is said ---------------------------------------------------------------------------------


@needs_confinement
def test_nothing_is_fetched_that_reading_did_not_find(root: Path) -> None:
    """All forms at once, as if nobody had read them before."""
    command = kustomize.find_program(need()[0])
    assert command is not None
    with Listener() as listener:
        forms = [fetching.at(listener.address) for fetching in ALL]
        for index, fetching in enumerate(forms):
            lay_out(root / str(index), fetching)
            write(root / str(index) / "build/kustomization.yaml", f"components: [../{HOME}]\n")
        home = root / "home"
        home.mkdir()
        built = kustomize.build(command, [root / str(index) / "build" for index in range(len(forms))], home)
    assert listener.connections == 0
    assert [
        fetching.name for fetching, one in zip(forms, built, strict=True) if not isinstance(one, kustomize.Refusal)
    ] == []


@pytest.mark.parametrize("name", ["http-resources", "inline-PatchTransformer", "file-secretGenerator-env"])
def test_without_that_it_would_be_fetched(root: Path, listener: Listener, name: str) -> None:
    """The nearest case in which the listener counts, or else it would prove nothing."""
    command = need()
    lay_out(root, next(item for item in ALL if item.name == name).at(listener.address))
    write(root / "build/kustomization.yaml", f"components: [../{HOME}]\n")
    subprocess.run([*command, str(root / "build")], capture_output=True, check=False)
    time.sleep(0.2)
    assert listener.connections > 0


@needs_confinement
def test_what_kustomize_could_not_fetch_is_refused_with_its_words(
    root: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    need()
    monkeypatch.setattr(Reference, "is_remote", False)
    component(root, f"openapi: {{path: http://{listener.address}/a.json}}\nresources: [notes.yaml]\n", notes=NOTES)
    write(root / HOME / "http:" / listener.address / "a.json", "{}")
    report = validate(root)
    [found] = report.diagnostics
    assert found.code == "GPU681"
    assert f"http://{listener.address}/a.json" in found.finding.notes[0]
    assert found.finding.help == "copy what it would fetch into the folder, and name the copy"
    assert listener.connections == 0


CONNECT = """\
import socket, sys
try:
    socket.create_connection(("127.0.0.1", {port}))
except OSError as error:
    sys.exit(f"Error: socket: {{error.strerror}}")
"""
CHILDREN = """\
import subprocess, sys
done = subprocess.run([sys.executable, "-ISc", {script!r}], capture_output=True, text=True)
sys.exit("Error: child: " + done.stderr)
"""
PAIR = """\
import socket, sys
try:
    socket.socketpair()
except OSError as error:
    sys.exit(f"Error: pair: {error.strerror}")
"""
GIT = """\
import subprocess, sys
done = subprocess.run(["git", {options} "ls-remote", "http://127.0.0.1:{port}/a"], capture_output=True, text=True)
sys.exit("Error: git: " + done.stderr)
"""


@needs_confinement
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (CONNECT, "socket: Operation not permitted"),
        (CHILDREN.format(script=CONNECT.replace("{{", "{").replace("}}", "}")), "child: Error: socket: Operation"),
        (PAIR, "pair: Operation not permitted"),
        (GIT.replace("{options}", ""), "transport 'http' not allowed"),
        (GIT.replace("{options}", '"-c", "protocol.http.allow=always",'), "git: "),
    ],
    ids=["itself", "children", "pair", "git", "git-allowed"],
)
def test_a_program_that_connects_cannot(root: Path, tmp_path: Path, listener: Listener, script: str, said: str) -> None:
    port = listener.address.partition(":")[2]
    script = script.replace("{port}", port).replace("{{", "{").replace("}}", "}")
    component(root, "resources: [notes.yaml]\n", notes=NOTES)
    report = validate(root, kustomize=program(tmp_path / "bin", script))
    assert codes(report) == ["GPU681"]
    assert said in messages(report)
    assert listener.connections == 0


@needs_confinement
def test_gpuplan_itself_keeps_its_sockets(root: Path, tmp_path: Path, listener: Listener) -> None:
    component(root, "resources: [notes.yaml]\n", notes=NOTES)
    validate(root, kustomize=program(tmp_path / "bin", ""))
    import socket

    socket.create_connection(tuple_of(listener.address)).close()
    time.sleep(0.2)
    assert listener.connections == 1


def tuple_of(address: str) -> tuple[str, int]:
    host, _, port = address.partition(":")
    return host, int(port)


def test_it_is_told_nothing_of_the_user(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh")
    script = "import os, json, sys\nsys.exit('Error: ' + json.dumps(dict(os.environ)) + os.getcwd())"
    component(root, "resources: [notes.yaml]\n", notes=NOTES)
    said = messages(validate(root, kustomize=program(tmp_path / "bin", script)))
    assert "TOKEN" not in said
    assert '"GIT_SSH_COMMAND": "false"' in said
    assert f'"HOME": "{Path.home()}"' not in said


# --- Where nothing keeps programs from a network -----------------------------------------------------------------


@pytest.fixture
def _unconfined(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    confinement.find_confinement.cache_clear()
    monkeypatch.setattr("gpuplan.features.components.kustomize.find_confinement", lambda: None)
    yield
    confinement.find_confinement.cache_clear()


@pytest.mark.usefixtures("_unconfined")
@pytest.mark.parametrize(
    "rest",
    [
        "transformers: [plugin.txt]\n",
        "configMapGenerator:\n  - {name: a, literals: ['url=http://example.com']}\n",
        "labels:\n  - pairs: {a: git@example.com:a/b}\n",
    ],
)
def test_then_only_what_is_beyond_doubt_is_built(root: Path, tmp_path: Path, rest: str) -> None:
    failing = program(tmp_path / "bin", "import sys; sys.exit(1)")
    component(root, rest)
    write(root / HOME / "plugin.txt", "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: a}\n")
    report = validate(root, kustomize=failing)
    assert codes(report) == ["GPU680"]
    assert "this system has nothing that keeps kustomize from a network" in messages(report)
    assert codes(validate(root, kustomize="off")) == []


@pytest.mark.usefixtures("_unconfined")
def test_then_plain_components_are_built_as_ever(root: Path) -> None:
    need()
    component(root, "resources: [notes.yaml]\n", notes=NOTES.replace("a: b", "a: 1"))
    assert codes(validate(root)) == ["GPU683"]


def test_on_macos_the_command_is_run_in_a_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write(tmp_path / "sandbox-exec", "")
    (tmp_path / "sandbox-exec").chmod(0o755)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(confinement, "SANDBOX_EXEC", str(tmp_path / "sandbox-exec"))
    confinement.find_confinement.cache_clear()
    try:
        found = confinement.find_confinement()
    finally:
        confinement.find_confinement.cache_clear()
    assert found is not None
    assert found.prefix == (str(tmp_path / "sandbox-exec"), "-p", "(version 1)(allow default)(deny network*)")


# --- Printing ----------------------------------------------------------------------------------------------------


def test_a_stream_is_no_way_around(root: Path, listener: Listener) -> None:
    need()
    component(root, f"resources:\n  - http://{listener.address}/a.yaml\n")
    built = build(root)
    with pytest.raises(GpuplanError) as raised:
        print_stream(built, root=root)
    assert raised.value.message == (
        f"`out/dev/workloads/` cannot be built: `http://{listener.address}/a.yaml` is taken from another place at "
        f"build time, in {HOME}/kustomization.yaml"
    )
    assert listener.connections == 0


def test_a_stream_has_what_bases_elsewhere_add(root: Path) -> None:
    need()
    component(root, "resources: [../../../../shared]\n")
    write(root / "shared/kustomization.yaml", KUSTOMIZATION + "resources: [notes.yaml]\n")
    write(root / "shared/notes.yaml", NOTES)
    assert b"name: notes" in print_stream(build(root), root=root)
