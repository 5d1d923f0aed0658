"""What a change disturbs, as people and programs read it."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, strategies as st

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.manifests import Identity, Subject
from gpuplan.compiler.planning.appliers import Applier
from gpuplan.compiler.policy.models import Approval, Window
from gpuplan.features.changes.comparing import WORK_TREE, Diff, Impact, Platform, Side, SideKind
from gpuplan.features.changes.model import CapacityChange, Change, GrantChange, NodeImpact, ObjectChange, Wait
from gpuplan.features.changes.orders import BadOrder, Hazard
from gpuplan.features.changes.pods import Holder
from gpuplan.features.changes.revisions import Revision
from gpuplan.features.changes.views.data.classes import CLASS_MEANINGS
from gpuplan.features.changes.views.diff import LIMIT, class_style, shown_diff
from gpuplan.terminal.schemas import schema
from gpuplan.terminal.text import PLAIN, Style, Theme
from tests.cli.runs import REPOSITORY
from tests.terminal.builders import FIT, a_report, at
from tests.terminal.test_markdown import OURS
from tests.terminal.test_plan import strictly

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HEAD = Side(SideKind.REVISION, "HEAD", Path(), Revision("HEAD", COMMIT, "gpu/"))
FILES = Side(SideKind.WORK_TREE, WORK_TREE, Path())
PLACE = at("kind: Pool\nspec:\n  layout: «large»\n", file="policies/pools.yaml")
WINDOW = Window(schedule="0 2 1 7 6", duration="4h")
CHANGE = Change(
    "prod",
    Subject("Pool", "mixed"),
    PLACE,
    ChangeClass.REPARTITION,
    "layout `small` becomes `large`",
    "mig-manager sets up the GPUs of 2 nodes at once and drains none: pods that hold them must end first",
    "reverting partitions the same nodes again, which needs them drained again",
    folders=("namespaces/lab", "namespaces/shop", "partitions/mixed", "argocd"),
    nodes=NodeImpact(2, (), "mixed-[0-9]+"),
    capacity=(CapacityChange("mixed", "1g.10gb", 112, 0), CapacityChange("mixed", "3g.40gb", 0, 32)),
    grants=(GrantChange("lab", "mixed", "1g.10gb", 40, 0, Decimal("60.50"), None),),
    pods=112,
    needs_drain=True,
    needs_reboot=True,
    windows=(WINDOW,),
)
APPLIERS = (
    Applier("Application", "gpu-namespace-prod-lab", "namespaces/lab", Approval.AUTOMATIC, ()),
    Applier("Application", "gpu-namespace-prod-shop", "namespaces/shop", Approval.AUTOMATIC, ()),
    Applier("Application", "gpu-partitions-prod-mixed", "partitions/mixed", Approval.MANUAL, (WINDOW,)),
)
QUOTA = Change("dev", Subject("Tenant", "lab"), PLACE, ChangeClass.QUOTA, "is removed", "new pods wait", "it undoes it")
BOARD = Identity("", "ConfigMap", "eye", "board")
OBJECT = ObjectChange("prod", ChangeClass.METADATA, "monitoring", BOARD, "changed", at=PLACE)


def an_impact(change: Change = CHANGE, **fields: Any) -> Impact:
    return Impact(change, is_earlier=False, appliers=APPLIERS, holders=None)._replace(**fields)


def a_diff(*impacts: Impact, objects: tuple[ObjectChange, ...] = (), **fields: Any) -> Diff:
    platforms = {"earlier": Platform(HEAD, ("prod",), a_report()), "later": Platform(FILES, ("prod",), a_report())}
    return Diff(**{**platforms, "impacts": impacts, "objects": objects, **fields})


def page(diff: Diff, theme: Theme = PLAIN) -> str:
    return shown_diff(diff, "table", theme)


def markdown(diff: Diff) -> str:
    return shown_diff(diff, "markdown", PLAIN)


WHOLE = a_diff(an_impact(QUOTA, is_earlier=True, appliers=()), an_impact(), objects=(OBJECT,))


# --- For people --------------------------------------------------------------------------------------------------


def test_what_a_root_syncs_is_said_with_it() -> None:
    names = ("gpu-operator", "gpu-operator-prod"), ("partitions/mixed", "gpu-partitions-prod-mixed")
    rooted = tuple(
        Applier("Application", name, folder, Approval.AUTOMATIC, (), root="gpu-root-prod") for folder, name in names
    )
    shown = page(a_diff(an_impact(appliers=(*rooted, *APPLIERS[:1]))))
    by_root = (
        "Applications `gpu-operator-prod` and `gpu-partitions-prod-mixed`: by `gpu-root-prod`, the GPU Operator first"
    )
    assert f"      applied {by_root}\n" in shown
    assert "              Application `gpu-namespace-prod-lab`: by itself\n" in shown
    assert "whatever applies" not in shown


def test_a_page_says_what_is_disturbed_and_how_to_undo_it() -> None:
    assert (
        page(WHOLE)
        == """\
