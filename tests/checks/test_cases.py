"""Every rule has a case that fails as marked and a nearest legal neighbour that passes.

A case is a YAML file that is put as `overlays/test/case.yaml`, or a folder that is a whole repository. `marks.py` says
how it states what is found.

A case of a rule on steps is a folder with two of these, `earlier` and `later`, and may have the pods that run meanwhile
as `pods.json`, or the nodes that there are as `nodes.yaml`; the later one is marked.
"""

from __future__ import annotations

import pkgutil
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import gpuplan
from gpuplan.compiler import checks, documents, manifests, outtree, planning, policy
from gpuplan.compiler.base.diagnostics import Diagnostic, Family, RetiredRule, Rule
from gpuplan.compiler.checks.generated import GENERATED_CHECKS, PATCH_CHECKS
from gpuplan.compiler.checks.registry import checks_in
from gpuplan.compiler.pipeline import rules, validate
from gpuplan.compiler.pipeline.rules import RETIRED
from gpuplan.compiler.planning.node_list import read_nodes
from gpuplan.features.changes import checks as step_checks
from gpuplan.features.changes.comparing import judge_step
from gpuplan.features.changes.pods import read_pods
from gpuplan.features.components.checks import FILE_CHECKS, OBJECT_CHECKS, PATCHED_CHECKS
from gpuplan.features.files.checks import ALONE_CHECKS
from gpuplan.features.live import rules as adoption
from gpuplan.features.packing import rules as sizing
from tests import kustomizing
from tests.checks.marks import RELATED, Mark, Text, computed, describe, read_marks, shape
from tests.plans import CLUSTER

HERE = Path(__file__).parent
CASES = sorted(path for path in HERE.glob("GPU*/*") if path.name.startswith(("fail-", "ok-")))
SHOWN_ELSEWHERE = frozenset(
    (
        "GPU023",
        *("GPU680", "GPU690"),
        *("GPU800", "GPU801", "GPU802", "GPU896", "GPU897"),
        *(rule.code for rule in adoption.RULES),
        *(rule.code for rule in sizing.RULES),
        *("GPU827", "GPU828", "GPU829", "GPU830", "GPU831"),
        *("GPU901", "GPU902", "GPU903", "GPU904", "GPU905", "GPU906", "GPU907", "GPU908", "GPU909"),
        *("GPU911", "GPU912", "GPU913"),
    )
)
"""Rules on what is rendered and written, which no repository can break: tests of `pipeline`, `outtree`, `manifests`;
those on files without a platform: `tests/cli/test_check.py`, `tests/features/files`, `live` and `packing/sizing` there;
and one whose case would be a trap in our own repository: `tests/compiler/documents/test_embedded.py`.
"""
CHECKING = ("gpuplan.compiler.checks.", "gpuplan.compiler.pipeline.", "gpuplan.features.")
"""Where checks may be written."""
FOUND_EVERYWHERE = frozenset(("GPU425", "GPU680"))
"""Rules that nearly every case would state: pools have no taints there, and hand-written Components are not proven."""
ON_RESULTS = frozenset(("GPU627", "GPU645", *(f"GPU{number}" for number in range(681, 690))))
"""Rules on what kustomize makes of hand-written files: they need the program."""


def check_case(case: Path, root: Path) -> None:
    """Hold what is found in a case, which is laid out in an empty folder, against its marks: `conftest.py` calls it."""
    later = lay_out(case, root)
    wanted = read_expected(case, later)
    if case.parent.name in ON_RESULTS or any(expected.code in ON_RESULTS for expected in wanted):
        kustomizing.need()
    found = judged(case, later)
    left, missing = compare(wanted, found)
    assert ([describe(item) for item in left], [str(expected) for expected in missing]) == ([], [])
    is_about_its_rule = case.parent.name in {expected.code for expected in wanted}
    assert is_about_its_rule == case.name.startswith("fail-")
    for item in found:
        assert item.code != case.parent.name or unstated(item) == [], "no case states this: python -m tests.checks"


def test_every_rule_on_policies_has_both_kinds_of_case() -> None:
    kinds = {(path.parent.name, path.name.partition("-")[0]) for path in CASES}
    codes = [rule.code for rule in rules() if rule.code not in SHOWN_ELSEWHERE]
    assert [(code, kind) for code in codes for kind in ("fail", "ok") if (code, kind) not in kinds] == []


