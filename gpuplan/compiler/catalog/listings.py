"""Reads the MIG profiles of a board from what `nvidia-smi mig -lgip` and `-lgipp` print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog.models import Placement, Profile
from gpuplan.compiler.catalog.names import parse_profile

_T = TypeVar("_T")

SOURCE: Final = "board"
"""The key of the only source of what is read here."""

_NUMBER: Final = "([0-9]{1,9})"
_PROFILE: Final = regex(
    rf"\|\s*{_NUMBER}\s+MIG (\S+)\s+{_NUMBER}\s+[0-9]+/{_NUMBER}\s+([0-9]{{1,9}}(?:\.[0-9]*)?)\s+\S+\s+"
    rf"{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s*\|"
)
"""GPU, name, id, instances, memory in GiB, whether instances reach each other, SM, DEC and ENC."""
_ENGINES: Final = regex(rf"\|\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s*\|")
"""The line below: CE, JPEG and OFA."""
_STARTS: Final = "((?:[0-9]{1,9}(?:[, ]+[0-9]{1,9})*)?)"
_PLACEMENTS: Final = regex(
    rf"GPU\s+{_NUMBER}\s+Profile ID\s+{_NUMBER}\s+Placements?\s*:\s*\{{[, ]*{_STARTS}[, ]*\}}:{_NUMBER}"
)


class Listing(Value):
    """The profiles, small ones first; ``faults`` say what of the two outputs cannot be, and then there are none."""

    profiles: tuple[Profile, ...]
    faults: tuple[str, ...] = ()


class _Row(NamedTuple):
    """A profile of `-lgip`."""

    name: str
    instances: int
    memory_gib: float
    sm: int
    dec: int
    enc: int
    ce: int | None = None
    jpeg: int | None = None
    ofa: int | None = None


def read_listing(lgip: str, lgipp: str) -> Listing:
    """Both outputs, which may be of several boards that are alike."""
    rows, placements = _alike(_rows(lgip), "-lgip"), _alike(_starts(lgipp), "-lgipp")
    if isinstance(rows, str) or isinstance(placements, str):
        return Listing((), tuple(found for found in (rows, placements) if isinstance(found, str)))
    faults = tuple(_unpaired(rows, placements))
    faults += tuple(
        f"`{row.name}` is no MIG profile's name" for row in rows.values() if parse_profile(row.name) is None
    )
    if faults:
        return Listing((), faults)
    found = [_profile(row, *placements[number]) for number, row in rows.items()]
    return Listing(tuple(sorted(found, key=_size)))


def _size(profile: Profile) -> tuple[object, ...]:
    return profile.compute_slices, profile.memory_slices, not profile.is_plain, profile.name


def _rows(lgip: str) -> Iterator[tuple[int, int, _Row]]:
    """Each profile, by GPU and id."""
    last: tuple[int, int, _Row] | None = None
    for line in lgip.splitlines():
        if found := _PROFILE.search(line):
            if last is not None:
                yield last
            gpu, name, number, instances, memory, sm, dec, enc = found.groups()
            last = int(gpu), int(number), _Row(name, int(instances), float(memory), int(sm), int(dec), int(enc))
        elif last is not None and (found := _ENGINES.search(line)):
            ce, jpeg, ofa = map(int, found.groups())
            yield (*last[:2], last[2]._replace(ce=ce, jpeg=jpeg, ofa=ofa))
            last = None
    if last is not None:
        yield last


def _starts(lgipp: str) -> Iterator[tuple[int, int, tuple[tuple[int, ...], int]]]:
    """Where instances of each profile may start and how many memory slices they take, by GPU and id."""
    for gpu, number, starts, size in _PLACEMENTS.findall(lgipp):
        found = sorted({int(start) for start in starts.replace(",", " ").split()})
        yield int(gpu), int(number), (tuple(found), int(size))


def _alike(found: Iterable[tuple[int, int, _T]], option: str) -> dict[int, _T] | str:
    """Return the listing by id if it is the same for all boards, else a fault."""
    boards: dict[int, dict[int, _T]] = {}
    for gpu, number, what in found:
        boards.setdefault(gpu, {})[number] = what
    if not boards:
        return f"nothing in it is as `nvidia-smi mig {option}` prints it"
    first, *others = boards
    different = [gpu for gpu in others if boards[gpu] != boards[first]]
    if different:
        one = f"`nvidia-smi mig {option} -i {first}` prints one"
        return f"GPU {different[0]} is listed otherwise than GPU {first}: {one}"
    return boards[first]


def _unpaired(rows: Mapping[int, _Row], placements: Mapping[int, tuple[tuple[int, ...], int]]) -> Iterator[str]:
    if unplaced := [f"{row.name} ({number})" for number, row in rows.items() if number not in placements]:
        yield f"`-lgipp` says nothing of {joined(unplaced)}"
    if unnamed := [str(number) for number in placements if number not in rows]:
        yield f"`-lgip` has no profile with the id {joined(unnamed)}"


def _profile(row: _Row, starts: tuple[int, ...], size: int) -> Profile:
    parsed = parse_profile(row.name)
    assert parsed is not None, row.name  # noqa: S101 - what has no such name is a fault
    return Profile(
        name=row.name,
        compute_slices=parsed.compute_slices,
        memory_slices=size,
        max_instances=row.instances,
        placements=tuple(Placement(start, size) for start in starts),
        sources=(SOURCE,),
        memory_gib=row.memory_gib,
        sm=row.sm,
        ce=row.ce,
        dec=row.dec,
        enc=row.enc,
        jpeg=row.jpeg,
        ofa=row.ofa,
    )
