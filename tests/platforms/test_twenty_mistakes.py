"""Twenty different mistakes give twenty findings in one run, each at its place, in every format."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

REPOSITORY = Path(__file__).parent / "repositories" / "twenty_mistakes"

EXPECTED = [
    ("overlays/test/cluster.yaml", 11, 7, "GPU600"),  # a Helm value that the chart does not read
    ("policies/layouts.yaml", 6, 3, "GPU203"),  # instances that cannot be placed together
    ("policies/layouts.yaml", 14, 5, "GPU204"),  # a profile of another model
    ("policies/layouts.yaml", 20, 8, "GPU200"),  # a GPU without MIG
    ("policies/layouts.yaml", 30, 14, "GPU211"),  # no instances of a profile
    ("policies/layouts.yaml", 38, 5, "GPU206"),  # a compute instance
    ("policies/pools.yaml", 8, 29, "GPU300"),  # one share
    ("policies/pools.yaml", 15, 50, "GPU140"),  # a node in two pools
    ("policies/pools.yaml", 17, 21, "GPU301"),  # more MPS clients than there can be
    ("policies/pools.yaml", 36, 17, "GPU219"),  # unequal instances under `single`
    ("policies/pools.yaml", 45, 3, "GPU030"),  # a misspelt field
    ("policies/pools.yaml", 54, 19, "GPU101"),  # an unknown layout
    ("policies/tenants.yaml", 3, 18, "GPU501"),  # a reserved name
    ("policies/tenants.yaml", 9, 15, "GPU500"),  # a priority out of range
    ("policies/tenants.yaml", 18, 32, "GPU400"),  # more guaranteed than there is
    ("policies/tenants.yaml", 19, 41, "GPU402"),  # a limit below the guarantee
    ("policies/tenants.yaml", 20, 25, "GPU103"),  # a unit that the pool does not hand out
    ("policies/tenants.yaml", 26, 16, "GPU407"),  # a namespace in two tenants
    ("policies/tenants.yaml", 27, 21, "GPU101"),  # an unknown priority class
    ("policies/tenants.yaml", 31, 18, "GPU406"),  # a tenant without a namespace
]


def validate(output_format: str) -> str:
    command = [sys.executable, "-m", "gpuplan.cli", "-C", str(REPOSITORY), "validate", "--output-format", output_format]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


def test_concise() -> None:
    found = re.findall(r"(?m)^(\S+?):(\d+):(\d+): error\[(GPU\d+)\]", validate("concise"))
    assert [(path, int(line), int(column), code) for path, line, column, code in found] == EXPECTED


def test_full() -> None:
    text = validate("full")
    codes = re.findall(r"(?m)^error\[(GPU\d+)\]", text)
    places = re.findall(r"(?m)^ *--> (\S+?):(\d+):(\d+)$", text)
    found = [(path, int(line), int(column), code) for (path, line, column), code in zip(places, codes, strict=True)]
    assert found == EXPECTED


def test_json() -> None:
    found = [
        (item["location"]["file"], item["location"]["start"]["line"], item["location"]["start"]["column"], item["code"])
        for item in json.loads(validate("json"))["diagnostics"]
    ]
    assert found == EXPECTED


def test_github() -> None:
    found = re.findall(
        r"(?m)^::error file=([^,]+),line=(\d+),(?:endLine=\d+,)?col=(\d+),.*title=(GPU\d+)", validate("github")
    )
    assert [(path, int(line), int(column), code) for path, line, column, code in found] == EXPECTED


def test_gitlab() -> None:
    issues = json.loads(validate("gitlab"))
    found = [(item["location"]["path"], item["location"]["lines"]["begin"]) for item in issues]
    assert found == [(path, line) for path, line, _, _ in EXPECTED]
    assert len({item["fingerprint"] for item in issues}) == len(EXPECTED)


def test_sarif() -> None:
    (run,) = json.loads(validate("sarif"))["runs"]
    found = []
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        region = place["region"]
        found.append((place["artifactLocation"]["uri"], region["startLine"], region["startColumn"], result["ruleId"]))
    assert found == EXPECTED


def test_junit() -> None:
    failures = ET.fromstring(validate("junit")).iter("failure")
    places = (re.search(r"(\S+?):(\d+):(\d+)", failure.text or "") for failure in failures)
    found = [place.groups() for place in places if place]
    assert [(path, int(line), int(column)) for path, line, column in found] == [place[:3] for place in EXPECTED]


@pytest.mark.parametrize("verb", [["build"], ["build", "--check"], ["build", "--diff"], ["build", "--stdout"]])
def test_nothing_is_built(verb: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpuplan.cli", "-C", str(REPOSITORY), *verb]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert not (REPOSITORY / "out").exists()
