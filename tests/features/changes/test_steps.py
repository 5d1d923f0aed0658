"""Steps are judged: with what is kept or divided for them they are fine, and comments excuse what is meant."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.compiler.base.diagnostics import Diagnostic, GpuplanError
from gpuplan.compiler.pipeline import build, validate
from gpuplan.compiler.planning.plan import Plan, Pool
from gpuplan.features.changes.checks import run
from gpuplan.features.changes.comparing import choose_sides, compare_sides
from gpuplan.features.changes.edits import write as write_step
from gpuplan.features.changes.retaining import keepers
from gpuplan.features.changes.rollouts import RolloutPlan, StepKind
from gpuplan.features.changes.step import Step
from tests.cli.platforms import CLUSTER, a_broken_platform, a_platform, write
from tests.features.changes.test_retaining import TENANT, a_kueue_plan, a_mig_plan, a_shared_plan
from tests.features.changes.test_rollouts import NO_GUARANTEES, REPOSITORY, a_wish, proposed
from tests.git import a_repository, commit

LARGE, MEDIUM = "instances: {3g.40gb: 2}", "instances: {2g.20gb: 3}"
LAYOUT = "apiVersion: gpuplan.dev/v1\nkind: MigLayout\nmetadata: {name: NAME}\nspec: {gpu: A100-80GB, DIVISION}\n"
POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: mixed}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, namePattern: "mixed-[0-9]+"}
  sharing: {mig: {layout: LAYOUT}}
"""


def codes(found: Iterable[Diagnostic]) -> list[str]:
    return [item.code for item in found if item.severity != "note"]


def between(before: Plan, after: Plan) -> list[str]:
    return codes(run(Step(before, after)))


def a_mixed_platform(root: Path, layout: str = "large") -> Path:
    """A pool that is divided by one of two layouts."""
    write(root / "overlays/dev/cluster.yaml", CLUSTER.replace("NAME", "dev"))
    write(root / "policies/large.yaml", LAYOUT.replace("NAME", "large").replace("DIVISION", LARGE))
    write(root / "policies/medium.yaml", LAYOUT.replace("NAME", "medium").replace("DIVISION", MEDIUM))
    write(root / "policies/pool.yaml", POOL.replace("LAYOUT", layout))
    return root


# --- What is kept or divided -------------------------------------------------------------------------------------


def test_with_what_retain_writes_an_edit_loses_no_entry() -> None:
    before, after = a_mig_plan(LARGE), a_mig_plan(MEDIUM)
    kept = a_mig_plan(MEDIUM, *(keeper.text for keeper in keepers(before, after)))

    assert between(before, after) == ["GPU700", "GPU708"]
    assert between(before, kept) == ["GPU708"]


def test_with_what_retain_writes_a_pool_can_be_renamed() -> None:
    before, after = a_shared_plan(), a_shared_plan(name="other")
    kept = a_shared_plan(*(keeper.text for keeper in keepers(before, after)), name="other")

    assert between(before, after) == ["GPU702", "GPU728"]
    assert between(before, kept) == []


def test_with_what_retain_writes_a_queue_waits_until_it_is_empty() -> None:
    before = a_kueue_plan(TENANT.replace("NAME", "gone").replace("[research]", "[gone]"))
    after = a_kueue_plan()
    kept = a_kueue_plan(*(keeper.text for keeper in keepers(before, after)))

    assert between(before, after) == ["GPU703", "GPU715"]
    assert between(before, kept) == ["GPU715"]
    assert set(between(kept, after)) == {"GPU739"}


