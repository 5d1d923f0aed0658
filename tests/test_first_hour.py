"""Mistakes of the first hour: each is said once, and what the help says leads back to what was meant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.documents import read_text
from gpuplan.compiler.pipeline import validate
from tests.plans import CLUSTER

POLICIES = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata:
  name: h100-train
spec:
  gpu: H100-80GB
  nodes:
    count: 10
    gpusPerNode: 8
    namePattern: "h100-t-.*"
  sharing:
    exclusive: {}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata:
  name: h100-mig
spec:
  gpu: H100-80GB
  nodes: {count: 2, gpusPerNode: 8, namePattern: "h100-m-[0-9]+"}
  sharing:
    mig:
      instances: {3g.40gb: 1, 2g.20gb: 2}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata:
  name: a100-mig
spec:
  gpu: A100-40GB
  nodes: {count: 2, gpusPerNode: 8, namePattern: "a100-m-[0-9]+"}
  sharing:
    mig:
      instances:
        3g.20gb: 2
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata:
  name: standard
spec:
  value: 100
  description: "training: the nightly runs"
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata:
  name: chat
spec:
  namespaces: [chat]
  priorityClasses: [standard]
  quotas:
    - {pool: h100-mig, unit: 3g.40gb, guaranteed: 16}
    - {pool: h100-mig, unit: 2g.20gb, guaranteed: 32}
    - {pool: h100-train, guaranteed: 40}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata:
  name: agents
spec:
  namespaces: [agents]
  priorityClasses: [standard]
  quotas:
    - {pool: a100-mig, unit: 3g.20gb, guaranteed: 32}
    - {pool: h100-train, guaranteed: 40}
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata:
  name: batch
spec:
  tenant: chat
  pool: h100-mig
  unit: 2g.20gb
  training: {}
  image: registry.example.com/team/train:1.0
"""
NAMES = tuple(re.findall(r"(?m)^  name: (\S+)$", POLICIES))


class Mistake(NamedTuple):
    """``old`` as it was meant, ``new`` as it was written, with the rule that says so and what its help has to say."""

    name: str
    old: str
    new: str
    code: str
    help: str


MENDED = [
    Mistake("tab", "  sharing:\n    exclusive", "\tsharing:\n    exclusive", "GPU001", "indent the line with 2 spaces"),
    Mistake("one space more", "  sharing:\n    exc", "   sharing:\n    exc", "GPU001", "indent the line with 2 spaces"),
    Mistake(
        "one space more at the left edge", "kind: Pool\nmetadata:", " kind: Pool\nmetadata:", "GPU001", "without spaces"
    ),
    Mistake("one space more in the first of several", "    count: 10", "     count: 10", "GPU001", "with 4 spaces"),
    Mistake("one space less", "    count: 10", "   count: 10", "GPU001", "with 4 spaces"),
    Mistake("no colon", "  gpu: H100-80GB\n  nodes:\n", "  gpu H100-80GB\n  nodes:\n", "GPU001", "`gpu: H100-80GB`"),
    Mistake("no colon above others", "  nodes:\n    count", "  nodes\n    count", "GPU001", "write `nodes:`"),
    Mistake("no colon in braces", "{pool: a100-mig, ", "{pool a100-mig, ", "GPU030", "write `pool: a100-mig`"),
    Mistake(
        "no colon in the only line of a mapping",
        "  name: h100-train",
        "  name h100-train",
        "GPU032",
        "write `name: h100-train`",
    ),
    Mistake("no colon before braces", "exclusive: {}", "exclusive {}", "GPU032", "write `exclusive: {}`"),
    Mistake("tab at the left edge", "kind: Pool\nmetadata", "\tkind: Pool\nmetadata", "GPU001", "without spaces"),
    Mistake("tab before `spec`", "spec:\n  value: 100", "\tspec:\n  value: 100", "GPU001", "without spaces"),
    Mistake("no space behind the colon", "gpu: A100-40GB", "gpu:A100-40GB", "GPU001", "write `gpu: A100-40GB`"),
    Mistake("brace not closed", "2g.20gb: 2}", "2g.20gb: 2", "GPU001", "`instances: {3g.40gb: 1, 2g.20gb: 2}`"),
    Mistake("brace closed twice", "2g.20gb: 2}", "2g.20gb: 2}}", "GPU001", "`instances: {3g.40gb: 1, 2g.20gb: 2}`"),
    Mistake("bracket not closed", "namespaces: [chat]", "namespaces: [chat", "GPU001", "write `namespaces: [chat]`"),
    Mistake("quote not closed", '"h100-t-.*"', '"h100-t-.*', "GPU001", 'write `namePattern: "h100-t-.*"`'),
    Mistake("quotes left out", '"training: the nightly runs"', "training: the nightly runs", "GPU001", "write `desc"),
    Mistake("curly quotes", '"h100-t-.*"', "“h100-t-.*”", "GPU022", 'write `"h100-t-.*"`'),
    Mistake(
        "curly quotes about a colon", '"training: the nightly runs"', "“training: the nightly runs”", "GPU001", "write"
    ),
    Mistake(
        "no `---`",
        "---\napiVersion: gpuplan.dev/v1\nkind: Prio",
        "apiVersion: gpuplan.dev/v1\nkind: Prio",
        "GPU021",
        "`---`",
    ),
    Mistake(
        "`--`",
        "---\napiVersion: gpuplan.dev/v1\nkind: Prio",
        "--\napiVersion: gpuplan.dev/v1\nkind: Prio",
        "GPU001",
        "write `---`",
    ),
    Mistake(
        "one level too far left", "  sharing:\n    exclusive: {}", "sharing:\n  exclusive: {}", "GPU030", "by 2 more"
    ),
    Mistake("one level too far right", "  sharing:\n    exc", "    sharing:\n      exc", "GPU030", "by 2 fewer"),
    Mistake("misspelt field", "  sharing:\n    exclusive", "  sharng:\n    exclusive", "GPU030", "write `sharing:`"),
    Mistake(
        "name for a mapping",
        "sharing:\n    exclusive: {}",
        "sharing: exclusive",
        "GPU032",
        "`sharing: {exclusive: {}}`",
    ),
    Mistake("profile without its dot", "3g.40gb: 1", "3g40gb: 1", "GPU205", "write `3g.40gb`"),
    Mistake("profile of another board", "3g.20gb: 2", "3g.40gb: 2", "GPU204", "3 compute slices have 20 GB: `3g.20gb`"),
    Mistake("file pattern", "h100-t-.*", "h100-t-*", "GPU143", "write `h100-t-.*`"),
    Mistake("misspelt pool", "{pool: a100-mig, ", "{pool: a100mig, ", "GPU101", "write `a100-mig`"),
    Mistake(
        "misspelt class",
        "[standard]\n  quotas:\n    - {pool: a",
        "[standrad]\n  quotas:\n    - {pool: a",
        "GPU101",
        "write `standard`",
    ),
]
"""One finding each, whose help can be followed to the letter."""