repartition: 3 changes in 2 clusters, 2 nodes to drain, up to 112 pods disturbed
from `HEAD` (0123456789ab) to the working tree

Cluster dev
  quota  Tenant `lab`: is removed  HEAD:gpu/policies/pools.yaml:3
      effect  new pods wait
      undo    it undoes it

Cluster prod
  repartition  Pool `mixed`: layout `small` becomes `large`  policies/pools.yaml:3
      effect  mig-manager sets up the GPUs of 2 nodes at once and drains none: pods that hold them must end first
      nodes   2, matching `mixed-[0-9]+`; drain them first; they may reboot
      pods    up to 112
      units   `1g.10gb` of `mixed`: 112 to 0
              `3g.40gb` of `mixed`: 0 to 32
      tenants `lab`, `1g.10gb` of `mixed`: guaranteed 40 to 0, limit 60.5 to none
      applied Applications `gpu-namespace-prod-lab` and `gpu-namespace-prod-shop`: by themselves
              Application `gpu-partitions-prod-mixed`: a person starts it, within `0 2 1 7 6` for 4h, UTC
              whatever applies `argocd/`
      undo    reverting partitions the same nodes again, which needs them drained again
  metadata  ConfigMap eye/board is changed in monitoring/  policies/pools.yaml:3
  in time 1. at the merge by itself: `gpu-namespace-prod-lab` and `gpu-namespace-prod-shop`
          2. then a person starts it, within `0 2 1 7 6` for 4h, UTC: `gpu-partitions-prod-mixed` (drain 2 nodes before)
"""
    )


def test_a_timeline_of_one_moment_is_left_out() -> None:
    plain = an_impact()._replace(appliers=APPLIERS[:1])

    assert "in time" not in page(a_diff(plain))
    assert json.loads(shown_diff(a_diff(plain), "json", PLAIN))["clusters"][0]["timeline"] == []


def test_nodes_are_drained_before_their_labels_and_not_before_the_files_that_labels_name() -> None:
    operator = Applier("Application", "gpu-operator-prod", "gpu-operator", Approval.AUTOMATIC, ())
    both = page(a_diff(an_impact()._replace(appliers=(operator, APPLIERS[2]))))
    alone = page(a_diff(an_impact()._replace(appliers=(operator, APPLIERS[0]._replace(approval=Approval.MANUAL)))))

    assert "1. at the merge by itself: `gpu-operator-prod`\n" in both
    assert "`gpu-partitions-prod-mixed` (drain 2 nodes before)\n" in both
    assert "1. at the merge by itself: `gpu-operator-prod` (drain 2 nodes before)\n" in alone


def test_a_timeline_ends_with_what_waits_for_somebody() -> None:
    told = page(a_diff(an_impact()._replace(appliers=APPLIERS[:1]), waits=(WAIT,)))

    assert "  in time 1. at the merge by itself: `gpu-namespace-prod-lab`\n" in told
    assert "          2. until somebody acts: `gpu-workloads-prod-lab`\n" in told


def test_nodes_on_which_operator_pods_restart_are_told_apart() -> None:
    restarts = CHANGE._replace(
        change_class=ChangeClass.PLUGIN_RESTART,
        nodes=NodeImpact(5, (), "all-[0-9]+"),
        needs_drain=False,
        daemon_sets=("nvidia-device-plugin-daemonset",),
    )
    diff = a_diff(an_impact(), an_impact(restarts))

    assert (diff.nodes_to_drain, diff.nodes) == (2, 7)
    assert ", 2 nodes to drain, 5 other nodes touched, " in page(diff)
    assert "`gpu-partitions-prod-mixed` (drain 2 nodes before and operator pods restart on 5 nodes)" in page(diff)


BAD = BadOrder(
    "prod",
    Hazard.UNLABELLED,
    NodeImpact(1, ("b",), None),
    "b",
    ("partitions/x",),
    ("partitions/mixed",),
    "has no partition label",
    None,
    ("x", "mixed"),
    None,
    None,
    is_unasked=True,
    safe=("partitions/mixed", "partitions/x"),
    text="if `gpu-partitions-prod-x` syncs before `gpu-partitions-prod-mixed`: node `b` has no partition label",
    advice="safe: `gpu-partitions-prod-mixed`, then `gpu-partitions-prod-x`",
)


def test_a_page_names_the_first_bad_order_and_one_that_is_safe() -> None:
    later = BAD._replace(hazard=Hazard.EARLY, safe=None)
    assert page(a_diff(an_impact(QUOTA._replace(cluster="prod")), orders={"prod": (BAD, later)})).endswith(
        """\
  orders  if `gpu-partitions-prod-x` syncs before `gpu-partitions-prod-mixed`: node `b` has no partition label
          safe: `gpu-partitions-prod-mixed`, then `gpu-partitions-prod-x`
          1 more order in JSON