def test_every_step_of_a_rollout_is_fine(tmp_path: Path) -> None:
    """From shares to partitions, and from there to others."""
    for folder in ("policies", "overlays"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    write(tmp_path / "overlays/prod/guarantees.yaml", NO_GUARANTEES)
    steps = 0
    for target in ("seven-small", "two-large"):
        while (proposal := proposed(tmp_path, a_wish(target, at_once=2))).edits:
            before = the_plan(tmp_path)
            write_step(tmp_path, proposal.edits[0])
            assert isinstance(proposal.outcome, RolloutPlan)
            step = proposal.outcome.steps[0]
            forgets = step.kind is not StepKind.PREPARE and step.changes_file
            assert between(before, with_two_away(the_plan(tmp_path))) == ["GPU739"] * forgets
            steps += 1
    assert steps >= 7


def the_plan(root: Path) -> Plan:
    [plan] = build(root, ("prod",)).report.plans
    return plan


def with_two_away(plan: Plan) -> Plan:
    """What is wished for outdoes what the policy allows."""
    return replace(plan, pools=tuple(map(_with_two_away, plan.pools)))


def _with_two_away(pool: Pool) -> Pool:
    disruption = pool.spec.disruption.model_copy(update={"max_unavailable": 2})
    return pool._replace(spec=pool.spec.model_copy(update={"disruption": disruption}))


# --- From a revision ---------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A platform, all committed."""
    found = a_mixed_platform(a_repository(tmp_path / "platform"))
    commit(found)
    return found


def test_a_step_from_a_revision_is_judged_beside_the_policies(repository: Path) -> None:
    write(repository / "policies/pool.yaml", POOL.replace("LAYOUT", "medium"))

    assert codes(validate(repository).diagnostics) == []
    assert codes(validate(repository, against="HEAD").diagnostics) == ["GPU708"]


def test_too_many_nodes_at_once_are_shown_the_number_that_nobody_wrote_and_both_ways_out(repository: Path) -> None:
    write(repository / "policies/pool.yaml", POOL.replace("LAYOUT", "medium"))

    [found] = [item.finding for item in validate(repository, against="HEAD").diagnostics if item.is_error]
    assert [label.text for label in found.related] == ["`maxUnavailable` is 1"]
    assert found.help == (
        "take it back, and run `gpuplan rollout mixed --to medium --cluster dev`; or drain the nodes, and say so: "
        "`# gpuplan: ignore[GPU708] REASON`"
    )


def test_steps_lead_only_to_a_layout_with_a_name(repository: Path) -> None:
    write(repository / "policies/pool.yaml", POOL.replace("layout: LAYOUT", MEDIUM))

    [found] = [item.finding for item in validate(repository, against="HEAD").diagnostics if item.code == "GPU708"]
    assert found.help.startswith(
        "take it back, write the division as layout `mixed-2`, and run `gpuplan rollout mixed --to mixed-2 --cluster"
    )


def test_a_difference_shows_what_is_found_about_it(repository: Path) -> None:
    write(repository / "policies/pool.yaml", POOL.replace("LAYOUT", "medium"))

    assert codes(compare_sides(*choose_sides(repository)).findings) == ["GPU708"]


def test_a_comment_excuses_a_step(repository: Path) -> None:
    text = POOL.replace("sharing:", "# gpuplan: ignore[GPU708] nothing runs there\n  sharing:")
    write(repository / "policies/pool.yaml", text.replace("LAYOUT", "medium"))

    assert codes(validate(repository, against="HEAD").diagnostics) == []
    assert codes(compare_sides(*choose_sides(repository)).findings) == []


def test_a_comment_on_a_step_is_needed_while_the_step_is_judged(repository: Path) -> None:
    """Without a step nobody knows; after it the comment would excuse the next one."""
    text = POOL.replace("sharing:", "# gpuplan: ignore[GPU708] nothing runs there\n  sharing:")
    write(repository / "policies/pool.yaml", text.replace("LAYOUT", "medium"))
    commit(repository)

    assert codes(validate(repository).diagnostics) == []
    assert codes(build(repository).report.diagnostics) == []
    assert codes(validate(repository, against="HEAD").diagnostics) == ["GPU112"]


@pytest.mark.parametrize("code", ["GPU700", "GPU717", "GPU718", "GPU719", "GPU728", "GPU729", "GPU736"])
def test_whether_a_comment_on_a_step_is_needed_nobody_knows_without_one(repository: Path, code: str) -> None:
    pool = POOL.replace("LAYOUT", "large")
    write(
        repository / "policies/pool.yaml", pool.replace("sharing:", f"# gpuplan: ignore[{code}] as agreed\n  sharing:")
    )

    assert "GPU112" not in codes(validate(repository).diagnostics)


@pytest.mark.parametrize("code", ["GPU659", "GPU720", "GPU727", "GPU730", "GPU737", "GPU740", "GPU906"])
def test_rules_on_what_is_there_are_judged_without_a_step_whatever_their_codes(repository: Path, code: str) -> None:
    pool = POOL.replace("LAYOUT", "large")
    write(
        repository / "policies/pool.yaml", pool.replace("sharing:", f"# gpuplan: ignore[{code}] as agreed\n  sharing:")
    )

    assert "GPU112" in codes(validate(repository).diagnostics)


def test_a_platform_that_has_moved_is_said_to_be_new(repository: Path) -> None:
    moved = repository / "sub"
    for folder in ("policies", "overlays"):
        write(moved / ".keep", "")
        shutil.move(repository / folder, moved / folder)

    [found] = [item for item in validate(moved, against="HEAD").diagnostics if item.code == "GPU719"]
    assert (found.severity, found.finding.message) == ("note", "cluster `dev` is new: `HEAD` does not have it")


def test_errors_come_before_steps(repository: Path) -> None:
    (repository / "policies/large.yaml").unlink()

    assert codes(validate(repository, against="HEAD").diagnostics) == ["GPU101"]


def test_a_step_from_errors_is_not_judged(tmp_path: Path) -> None:
    before, after = a_broken_platform(tmp_path / "before"), a_platform(tmp_path / "after")

    assert codes(validate(after, against=str(before)).diagnostics) == ["GPU719"]


def test_clusters_that_are_not_asked_for_are_not_said_to_be_removed(tmp_path: Path) -> None:
    before, after = a_platform(tmp_path / "before", "dev", "prod"), a_platform(tmp_path / "after", "dev")

    assert codes(validate(after, against=str(before)).diagnostics) == ["GPU718"]
    assert codes(validate(after, ("dev",), against=str(before)).diagnostics) == []


def test_what_was_built_says_nothing_of_policies(tmp_path: Path) -> None:
    platform = a_platform(tmp_path / "platform")
    out = tmp_path / "out"
    out.mkdir()
    write(out / ".gpuplan/inventory", "")

    with pytest.raises(GpuplanError, match="a step is judged between policies"):
        validate(platform, against=str(out))