@pytest.mark.parametrize("mistake", MENDED, ids=lambda mistake: mistake.name)
def test_the_help_leads_back_to_what_was_meant(mistake: Mistake, tmp_path: Path) -> None:
    text = made(mistake)

    (found,) = judged(tmp_path, text)

    assert (found.code, mistake.help in found.finding.help) == (mistake.code, True), found.finding.help
    assert meaning(mended(text, found)) == meaning(POLICIES)


TOLD = [
    Mistake("another board", "{pool: a100-mig, ", "{pool: b100-mig, ", "GPU101", "add a Pool named `b100-mig`"),
    Mistake("another number", "{pool: a100-mig, ", "{pool: a100-mig-2, ", "GPU101", "add a Pool named `a100-mig-2`"),
    Mistake(
        "another team's class",
        "[standard]\n  quotas:\n    - {pool: a",
        "[premium]\n  quotas:\n    - {pool: a",
        "GPU101",
        "add a PriorityClass",
    ),
    Mistake(
        "a unit that is not handed out",
        "  unit: 2g.20gb",
        "  unit: 1g.10gb",
        "GPU103",
        "add `1g.10gb` to the layout of pool `h100-mig`, or ",
    ),
    Mistake("a larger unit", "unit: 3g.20gb", "unit: 4g.20gb", "GPU103", "add `4g.20gb` to the layout"),
    Mistake("no unit", "unit: 3g.40gb, ", "", "GPU104", "one of `2g.20gb` or `3g.40gb`"),
    Mistake("fewer names than nodes", "h100-t-.*", "h100-t-[0-7]", "GPU143", "widen the pattern until"),
    Mistake("unknown GPU", "gpu: A100-40GB", "gpu: B100-40GB", "GPU102", "kind: Gpu, metadata: {name: b100-40gb}"),
]
"""Where nothing was misspelt the help takes nothing that there is for what was meant."""


@pytest.mark.parametrize("mistake", TOLD, ids=lambda mistake: mistake.name)
def test_no_help_offers_another_thing_as_if_it_were_a_spelling(mistake: Mistake, tmp_path: Path) -> None:
    (found,) = judged(tmp_path, made(mistake))

    assert (found.code, mistake.help in found.finding.help) == (mistake.code, True), found.finding.help
    assert "did you mean" not in found.finding.label
    assert not re.search(r"write `", found.finding.help)