"""
    )


WAIT = Wait(
    "prod",
    "gpu-workloads-prod-lab",
    "workloads/lab",
    (Identity("", "PersistentVolumeClaim", "lab", "chat-model"),),
    (Identity("batch", "Job", "lab", "tune-1"), Identity("batch", "Job", "lab", "tune-2")),
)


def test_a_page_says_what_a_sync_waits_for_and_what_to_type() -> None:
    assert page(a_diff(an_impact(), waits=(WAIT,))).endswith(
        """\
  waits   `gpu-workloads-prod-lab` takes no other commit until a person confirms \
the deletion of `PersistentVolumeClaim lab/chat-model`: `argocd app confirm-deletion gpu-workloads-prod-lab`
          `gpu-workloads-prod-lab` takes no other commit until `Job.batch lab/tune-1` and `Job.batch lab/tune-2` \
have ended; where that hangs, mend it in Git, then `argocd app terminate-op gpu-workloads-prod-lab` and \
`argocd app sync gpu-workloads-prod-lab`
"""
    )
    assert "waits" not in page(a_diff(an_impact()))


def test_a_page_says_which_application_syncs_nothing_and_what_to_delete() -> None:
    classes = tuple(Identity("scheduling.k8s.io", "PriorityClass", "", name) for name in ("late", "soon"))
    wait = Wait("prod", APPLIERS[0].name, APPLIERS[0].folder, refused=classes)
    told = page(a_diff(an_impact(blocked=frozenset((wait.application,))), waits=(wait,)))

    assert "Application `gpu-namespace-prod-lab`: by itself, once what cannot be changed is deleted\n" in told
    assert "Application `gpu-namespace-prod-shop`: by itself\n" in told
    assert told.endswith(
        f"""\
  waits   `{wait.application}` changes nothing until `PriorityClass.scheduling.k8s.io late` and \
`PriorityClass.scheduling.k8s.io soon` are deleted or the commit is reverted: once Argo CD has read the commit, \
`kubectl delete priorityclass.scheduling.k8s.io late` and `kubectl delete priorityclass.scheduling.k8s.io soon`
"""
    )


def test_a_page_says_what_stays_when_a_folder_goes_and_what_to_type() -> None:
    left = Identity("", "Namespace", "", "lab"), Identity("", "ResourceQuota", "lab", "gpuplan")
    wait = Wait("prod", "gpu-namespace-prod-lab", "namespaces/lab", left=left)

    assert page(a_diff(an_impact(), waits=(wait,))).endswith(
        """\
  waits   `gpu-namespace-prod-lab` syncs nothing any more, since its folder is gone, and what it applied stays; \
