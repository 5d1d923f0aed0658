"""Find what work in a namespace asks for, so that nobody loses what no quota capped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpuplan.compiler.base.diagnostics import Finding, Origin
from gpuplan.compiler.base.plain import inside, mapping, parts_with, sequence, text
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.planning.hand_files import is_zero
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.rules import TEAM_SAID_IN_PART
from gpuplan.features.live.teams.caps import Offers
from gpuplan.features.live.teams.model import Team, Told, told

Place = tuple[Origin, Item]
"""Where something is asked for, and by what."""
Asked = Mapping[str, Mapping[str, Place]]
"""By team, what a ResourceQuota counts it by, with the first place that asks for it."""


def asked_by(dump: Dump, teams: Iterable[Team], offers: Offers) -> Asked:
    """What is not a tenant's yet asks for, of what pools hand out."""
    owners = {space.name: team.name for team in teams if not team.is_own for space in team.spaces}
    found: dict[str, dict[str, Place]] = {}
    for item in dump.objects if owners else ():
        team = owners.get(item.namespace)
        if team and text(inside(item.body, "status").get("phase")) not in ("Succeeded", "Failed"):
            for at, resource in _resources(item):
                if (key := f"requests.{resource}") in offers:
                    found.setdefault(team, {}).setdefault(key, (at, item))
    return found


def _resources(item: Item) -> Iterator[tuple[Origin, str]]:
    for route, part in parts_with(item.body, "containers", "initContainers"):
        for field in ("containers", "initContainers"):
            for index, container in enumerate(map(mapping, sequence(part.get(field)))):
                for kind in ("limits", "requests"):
                    for resource, amount in inside(container, "resources", kind).items():
                        if not is_zero(amount):
                            yield item.at / route / field / index / "resources" / kind / resource, resource


def uncapped(team: Team, key: str, place: Place, offers: Offers) -> Told:
    at, item = place
    finding = Finding(
        at.key,
        f"{item.title} asks for `{key.removeprefix('requests.')}`, which no quota of its namespace caps",
        label="may be used without a bound",
        notes=(
            f"tenant `{team.name}` may use {joined([offer.title for offer in offers[key]])} as today: `limit: none`",
        ),
        help="set `limit` in the Tenant to what the team is meant to use",
    )
    return told(team.name, TEAM_SAID_IN_PART, finding)