@pytest.mark.parametrize(
    ("name", "help_"),
    [
        ("all-3g.20gb", "write `instances: {3g.20gb: 2}` in place of `layout`"),
        ("all-1g.10gb", "write `instances: {1g.10gb: 4}` in place of `layout`"),
        ("all-disabled", "write `exclusive: {}` in place of `mig`"),
        ("all-1g.80gb", "add a MigLayout named `all-1g.80gb`"),
    ],
)
def test_layouts_of_mig_parted_are_answered_with_what_they_are(name: str, help_: str, tmp_path: Path) -> None:
    text = POLICIES.replace("      instances:\n        3g.20gb: 2", f"      layout: {name}")

    (found,) = judged(tmp_path, text)

    assert (found.code, found.finding.help) == ("GPU101", help_)


def test_quotas_on_a_layout_that_was_changed_are_told_what_the_pool_hands_out(tmp_path: Path) -> None:
    text = POLICIES.replace("        3g.20gb: 2", "        1g.5gb: 7")

    (found,) = judged(tmp_path, text)

    assert (found.code, found.finding.help) == (
        "GPU103",
        "add `3g.20gb` to the layout of pool `a100-mig`, or count another unit, in numbers of its own",
    )


def test_the_smallest_unit_that_does_is_a_fact_and_no_help(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, POLICIES.replace("  unit: 2g.20gb", "  unit: 1g.10gb"))

    assert "the smallest of them with the memory of `1g.10gb` is `2g.20gb`" in found.finding.notes


def test_one_share_is_said_without_sums_that_follow(tmp_path: Path) -> None:
    text = POLICIES.replace("    exclusive: {}", "    timeSlicing: {replicas: 1}")

    assert [item.code for item in judged(tmp_path, text)] == ["GPU300"]


def test_a_file_pattern_that_matches_enough_names_is_a_warning(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, POLICIES.replace("h100-t-.*", "h100-t*"))

    assert (found.code, found.severity.value) == ("GPU143", "warning")
    assert found.finding.help.endswith("write `h100-t.*`")


def test_a_word_that_means_true_elsewhere_is_answered_with_the_values(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, POLICIES, CLUSTER.replace("spec:\n", "spec:\n  nodeLabels: yes\n", 1))

    assert found.code == "GPU033"
    assert found.finding.help.startswith("write one of `")


@pytest.mark.parametrize(
    ("document", "code", "help_"),
    [
        (
            "apiVersion: v1\nkind: ConfigMap\n",
            "GPU035",
            "move it to ../all.yaml, and run `gpuplan import ../all.yaml -c test --merge` for policies",
        ),
        ("apiVersion: v1\nkind: List\nitems: []\n", "GPU035", "move it to ../all.yaml, and"),
        (
            "mig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {3g.40gb: 2}}], b: []}\n",
            "GPU035",
            "write a MigLayout named `a` with `instances: {3g.40gb: 2}`, and one for each of the other entries",
        ),
        (
            "mig-configs: {a: [{devices: [0], mig-devices: {1g.10gb: 7}}, {devices: [1], mig-enabled: false}]}\n",
            "GPU035",
            "write a MigLayout named `a` with `devices: [{gpus: [0], instances: {1g.10gb: 7}}, {gpus: [1], ena",
        ),
        (
            "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 3}]}}\n",
            "GPU035",
            "write `sharing: {timeSlicing: {replicas: 3}}` in the Pool, and delete the file",
        ),
        (
            "migManager: {enabled: false}\n",
            "GPU035",
            "write `values: {migManager: {enabled: false}}` below `spec.gpuOp",
        ),
        (
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
            "GPU035",
            "delete it: gpuplan reads all",
        ),
        ("apiVersion: apps/v1\nkind: Deployment\n", "GPU035", "write a Workload with `inference`, of which gpuplan"),
        ("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n", "GPU036", "write `apiVersion: gpuplan.dev/v1`"),
        ("apiVersion: gpuplan.dev/v2\nkind: PriorityClass\n", "GPU036", "write `apiVersion: gpuplan.dev/v1`"),
        ("apiVersion: v1\nkind: Endpoints\n", "GPU035", "move it to overlays/test/kustomize/scheduling/, and write"),
        (
            "apiVersion: example.com/v1\nkind: ConfigMap\n",
            "GPU035",
            "move it to overlays/test/kustomize/scheduling/, and write",
        ),
    ],
)
def test_objects_among_policies_are_led_to_what_makes_policies_of_them(
    document: str, code: str, help_: str, tmp_path: Path
) -> None:
    found = {item.code: item.finding.help or "" for item in judged(tmp_path, f"{POLICIES}---\n{document}")}

    assert found[code].startswith(help_)