to remove that, `kubectl delete namespace lab`, then `argocd app delete gpu-namespace-prod-lab`, and where it asks \
`argocd app confirm-deletion gpu-namespace-prod-lab`
"""
    )


def test_markdown_says_what_a_sync_waits_for() -> None:
    start = "### What waits\n\n- <code>prod</code>: <code>gpu-workloads-prod-lab</code> takes no other commit until "
    assert start in markdown(a_diff(an_impact(), waits=(WAIT,)))
    assert "### What waits" not in markdown(a_diff(an_impact()))


def test_programs_get_what_a_sync_waits_for() -> None:
    found = json.loads(shown_diff(a_diff(an_impact(), waits=(WAIT,)), "json", PLAIN))
    jsonschema.validate(found, schema("diff"))
    (cluster,) = found["clusters"]
    assert cluster["waits"] == [
        {
            "application": "gpu-workloads-prod-lab",
            "folder": "workloads/lab",
            "pruned": [{"group": "", "kind": "PersistentVolumeClaim", "namespace": "lab", "name": "chat-model"}],
            "ended": [
                {"group": "batch", "kind": "Job", "namespace": "lab", "name": name} for name in ("tune-1", "tune-2")
            ],
            "refused": [],
            "left": [],
        }
    ]


def test_a_page_says_that_all_orders_are_safe_only_where_there_are_several() -> None:
    folders = ("gpu-operator", "partitions/mixed")
    several, one = (an_impact(CHANGE._replace(folders=found)) for found in (folders, folders[1:]))
    assert page(a_diff(several, orders={"prod": ()})).endswith("  orders  safe in any order of syncs\n")
    assert "orders" not in page(a_diff(one, orders={"prod": ()}))
    assert "orders" not in page(a_diff(several)), "not judged"


def test_markdown_names_the_first_bad_order() -> None:
    start = "### In which order\n\n- <code>prod</code>: if <code>gpu-partitions-prod-x</code> syncs before "
    assert start in markdown(a_diff(an_impact(), orders={"prod": (BAD,)}))
    assert "### In which order" not in markdown(a_diff(an_impact()))


def test_programs_get_every_bad_order() -> None:
    found = json.loads(shown_diff(a_diff(an_impact(), orders={"prod": (BAD,)}), "json", PLAIN))
    jsonschema.validate(found, schema("diff"))
    assert found["orders"] == [
        {
            "cluster": "prod",
            "hazard": "no-partition-label",
            "nodes": {"count": 1, "names": ["b"], "pattern": None},
            "synced": ["partitions/x"],
            "waiting": ["partitions/mixed"],
            "text": BAD.text,
            "unasked": True,
            "safe": ["partitions/mixed", "partitions/x"],
        }
    ]


def test_nothing_is_said_in_two_lines() -> None:
    assert page(a_diff()) == ("none: nothing that is applied differs\nfrom `HEAD` (0123456789ab) to the working tree\n")


def test_what_was_said_of_a_pool_is_not_said_again() -> None:
    other = CHANGE._replace(change_class=ChangeClass.ADMISSION, what="the pool hands out other units", effect="so")

    text = page(a_diff(an_impact(), an_impact(other)))

    told = (
        "  admission  Pool `mixed`: the pool hands out other units  policies/pools.yaml:3\n      effect  so\n  in time"
    )
    assert told in text


def test_pods_that_are_known_are_named() -> None:
    holders = tuple(Holder("lab", f"run-{index}", "mixed-1", "lab", {"1g.10gb": 1}) for index in range(12))

    text = page(a_diff(an_impact(holders=holders)))

    assert text.startswith("repartition: 1 change in 1 cluster, 2 nodes to drain, 12 pods disturbed\n")
    assert "      pods    12\n              `lab/run-0` of tenant `lab` on `mixed-1` holds 1 `1g.10gb`\n" in text
    assert "              `lab/run-8` of tenant `lab` on `mixed-1` holds 1 `1g.10gb`\n              3 more\n" in text


def test_no_pod_is_an_answer_too() -> None:
    text = page(a_diff(an_impact(holders=())))

    assert "2 nodes to drain, 0 pods disturbed\n" in text
    assert "      pods    none holds what goes\n" in text


@pytest.mark.parametrize(
    ("nodes", "shown"),
    [
        (NodeImpact(3, ("a", "b"), None), "3, among them `a` and `b`"),
        (NodeImpact(2, ("a", "b"), None), "2: `a` and `b`"),
        (NodeImpact(6, tuple("abcdef"), None), "6: `a`, `b`, `c`, `d` and 2 more"),
        (NodeImpact(3, (), None), "3"),
    ],
)
def test_nodes_are_named_where_they_are_known(nodes: NodeImpact, shown: str) -> None:
    assert f"      nodes   {shown}; drain them first; they may reboot\n" in page(
        a_diff(an_impact(CHANGE._replace(nodes=nodes)))
    )


def test_flux_keeps_no_windows() -> None:
    applier = Applier("Kustomization", "gpu-partitions-prod-mixed", "partitions/mixed", Approval.AUTOMATIC, (WINDOW,))
    change = CHANGE._replace(folders=("partitions/mixed",))

    text = page(a_diff(an_impact(change, appliers=(applier,))))

    assert (
        "      applied Kustomization `gpu-partitions-prod-mixed`: by itself;"
        " Flux does not keep the window `0 2 1 7 6` for 4h, UTC\n" in text
    )


def test_what_nothing_syncs_is_said() -> None:
    text = page(a_diff(an_impact(CHANGE._replace(folders=("partitions",)), appliers=())))

    assert "      applied nothing syncs `partitions/`: by hand\n" in text


def test_the_same_nodes_are_counted_once() -> None:
    again = CHANGE._replace(change_class=ChangeClass.ADMISSION, pods=50)

    assert page(a_diff(an_impact(), an_impact(again))).startswith(
        "repartition: 2 changes in 1 cluster, 2 nodes to drain, up to 112 pods disturbed\n"
    )


def test_a_comparison_of_objects_is_called_one() -> None:
    built = Platform(Side(SideKind.OUTPUT, "./out", Path("out")), ("prod",), None)

    text = page(a_diff(objects=(OBJECT,), earlier=built))

    assert "from `./out` to the working tree\ncompared object by object: " in text


def test_findings_about_the_step_come_last() -> None:
    text = page(a_diff(an_impact(), findings=(FIT,)))

    assert "\n\nerror[GPU203]: layout `mixed` does not fit on H100-80GB\n" in text
    assert "GPU203" in markdown(a_diff(an_impact(), findings=(FIT,)))


def test_no_name_steers_the_terminal() -> None:
    hostile = CHANGE._replace(subject=Subject("Pool", "\x1b[31mred\x1b[0m\n"), what="\x07 `\x9b1m`")

    text = page(a_diff(an_impact(hostile, holders=(Holder("\x1b", "\r", "\x00", "\u202e", {"\n": 1}),))))

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)


def test_the_class_is_colored_by_what_it_disturbs() -> None:
    assert [class_style(item) for item in ChangeClass] == [
        Style.HELP,
        *[Style.NOTE] * 2,
        *[Style.WARNING] * 4,
        *[Style.ERROR] * 4,
    ]
    assert page(WHOLE, Theme(color=True)).startswith("\x1b[1;31mrepartition\x1b[0m: 3 changes")


# --- For a pull request ------------------------------------------------------------------------------------------


def test_markdown_has_a_table_and_folds_the_rest() -> None:
    assert (
        markdown(WHOLE).replace(" | 2 | up to 112 | yes | maybe |", "\n| 2 | up to 112 | yes | maybe |")
        == """\
