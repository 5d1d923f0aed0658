"""The preset for Renovate: which versions it finds in Cluster documents, and which it leaves alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.runs import REPOSITORY, run
from tests.integrations.scripts import fits_schema

OPERATOR, KUBERNETES = json.loads((REPOSITORY / "integrations/renovate.json").read_text(encoding="utf-8"))[
    "customManagers"
]
CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: dev}
spec:
  kubernetes: "1.34" # as in the cloud's console
  gpuOperator: # see the release notes
    # version: v1.2.3
    install: helm

    driver:
      version: "580.95.05"
    version: v26.7.0
  scheduler:
    kind: kueue
    version: v9.9.9
"""


def versions(manager: dict[str, list[str]], text: str) -> list[str]:
    """As Renovate finds them; its expressions are RE2's, which Python's contain but for the name of a group."""
    patterns = [pattern.replace("(?<currentValue>", "(?P<currentValue>") for pattern in manager["matchStrings"]]
    return [match["currentValue"] for pattern in patterns for match in re.finditer(pattern, text)]


def is_looked_at(path: str) -> bool:
    return all(
        re.search(pattern.strip("/"), path)
        for manager in (OPERATOR, KUBERNETES)
        for pattern in manager["managerFilePatterns"]
    )


def test_it_is_what_renovate_calls_a_configuration() -> None:
    done = fits_schema(REPOSITORY / "integrations/renovate.json", "vendor.renovate")

    assert done.code == 0, done.out


@pytest.mark.parametrize("cluster", ["dev", "prod", "openshift"])
def test_versions_of_the_example_are_found(cluster: str) -> None:
    path = f"overlays/{cluster}/cluster.yaml"
    text = (REPOSITORY / path).read_text(encoding="utf-8")

    assert is_looked_at(path)
    assert versions(OPERATOR, text) == ["v26.7.0"]
    assert len(versions(KUBERNETES, text)) == 1


def test_versions_of_the_starter_are_found(tmp_path: Path) -> None:
    assert run("init", "platform", cwd=tmp_path).code == 0
    overlays = sorted((tmp_path / "platform/overlays").glob("*/*.yaml"))
    text = "".join(path.read_text(encoding="utf-8") for path in overlays)

    assert len(versions(OPERATOR, text)) == len(versions(KUBERNETES, text)) == len(overlays) > 0
    assert is_looked_at(f"platform/{overlays[0].relative_to(tmp_path / 'platform').as_posix()}")


def test_only_the_operators_own_version_is_found() -> None:
    assert versions(OPERATOR, CLUSTER) == ["v26.7.0"]
    assert versions(KUBERNETES, CLUSTER) == ["1.34"]


def test_an_operator_without_a_version_borrows_none() -> None:
    assert versions(OPERATOR, CLUSTER.replace("    version: v26.7.0\n", "")) == []


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_a_version_on_the_operators_line_is_found(quote: str) -> None:
    text = f"spec:\n  gpuOperator: {{install: helm, version: {quote}v26.7.0{quote}}}\n"

    assert versions(OPERATOR, text) == ["v26.7.0"]


@pytest.mark.parametrize("path", ["out/dev/gpu-operator/values.yaml", "policies/pools.yaml", "overlays/README.md"])
def test_other_files_are_left_alone(path: str) -> None:
    assert not is_looked_at(path)


def test_what_a_release_is_called_becomes_what_a_cluster_says() -> None:
    extract = KUBERNETES["extractVersionTemplate"].replace("(?<", "(?P<")

    assert [re.match(extract, tag) is not None for tag in ("v1.35.2", "v1.36.0-rc.1")] == [True, False]
    match = re.match(extract, "v1.35.2")
    assert match is not None
    assert match["version"] == "1.35"