@pytest.mark.no_cover
def test_no_line_that_is_broken_gives_more_than_it_is(tmp_path: Path) -> None:
    """Each line of the platform, broken in six ways: no more than two errors, none of which blames others."""
    lines, followed = POLICIES.splitlines(), 0
    for row, broken in [(row, broken) for row, line in enumerate(lines) for broken in ways_to_break(line)]:
        text = "\n".join([*lines[:row], *broken, *lines[row + 1 :], ""])
        found = judged(tmp_path, text)
        errors = [item for item in found if item.is_error]
        assert len(errors) <= 2, (broken, [item.finding.message for item in errors])
        if any(item.code in ("GPU001", "GPU007") for item in errors):
            assert not [item.code for item in found if item.code in ("GPU101", "GPU103", "GPU400")], broken
        offered = {word for item in found for word in re.findall(r"write `([^`]*)`", item.finding.help)}
        assert not (offered & set(NAMES)) or lines[row].strip().startswith(("name:", "tenant:", "pool:", "- {")), broken
        if len(found) == 1 and ONE_EDIT.search(found[0].finding.help):
            followed += 1
            assert meaning(mended(text, found[0])) == meaning(POLICIES), (broken, found[0].finding.help)
    assert followed > 200


ONE_EDIT = re.compile(r"^write |on a line of its own|^indent the line with [0-9]+ spaces?$")
"""Help that leaves no choice."""


def ways_to_break(line: str) -> list[list[str]]:
    """What stands in place of a line."""
    if line == "---":
        return [[]]
    body = line.lstrip(" ")
    ways = [f" {line}", f"\t{body}", line.replace(":", "", 1)]
    if line.endswith(("}", "]")):
        ways.append(line[:-1])
    if '"' in line:
        ways += [line.replace('"', "“", 1).replace('"', "”"), line.replace('"', "", 1)]
    return [[way] for way in ways]


def made(mistake: Mistake) -> str:
    assert mistake.old in POLICIES
    return POLICIES.replace(mistake.old, mistake.new, 1)


def judged(root: Path, policies: str, cluster: str = CLUSTER) -> list[Diagnostic]:
    """The errors and warnings of a platform."""
    for path, text in (("policies/all.yaml", policies), ("overlays/test/cluster.yaml", cluster)):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return [item for item in validate(root).diagnostics if item.severity != "note"]


def meaning(text: str) -> list[object]:
    documents, _ = read_text("policies/all.yaml", text)
    return [document.data for document in documents if document.is_whole]


def mended(text: str, found: Diagnostic) -> str:
    """The text with the finding's help applied at its place."""
    lines, span, words = text.split("\n"), found.finding.at.locate().span, found.finding.help
    row, line = span.start.line - 1, text.split("\n")[span.start.line - 1]
    if moved := re.search(r"what is below it, by ([0-9]+) (more|fewer)", words):
        return shifted(lines, row, int(moved[1]) * (1 if moved[2] == "more" else -1))
    if "on a line of its own above" in words:
        lines.insert(row, "---")
    elif width := re.search(r"indent the line with ([0-9]+) space", words):
        lines[row] = " " * int(width[1]) + line.lstrip()
    elif "without spaces before it" in words:
        lines[row] = line.lstrip()
    elif found.code == "GPU001":
        lines[row] = line[: len(line) - len(line.lstrip())] + written(words)
    elif found.code == "GPU143":
        row = next(index for index in range(row, len(lines)) if "namePattern:" in lines[index])
        lines[row] = re.sub(r"(?<=namePattern: ).*", f'"{written(words)}"', lines[row])
    else:
        better = written(words)
        start = line.index(better.partition(":")[0]) if found.code == "GPU032" else span.start.column - 1
        is_whole_line = found.code == "GPU030" and ": " in better and "{" not in line[:start]
        end = len(line) if is_whole_line else span.end.column - 1 + better.endswith(":")
        lines[row] = line[:start] + better + line[end:]
    return "\n".join(lines)


def written(words: str) -> str:
    """What the help tells to write: the last that it quotes."""
    return str(re.findall(r"`([^`]*)`", words)[-1])


def shifted(lines: list[str], row: int, width: int) -> str:
    """The line, and all below it that is indented further, moved to the right or to the left."""
    depth = len(lines[row]) - len(lines[row].lstrip())
    for index in range(row, len(lines)):
        if index > row and (not lines[index].strip() or len(lines[index]) - len(lines[index].lstrip()) <= depth):
            break
        lines[index] = " " * width + lines[index] if width > 0 else lines[index][-width:]
    return "\n".join(lines)
