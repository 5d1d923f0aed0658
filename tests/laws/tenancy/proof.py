"""The table of what was tried on an API server and what came of it, a page for each platform."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.laws.tenancy.requests import Case

FOLDER: Final = Path(__file__).parents[3] / "docs" / "proof"

_TITLES: Final = {
    "kubernetes": "plain Kubernetes",
    "kueue": "Kueue",
    "kai": "KAI-Scheduler",
    "runai": "Run:ai",
    "claims": "plain Kubernetes where GPUs are claimed",
    "rdma": "plain Kubernetes where a tenant may use RDMA",
}
_OPENING: Final = """\
# What tenants tried with {title}

`make proof` sends each of these requests to an API server of Kubernetes 1.34 with all of `out/` applied, and writes the
page. Beside each is who refused it, or what came of it. [What tenants cannot
do](../explanation/what-tenants-cannot-do.md) says what follows.

The scheduler of Kubernetes and its controllers run. Kueue, KAI-Scheduler and Run:ai do not, so that what their webhooks
add is in the requests. `tests/cluster/test_reclaim_kueue.py` and `test_reclaim_kai.py` play attacks on the first two.
"""

Seen = Mapping[str, str]
"""What came of each row."""


def path(platform: str) -> Path:
    return FOLDER / f"tenants-{platform}.md"


def page(platform: str, escapes: Seen, legitimate: Seen, holes: Seen) -> str:
    """The holes are rules that were taken out, each with an escape that then got through, or why none did."""
    return (
        "\n".join(
            (
                _OPENING.format(title=_TITLES[platform]),
                "## Escapes\n",
                *_table("request", "what came of it", escapes),
                "## What must work\n",
                *_table("request", "what came of it", legitimate),
                "## Without a rule\n",
                "Each rule is taken out of its policy, and an escape that it alone refuses is tried again.\n",
                *_table("rule", "what gets through", holes),
            )
        ).rstrip()
        + "\n"
    )


def _table(what: str, becomes: str, rows: Seen) -> Iterator[str]:
    yield f"| {what} | {becomes} |"
    yield "|---|---|"
    yield from (f"| {name} | {seen} |" for name, seen in rows.items())
    yield ""


_RECLAIM: Final = """\
# Whether a guarantee is given back with {title}

`make proof` plays each of these attacks on the real controllers of {title} {release}, beside an API server of
Kubernetes 1.34 with all of `out/` applied, fake nodes, and pods that ignore that they must end. A pool has eight GPUs.
Alice is guaranteed six of them; mallory, who has the role `edit` in a namespace of his own, borrows all that she leaves
idle and does what the attack says. Then she asks for her six. Beside each attack is how many of them she runs in the
end.
"""


def reclaim_path(scheduler: str) -> Path:
    return FOLDER / f"reclaim-{scheduler}.md"


def reclaim_page(scheduler: str, release: str, seen: Seen) -> str:
    """The first column is what is tried."""
    opening = _RECLAIM.format(title=_TITLES[scheduler], release=release)
    return "\n".join((opening, *_table("attack", "what came of it", seen))).rstrip() + "\n"


def rows(text: str) -> list[str]:
    """The first column of the tables of a page."""
    found = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")]
    return [name for name in found if name not in ("attack", "request", "rule")]


def names(cases: Iterable[Case], platform: str) -> list[str]:
    return [case.name for case in cases if case.platform == platform]
