"""Checks on hand-written claims of devices of NVIDIA's driver for Dynamic Resource Allocation (GPU894)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Path, Severity
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, parts_with, sequence, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import joined, listing, misspelling
from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.dra import DRIVER, DRIVER_CLASSES
from gpuplan.compiler.planning.hand_files import HandFiles
from gpuplan.compiler.planning.placement.placing import fits
from gpuplan.features.components.checks.asking import PLACEHOLDER, Spec, judged

_MIG_CLASS: Final = "mig.nvidia.com"


@check("GPU894", "claim-of-no-device", Severity.WARNING)
def claim_of_no_device(files: HandFiles) -> Iterator[Finding]:
    """A hand-written claim asks for devices that no GPU has, or asks in a way that cannot be read.

    ## Why
    A pod with such a claim waits for ever. NVIDIA's driver publishes MIG devices with the attribute `profile`
    (`CommonAttributesMig` in `cmd/gpu-kubelet-plugin/mig.go` of kubernetes-sigs/dra-driver-nvidia-gpu v0.4.0), and a
    selector that reads an attribute which a device does not have fails. Devices with one `parentUUID` are on one GPU,
    and have to fit there together. It is an error where the API server refuses the claim: a count below 1, a count
    beside `allocationMode: All`, a constraint on a request that is not there, and an expression that is no CEL
    (`pkg/apis/resource/validation` of kubernetes/kubernetes v1.34).

    ## Instead
    Claim profiles of one board: `gpuplan catalog` with a model's name lists them.
    """
    own = tuple(found.name for found in files.of_kind("DeviceClass"))
    gpus = tuple(gpu for gpu in files.gpus or load().all() if gpu.profiles)
    kinds = ("ResourceClaim", "ResourceClaimTemplate")
    written = (found for found in judged(files) if found.group == "resource.k8s.io" and found.kind in kinds)
    parts = ((found, route, part) for found in written for route, part in parts_with(found.body, "devices"))
    for holder, above, part in parts:
        claim = Spec(holder, (*above, "devices"), inside(part, "devices"))
        requests = [*_requests(claim)]
        for fault in (
            *(fault for request in requests for fault in _request_faults(request, own, gpus)),
            *_constraint_faults(claim, requests, gpus),
        ):
            yield Finding(
                claim.of.place(*claim.route, *fault.route),
                f"{claim.of.title} {fault.message}",
                label="refused by the API server" if fault.is_refused else "no device is ever found",
                help=fault.help,
                severity=Severity.ERROR if fault.is_refused or (files.gpus and not own) else None,
            )


class _Fault(NamedTuple):
    """A part of a claim that nothing satisfies, or that ``is_refused``."""

    route: Path
    message: str
    help: str
    is_refused: bool = False


class _Request(NamedTuple):
    """A request for devices, or one of several of which one will do. Its ``name`` is that of the whole request."""

    name: str
    route: Path
    body: Mapping[str, object]
    is_alternative: bool

    @property
    def expressions(self) -> Iterator[tuple[Path, str]]:
        for index, selector in enumerate(sequence(self.body.get("selectors"))):
            written = text(inside(mapping(selector), "cel").get("expression"))
            yield (*self.route, "selectors", index, "cel", "expression"), written

    @property
    def profiles(self) -> frozenset[str]:
        """The profiles of which one is asked for, or none where any will do."""
        found = (_profiles(written) for _, written in self.expressions)
        return next(filter(None, found), frozenset())

    @property
    def number(self) -> int:
        number = self.body.get("count", 1)
        return number if isinstance(number, int) else 1


def _requests(claim: Spec) -> Iterator[_Request]:
    for index, request in enumerate(map(mapping, sequence(claim.body.get("requests")))):
        name, route = text(request.get("name")), ("requests", index)
        alternatives = sequence(request.get("firstAvailable"))
        for number, one in enumerate(alternatives):
            yield _Request(name, (*route, "firstAvailable", number), mapping(one), is_alternative=True)
        if not alternatives:
            is_plain = "exactly" not in request  # as up to resource.k8s.io/v1beta1
            place, body = (route, request) if is_plain else ((*route, "exactly"), inside(request, "exactly"))
            yield _Request(name, place, body, is_alternative=False)


def _request_faults(request: _Request, classes: tuple[str, ...], gpus: tuple[Gpu, ...]) -> Iterator[_Fault]:
    class_, count = text(request.body.get("deviceClassName")), request.body.get("count")
    meant = misspelling(class_, DRIVER_CLASSES)
    if class_ not in (*classes, *DRIVER_CLASSES) and meant:
        message = f"asks for devices of the class `{class_}`, which the driver does not bring"
        yield _Fault((*request.route, "deviceClassName"), message, f"write `{meant}`")
    if isinstance(count, int) and count < 1:
        yield _Fault((*request.route, "count"), f"asks for {count} devices", "write 1 or more", is_refused=True)
    if count is not None and request.body.get("allocationMode") == "All":
        message, help_ = "says `count` beside `allocationMode: All`", "remove one of the two"
        yield _Fault((*request.route, "count"), message, help_, is_refused=True)
    for route, written in request.expressions:
        yield from (fault._replace(route=route) for fault in _expression_faults(written, class_, gpus))


# --- Expressions -------------------------------------------------------------------------------------------------

_TEXT: Final = regex(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_NO_CEL: Final = regex(r"(?<![=!<>])=(?!=)|(?<!&)&(?!&)|(?<!\|)\|(?!\|)|\b(?:and|or|not|AND|OR|NOT)\b")
_CLOSING: Final = {")": "(", "]": "[", "}": "{"}
_ATTRIBUTE: Final = regex(rf"attributes\[[\"']{re.escape(DRIVER)}[\"']\]\.(?P<name>\w+)")
_EQUAL: Final = regex(r"\.profile\s*(?:==\s*(?P<one>[\"'][^\"']*[\"'])|in\s*\[(?P<some>[^\]]*)\])")
_ATTRIBUTES: Final = (
    *("addressingMode", "architecture", "brand", "cudaComputeCapability", "cudaDriverVersion", "driverVersion"),
    *("deviceID", "iommuFDEnabled", "index", "minor", "numa", "parentIndex", "parentMinor", "parentUUID", "pcieBusID"),
    *("productName", "profile", "type", "uuid", "vendorID"),
)
"""Those of releases up to v0.5 (`cmd/gpu-kubelet-plugin/deviceinfo.go` and `mig.go`)."""


def _expression_faults(written: str, class_: str, gpus: tuple[Gpu, ...]) -> Iterator[_Fault]:
    if PLACEHOLDER.search(written.replace("{", "").replace("}", "")):
        return
    if fault := _not_cel(written):
        yield _Fault((), f"selects by what is no CEL: {fault}", "correct the expression", is_refused=True)
        return
    for found in _ATTRIBUTE.finditer(written):
        meant = misspelling(found["name"], _ATTRIBUTES)
        if found["name"] not in _ATTRIBUTES and meant:
            yield _Fault((), f"selects by `{found['name']}`, which no device of {DRIVER} has", f"write `{meant}`")
    profiles = _profiles(written)
    if profiles and class_ == "gpu.nvidia.com" and "type" not in written:
        yield _Fault((), f"asks `{class_}` for a MIG profile, which whole GPUs do not have", f"write `{_MIG_CLASS}`")
    elif profiles and not any(_has(gpu, name) for gpu in gpus for name in profiles):
        slices = f"{min(profiles).partition('g.')[0]}g."
        near = dict.fromkeys(item.name for gpu in gpus for item in gpu.profiles if item.name.startswith(slices))
        asked = joined([f"`{name}`" for name in sorted(profiles)], "or")
        help_ = f"write {listing([*near], 4, 'or')}" if near else "`gpuplan catalog` with a model's name lists profiles"
        yield _Fault((), f"asks for a MIG device {asked}, which no GPU of the catalog has", help_)


def _not_cel(written: str) -> str:
    """Return what makes a text no expression of CEL, of what people write by mistake."""
    bare, opened = _TEXT.sub("''", written), list[str]()
    for sign in bare:
        if sign in "([{":
            opened.append(sign)
        elif sign in _CLOSING and (not opened or opened.pop() != _CLOSING[sign]):
            return f"`{sign}` closes nothing"
    if opened:
        return f"`{opened[-1]}` is not closed"
    if not bare.strip():
        return "it is empty"
    wrong = _NO_CEL.search(bare)
    return f"`{wrong[0]}` is no operator" if wrong else ""


@lru_cache(maxsize=256)
def _profiles(written: str) -> frozenset[str]:
    """Return the profiles of which an expression takes one, or none where others may do."""
    if "||" in _TEXT.sub("", written) or "!(" in written:
        return frozenset()
    for found in _EQUAL.finditer(written):
        return frozenset(name[0][1:-1] for name in _TEXT.finditer(found["one"] or found["some"]))
    return frozenset()


def _has(gpu: Gpu, name: str) -> bool:
    return gpu.find_profile(gpu.current_name(name)) is not None


# --- Constraints -------------------------------------------------------------------------------------------------


def _constraint_faults(claim: Spec, requests: list[_Request], gpus: tuple[Gpu, ...]) -> Iterator[_Fault]:
    names = {request.name for request in requests}
    for index, constraint in enumerate(map(mapping, sequence(claim.body.get("constraints")))):
        of = [text(name) for name in sequence(constraint.get("requests"))]
        for number, name in enumerate(of):
            if name.partition("/")[0] not in names:
                route = ("constraints", index, "requests", number)
                help_ = f"write {listing(sorted(names), 3, 'or')}"
                yield _Fault(route, f"constrains a request `{name}`, which is not there", help_, is_refused=True)
        together = [request for request in requests if not of or request.name in of]
        attribute = text(constraint.get("matchAttribute"))
        if attribute != f"{DRIVER}/parentUUID" or any(item.is_alternative for item in together):
            continue
        wanted: Counter[str] = Counter()
        for request in together:
            if len(request.profiles) == 1:
                wanted.update(dict.fromkeys(request.profiles, request.number))
        able = [gpu for gpu in gpus if all(_has(gpu, name) for name in wanted)]
        if able and not any(fits(gpu, {gpu.current_name(name): wanted[name] for name in wanted}) for gpu in able):
            asked = joined([f"{number}x `{name}`" for name, number in sorted(wanted.items())])
            message = f"asks one GPU for {asked}, which none has room for"
            yield _Fault(
                ("constraints", index, "matchAttribute"), message, "ask for fewer, or leave the constraint out"
            )
