"""Every rule has a case that fails as marked and a nearest legal neighbour that passes.

A case is a YAML file that is put as `overlays/test/case.yaml`, or a folder that is a whole repository. A comment
`# error: GPU203 part of the message` marks the line of a finding; a folder may list its findings in a file `expected`
instead, one `path:line:column severity CODE part of the message` a line.

A case of a rule on steps is a folder with two of these, `earlier` and `later`, and may have the pods that run meanwhile
as `pods.json`; the later one is marked.
"""

from __future__ import annotations

import pkgutil
import re
import shutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

import gpuplan
from gpuplan import checks, documents, manifests, outtree, planning, policy
from gpuplan.changes import checks as step_checks
from gpuplan.changes.pods import read_pods
from gpuplan.checks.handwritten import PATCHED_CHECKS
from gpuplan.checks.registry import checks_in
from gpuplan.diagnostics import Diagnostic, Family, RetiredRule, Rule
from gpuplan.pipeline import rules, validate
from gpuplan.pipeline.retired import RETIRED
from gpuplan.pipeline.steps import judge_step
from tests import kustomizing
from tests.plans import CLUSTER

HERE = Path(__file__).parent
CASES = sorted(path for path in HERE.glob("GPU*/*") if path.name.startswith(("fail-", "ok-")))
SHOWN_ELSEWHERE = frozenset(
    (
        *("GPU680", "GPU690"),
        *("GPU901", "GPU902", "GPU903", "GPU904", "GPU905", "GPU906", "GPU907"),
        *("GPU911", "GPU912", "GPU913"),
    )
)
"""Rules on what is rendered and written, which no repository can break: tests of `pipeline`, `outtree`, `manifests`."""
CHECKING = ("gpuplan.checks.", "gpuplan.changes.", "gpuplan.pipeline.")
"""Where checks may be written."""
ON_RESULTS = frozenset(f"GPU{number}" for number in range(681, 690))
"""Rules on what kustomize makes of hand-written files: they need the program."""
MARK = re.compile(r"(?:^|\s|;\s)(error|warning|note): (GPU[0-9]{3})([^;]*)")


@dataclass(frozen=True)
class Expected:
    place: str
    severity: str
    code: str
    part: str

    def matches(self, found: Diagnostic) -> bool:
        location = found.finding.at.locate()
        line, column = location.span.start.line, location.span.start.column
        places = (f"{location.file.path}:{line}", f"{location.file.path}:{line}:{column}")
        same = (self.severity, self.code) == (found.severity.value, found.code)
        return same and self.place in places and self.part in found.finding.message


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_case(case: Path, tmp_path: Path) -> None:
    later = lay_out(case, tmp_path)
    wanted = read_expected(case, later)
    if case.parent.name in ON_RESULTS or any(expected.code in ON_RESULTS for expected in wanted):
        kustomizing.need()
    found = [item for item in judged(case, later) if item.code != "GPU680"]
    missing = []
    for expected in wanted:
        match = next((item for item in found if expected.matches(item)), None)
        if match is None:
            missing.append(expected)
        else:
            found.remove(match)
    assert ([describe(item) for item in found], missing) == ([], [])
    is_about_its_rule = case.parent.name in {expected.code for expected in wanted}
    assert is_about_its_rule == case.name.startswith("fail-")


@pytest.mark.parametrize(
    "rule", [rule for rule in rules() if rule.code not in SHOWN_ELSEWHERE], ids=lambda rule: rule.code
)
def test_every_rule_on_policies_has_both_kinds_of_case(rule: Rule) -> None:
    names = [path.name for path in CASES if path.parent.name == rule.code]
    assert any(name.startswith("fail-") for name in names), "no failing case"
    assert any(name.startswith("ok-") for name in names), "no passing case"


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in rules()}) == len(rules())
    assert len({rule.name for rule in rules()}) == len(rules())


def test_every_check_is_in_a_registry() -> None:
    names = (module.name for module in pkgutil.walk_packages(gpuplan.__path__, "gpuplan."))
    written = checks_in(*map(import_module, (name for name in names if name.startswith(CHECKING))))
    registered = {id(check) for check in (*checks.CHECKS, *step_checks.CHECKS, *PATCHED_CHECKS)}
    assert [check.rule.code for check in written if id(check) not in registered] == []


def test_families_are_those_of_what_finds_the_rules() -> None:
    found = {family: {rule.code for rule in rules() if rule.family is family} for family in Family}

    assert found[Family.READING] == {rule.code for rule in documents.RULES}
    assert found[Family.POLICY] == {rule.code for rule in policy.RULES}
    assert found[Family.PLANNING] == {rule.code for rule in planning.RULES}
    assert found[Family.PLAN] >= {check.rule.code for check in checks.CHECKS}
    assert found[Family.STEP] == {"GPU718", "GPU719", *(check.rule.code for check in step_checks.CHECKS)}
    assert found[Family.OBJECTS] >= {
        rule.code for rule in (*(check.rule for check in PATCHED_CHECKS), *manifests.RULES)
    }
    assert found[Family.OUTPUT] == {rule.code for rule in outtree.RULES}