## gpuplan: repartition

3 changes in 2 clusters, 2 nodes to drain, up to 112 pods disturbed

from <code>HEAD</code> (0123456789ab) to the working tree

| | Cluster | Change | Nodes | Pods | Drain | Reboot |
|---|---|---|---|---|---|---|
| **quota** | <code>dev</code> | Tenant <code>lab</code>: is removed |  |  |  |  |
| **repartition** | <code>prod</code> | Pool <code>mixed</code>: layout <code>small</code> becomes <code>large</code>
| 2 | up to 112 | yes | maybe |
| **metadata** | <code>prod</code> | <code>ConfigMap eye/board</code> is changed in <code>monitoring/</code> | | | | |

### When it is applied

- <code>prod</code>: 1. at the merge by itself: \
<code>gpu-namespace-prod-lab</code> and <code>gpu-namespace-prod-shop</code>
- <code>prod</code>: 2. then a person starts it, within <code>0 2 1 7 6</code> for 4h, UTC: \
<code>gpu-partitions-prod-mixed</code> (drain 2 nodes before)

<details><summary>quota: Tenant <code>lab</code> in <code>dev</code></summary>

- <code>HEAD:gpu/policies/pools.yaml:3</code>
- **effect**: new pods wait
- **undo**: it undoes it

</details>

<details><summary>repartition: Pool <code>mixed</code> in <code>prod</code></summary>

- <code>policies/pools.yaml:3</code>
- **effect**: mig-manager sets up the GPUs of 2 nodes at once and drains none: pods that hold them must end first
- **nodes**: 2, matching <code>mixed-&#91;0-9&#93;+</code>; drain them first; they may reboot
- **pods**: up to 112
- **units**:
  - <code>1g.10gb</code> of <code>mixed</code>: 112 to 0
  - <code>3g.40gb</code> of <code>mixed</code>: 0 to 32
- **tenants**: <code>lab</code>, <code>1g.10gb</code> of <code>mixed</code>: guaranteed 40 to 0, limit 60.5 to none
- **applied**:
  - Applications <code>gpu-namespace-prod-lab</code> and <code>gpu-namespace-prod-shop</code>: by themselves
  - Application <code>gpu-partitions-prod-mixed</code>: a person starts it, within <code>0 2 1 7 6</code> for 4h, UTC
  - whatever applies <code>argocd/</code>