def test_codes_and_names_are_unique() -> None:
    codes, names = Counter(rule.code for rule in rules()), Counter(rule.name for rule in rules())
    assert [code for code, times in codes.items() if times > 1] == []
    assert [name for name, times in names.items() if times > 1] == []


def test_every_check_is_in_a_registry() -> None:
    names = (module.name for module in pkgutil.walk_packages(gpuplan.__path__, "gpuplan."))
    written = checks_in(*map(import_module, (name for name in names if name.startswith(CHECKING))))
    registries = (
        *(checks.CHECKS, step_checks.CHECKS, FILE_CHECKS, OBJECT_CHECKS, ALONE_CHECKS),
        *(PATCHED_CHECKS, GENERATED_CHECKS, PATCH_CHECKS),
    )
    registered = {id(check) for registry in registries for check in registry}
    assert [check.rule.code for check in written if id(check) not in registered] == []
    assert {check.rule.code for check in written} <= {rule.code for rule in rules()}


def test_families_are_those_of_what_finds_the_rules() -> None:
    found = {family: {rule.code for rule in rules() if rule.family is family} for family in Family}

    assert found[Family.READING] == {rule.code for rule in documents.RULES}
    assert found[Family.POLICY] == {rule.code for rule in policy.RULES}
    assert found[Family.PLANNING] == {rule.code for rule in planning.RULES}
    assert found[Family.PLAN] >= {check.rule.code for check in (*checks.CHECKS, *FILE_CHECKS)}
    assert found[Family.STEP] == {"GPU718", "GPU719", *(check.rule.code for check in step_checks.CHECKS)}
    by_result = {check.rule.code for check in PATCHED_CHECKS} - {
        "GPU627"
    }  # which a patch of what is not there breaks, too
    assert found[Family.OBJECTS] >= {*by_result, *(rule.code for rule in manifests.RULES)}
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


def test_every_rule_is_documented() -> None:
    asked: dict[str, Callable[[Rule], object]] = {
        "the code is GPU and three digits": lambda rule: re.fullmatch(r"GPU[0-9]{3}", rule.code),
        "the name is words with hyphens": lambda rule: re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name),
        "the first paragraph is a sentence": lambda rule: rule.summary.endswith("."),
        "there is a section Why": lambda rule: "\n## Why\n" in rule.docs,
        "there is a section Instead": lambda rule: "\n## Instead\n" in rule.docs,
    }
    assert [(rule.code, what) for rule in rules() for what, is_so in asked.items() if not is_so(rule)] == []


def judged(case: Path, later: Path) -> tuple[Diagnostic, ...]:
    """What is wrong with a repository, or with the step to it where there is an earlier one."""
    passed_over = FOUND_EVERYWHERE - {case.parent.name}
    return tuple(item for item in _judged(case, later) if item.code not in passed_over)


def _judged(case: Path, later: Path) -> tuple[Diagnostic, ...]:
    earlier, pods, nodes = later.parent / "earlier", case / "pods.json", case / "nodes.yaml"
    if later.name != "later":
        return validate(later).diagnostics
    if not pods.is_file():
        listed = read_nodes(nodes.read_text(), nodes.name) if nodes.is_file() else None
        return validate(later, against=str(earlier), kustomize="off", nodes=listed).diagnostics
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


def read_expected(case: Path, root: Path) -> list[Mark]:
    if (case / "expected").is_file():
        return read_marks(case / "expected", "")
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix in (".yaml", ".yml"))
    return [mark for path in files for mark in read_marks(path, path.relative_to(root).as_posix())]


def compare(wanted: Iterable[Mark], found: Sequence[Diagnostic]) -> tuple[list[Diagnostic], list[Mark]]:
    """What nothing states, and what is stated and not found."""
    missing, left = [], list(found)
    for mark in wanted:
        among = found if mark.severity == RELATED else left
        match = next((item for item in among if mark.matches(item) and mark.states_truth(item)), None)
        if match is None:
            missing.append(mark)
        elif mark.severity != RELATED:
            left.remove(match)
    return left, missing


def unstated(found: Diagnostic) -> list[Text]:
    """Texts with names or numbers that no case of the rule states, in these words at least."""
    stated = {shape(text) for text in stated_texts(found.code)}
    return [text for text in computed(found.finding) if shape(text) not in stated]


@cache
def stated_texts(code: str) -> frozenset[Text]:
    files = [path for path in (HERE / code).rglob("*") if path.is_file()]
    return frozenset(
        text for path in files for mark in read_marks(path, "") if mark.code == code for text in mark.states()
    )