def test_nothing_is_concluded_from_how_a_code_begins() -> None:
    """Codes are given as they come: what a rule is about, its family says."""
    concludes = re.compile(r"""["']GPU[0-9]{1,2}["']|\.code(?: [<>]|\.startswith|\[)""")
    sources = sorted((HERE.parents[1] / "gpuplan").rglob("*.py"))
    found = [(path.name, line) for path in sources for line in path.read_text().splitlines() if concludes.search(line)]

    assert found == []


@pytest.mark.parametrize("retired", RETIRED, ids=lambda retired: retired.code)
def test_codes_and_names_of_retired_rules_are_not_used_again(retired: RetiredRule) -> None:
    """Comments and reports of years hold them; take a code that is neither in `RETIRED` nor in `gpuplan rules`."""
    again = [rule for rule in rules() if retired.code == rule.code or retired.name == rule.name]
    why = f"{retired.code} {retired.name} is retired, and neither means anything else again: {retired.reason}"
    assert again == [], why
    assert not (HERE / retired.code).exists(), f"a retired rule has no cases: remove tests/checks/{retired.code}"


def test_every_rule_that_the_changelog_calls_gone_is_listed_as_retired() -> None:
    changelog = (HERE.parents[1] / "CHANGELOG.md").read_text()
    gone = {
        code for part in re.findall(r"([^:.]*) (?:is|are) gone", changelog) for code in re.findall(r"GPU\d{3}", part)
    }

    assert gone
    assert gone <= {retired.code for retired in RETIRED}


def test_retired_rules_are_listed_by_code() -> None:
    assert [retired.code for retired in RETIRED] == sorted({retired.code for retired in RETIRED})


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_every_rule_is_documented(rule: Rule) -> None:
    assert re.fullmatch(r"GPU[0-9]{3}", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert rule.summary.endswith("."), "the first paragraph is a sentence"
    assert "\n## Why\n" in rule.docs
    assert "\n## Instead\n" in rule.docs


def judged(case: Path, later: Path) -> tuple[Diagnostic, ...]:
    """What is wrong with a repository, or with the step to it where there is an earlier one."""
    earlier, pods = later.parent / "earlier", case / "pods.json"
    if later.name != "later":
        return validate(later).diagnostics
    if not pods.is_file():
        return validate(later, against=str(earlier), kustomize="off").diagnostics
    before, after = (validate(root, kustomize="off") for root in (earlier, later))
    step = judge_step(before, after, "earlier", read_pods(pods.read_text(), pods.name))
    return (*after.diagnostics, *step)


def lay_out(case: Path, root: Path) -> Path:
    """Make a repository of a case, or two; the one that is judged. A cluster is supplied where a case has none."""
    states = [path for path in sorted(case.iterdir()) if path.stem in ("earlier", "later")] if case.is_dir() else []
    for state in states:
        put(state, root / state.stem)
    if states:
        return root / "later"
    put(case, root)
    return root


def put(case: Path, root: Path) -> None:
    if case.is_dir():
        shutil.copytree(case, root, dirs_exist_ok=True, symlinks=True, ignore=shutil.ignore_patterns("expected"))
        return
    overlay = root / "overlays" / "test"
    overlay.mkdir(parents=True)
    data = case.read_bytes()
    (overlay / "case.yaml").write_bytes(data)
    if b"kind: Cluster" not in data:
        (overlay / "cluster.yaml").write_text(CLUSTER)


def read_expected(case: Path, root: Path) -> list[Expected]:
    listed = case / "expected"
    if listed.is_file():
        return [_listed(line) for line in listed.read_text().splitlines() if line.strip()]
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix in (".yaml", ".yml"))
    return [expected for path in files for expected in _marked(path, path.relative_to(root).as_posix())]


def _listed(line: str) -> Expected:
    place, severity, code, *part = line.split(" ", 3)
    return Expected(place, severity, code, part[0] if part else "")


def _marked(path: Path, name: str) -> list[Expected]:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return [
        Expected(f"{name}:{number}", severity, code, part.strip())
        for number, line in enumerate(lines, start=1)
        if "#" in line
        for severity, code, part in MARK.findall(line[line.index("#") :])
    ]


def describe(found: Diagnostic) -> str:
    location = found.finding.at.locate()
    start = location.span.start
    return f"{location.file.path}:{start.line}:{start.column} {found.severity} {found.code} {found.finding.message}"