- **undo**: reverting partitions the same nodes again, which needs them drained again

</details>
"""
    )


def test_errors_are_in_it() -> None:
    text = markdown(a_diff(later=Platform(FILES, ("prod",), a_report(FIT))))

    assert text.startswith("## gpuplan: none\n\nnothing differs in what has no errors\n")
    assert "\n### 1 error in <code>the working tree</code>\n\n| | Rule | Place | Finding | Clusters |\n" in text


def test_a_comment_has_room_for_it() -> None:
    changes = [CHANGE._replace(cluster=f"c{index}", what="é" * 900) for index in range(300)]
    errors = a_report(*[FIT] * 300)

    text = markdown(a_diff(*map(an_impact, changes), later=Platform(FILES, (), errors), findings=(FIT,) * 300))

    assert len(text.encode()) <= LIMIT < 65_536
    assert re.search(r"\n\d+ of 300 changes are not shown; `gpuplan diff` prints them all\.\n", text)
    assert "of 300 findings are not shown" in text


@given(st.text(max_size=60))
@example("` <img src=x onerror=alert(1)> `")
@example("a\n\n# heading\n| b |")
@example("</details></summary>@team #1 https://example.com")
def test_no_name_becomes_markup(text: str) -> None:
    hostile = Change(
        text, Subject(text, text), at("«a»: 1\n", file=text), ChangeClass.QUOTA, text, text, text, folders=(text,)
    )
    holder = Holder(text, text, text, text, {text: 1})
    item = ObjectChange(text, ChangeClass.QUOTA, text, Identity(text, text, text, text), "changed")

    shown = markdown(a_diff(an_impact(hostile, holders=(holder,)), objects=(item,)))

    rows = [line for line in shown.splitlines() if line.startswith("| **")]
    assert len(rows) == 2
    assert all(row.count("|") == 8 for row in rows)
    assert not any(re.search(r"[<>`\[\]]", OURS.sub("", row)) for row in rows)
    assert shown.count("<details>") == shown.count("</details>") == shown.count("<summary>") == 1
    assert all(re.match(r"[-|<#]|  - |\d+ change|from |$", line) for line in shown.split("\n"))


# --- For programs ------------------------------------------------------------------------------------------------


def test_the_contract_is_what_its_schema_says() -> None:
    jsonschema.Draft7Validator.check_schema(schema("diff"))
    holders = (Holder("lab", "run-0", "mixed-1", "", {"1g.10gb": 1}),)
    diff = a_diff(an_impact(holders=holders), objects=(OBJECT,), findings=(FIT,), skipped=("dev",))

    body = json.loads(shown_diff(diff, "json", PLAIN))

    jsonschema.validate(body, strictly(schema("diff")))
    assert body["summary"] == {"changes": 2, "nodes": 2, "nodes_to_drain": 2, "pods": 1, "pods_are_exact": True}
    assert body["earlier"] == {"kind": "revision", "name": "HEAD", "commit": COMMIT, "errors": [], "output": None}
    [change] = body["clusters"][0]["changes"]
    assert change["pods"] == {
        "at_most": 112,
        "found": [{"namespace": "lab", "name": "run-0", "node": "mixed-1", "tenant": None, "units": {"1g.10gb": 1}}],
    }
    assert change["grants"][0]["limit"] == {"before": 60.5, "after": None}
    assert change["location"] == {"side": "later", "file": "policies/pools.yaml", "line": 3, "path": "spec.layout"}
    [item] = body["clusters"][0]["objects"]
    assert item["location"] == change["location"]


def test_nothing_fits_the_schema_too() -> None:
    body = json.loads(shown_diff(a_diff(), "json", PLAIN))

    jsonschema.validate(body, strictly(schema("diff")))
    assert (body["class"], body["clusters"]) == ("none", [])


def test_every_class_is_explained_as_the_guide_does() -> None:
    guide = (REPOSITORY / "docs/how-to/review-a-change.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"(?m)^\| `([a-z-]+)` \| (.*) \|$", guide))

    assert list(CLASS_MEANINGS) == list(ChangeClass)
    for change_class, meaning in CLASS_MEANINGS.items():
        assert rows[change_class.value].startswith(meaning.partition(";")[0].partition(":")[0].partition(",")[0])
