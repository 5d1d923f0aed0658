"""The types of texts in policies: the form that each must have, and the words for one that has another.

A form is a pattern that Rust's engine knows, without lookaround, so that a text is read in time linear in its length;
the JSON Schema has it too. No message shows a pattern: each stands here with its words.
"""

# No `from __future__ import annotations` here: pydantic would have to compile and evaluate each annotation again.

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.values import Value


def _nothing(_: str) -> str:
    return ""


class Form(Value):
    """The form of a text; ``mend`` returns the text that was most likely meant by a wrong one, or nothing."""

    words: str
    mend: Callable[[str], str] = _nothing


FORMS: Final[dict[str, Form]] = {}
"""Every pattern that a text of the policy language must match, and what it stands for."""

NOT_A_REFERENCE: Final = "not_a_reference"


def form_of(pattern: str) -> Form:
    return FORMS[pattern]


def _matching(pattern: str, words: str, mend: Callable[[str], str] = _nothing) -> Any:  # noqa: ANN401 - pydantic's own
    form = Form(words, mend)
    if FORMS.setdefault(pattern, form) != form:
        raise ValueError(f"two forms have the pattern {pattern}, by which their words are found")
    return Field(pattern=pattern)


def _checked(pattern: str, meant: Callable[[str], str], shown: str = "{}") -> Callable[[str], str]:
    """Return a mend whose text matches a pattern: ``meant`` makes it of a wrong text without space around it."""

    def mend(text: str) -> str:
        candidate = meant(text.strip())
        return shown.format(candidate) if re.fullmatch(pattern, candidate) else ""

    return mend


# --- Texts in general ----------------------------------------------------------------------------------------------

_STEERING: Final = r"\x{7f}-\x{9f}\x{202a}-\x{202e}\x{2066}-\x{2069}"
"""Characters that steer a terminal or change the order of text; a policy may not have them, even escaped."""


def _unicode(pattern: str) -> str:
    """The pattern with the characters themselves: JSON Schema and Rust spell their numbers differently."""
    return re.sub(r"\\x\{([0-9a-f]+)\}", lambda match: chr(int(match[1], 16)), pattern)


_LINE: Final = _unicode(rf"^[^\x{{00}}-\x{{1f}}\x{{2028}}\x{{2029}}{_STEERING}]*$")
_LINES: Final = _unicode(rf"^[^\x{{00}}-\x{{08}}\x{{0b}}\x{{0c}}\x{{0e}}-\x{{1f}}{_STEERING}]*$")
_WORDS: Final = "without control characters and marks that turn the reading direction"

Line = Annotated[str, _matching(_LINE, f"one line of text {_WORDS}")]
Lines = Annotated[str, _matching(_LINES, f"text {_WORDS}")]

GENERAL: Final = frozenset((_LINE, _LINES))
"""Patterns that nearly all texts match: nobody has to be told of them before."""

ClusterRole = Annotated[
    str,
    _matching(r"^[A-Za-z0-9]([A-Za-z0-9:._-]{0,240}[A-Za-z0-9])?$", "the name of a ClusterRole, such as `gpu-user`"),
]

# --- Versions and durations ----------------------------------------------------------------------------------------


_PER_UNIT: Final = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}


def _duration(text: str) -> str:
    """Return the duration that is most likely meant by `2d`, `30 seconds` or `1.5h`, or those that `4` may be."""
    lower = text.strip().lower()
    if clock := _CLOCK.fullmatch(lower):
        return "".join(f"{int(part)}{unit}" for part, unit in zip(clock.groups("0"), "hms", strict=True) if int(part))
    parts = [found[0] for found in _TIME.finditer(lower) if found[2]]
    if len(parts) > 1 and re.sub(r"\s|and", "", lower) == re.sub(r"\s", "", "".join(parts)):
        return "".join(map(_duration, parts))
    found = _TIME.fullmatch(lower)
    if found is None:
        return ""
    number, unit = float(found[1]), found[2][:1]
    if not unit:
        first = "h" if number <= 24 else "m" if number <= 240 else "s"
        likely = [f"`{found[1]}{unit}`" for unit in sorted("hms", key=lambda unit: unit != first)]
        if number > 90 and number.is_integer():
            return likely[0]  # hours would be days
        return f"{likely[0]}, or {likely[1]} or {likely[2]}" if number.is_integer() and number else ""
    seconds = round(number * _PER_UNIT[unit])
    whole = next((unit for unit in "hms" if seconds % _PER_UNIT[unit] == 0), "s")
    return f"{seconds // _PER_UNIT[whole]}{whole}"


_CLOCK: Final = regex(r"([0-9]{1,3}):([0-9]{2})(?::([0-9]{2}))?")
_TIME: Final = regex(r"([0-9]{1,5}(?:\.[0-9]{1,2})?)\s*(|[wdhms]|weeks?|days?|hours?|hrs?|min(?:ute)?s?|sec(?:ond)?s?)")


_MINOR: Final = r"^1\.[0-9]{1,4}$"
KubernetesVersion = Annotated[
    str,
    _matching(
        _MINOR,
        'a Kubernetes minor version in quotes, such as "1.34"',
        _checked(_MINOR, lambda text: re.sub(r"^v?(1\.[0-9]{1,4})([.+-].*)?$", r"\1", text), '"{}"'),
    ),
]


def _release(text: str) -> str:
    """Return the release that is most likely meant by `26.7` and `gpu-operator-v26.7.0-rc.1`."""
    found = re.search(r"([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?", text)
    return f"`v{found[1]}.{found[2]}.{found[3] or 0}`" if found else ""


_RELEASE: Final = "a release of three numbers, such as"
OperatorVersion = Annotated[str, _matching(r"^v?[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}$", f"{_RELEASE} v26.7.0", _release)]
SchedulerVersion = Annotated[str, _matching(r"^v?[0-9]+\.[0-9]+\.[0-9]+$", f"{_RELEASE} v0.19.2", _release)]
DraDriverVersion = Annotated[str, _matching(r"^v?[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}$", f"{_RELEASE} v0.4.1", _release)]
Duration = Annotated[
    str, _matching(r"^([0-9]{1,6}[sm]|[0-9]{1,5}h){1,3}$", "a duration, such as 30s, 10m or 4h", _duration)
]
"""As Go reads them, which overflows after 292 years: a controller that cannot read one object of a kind reads none."""
PositiveDuration = Annotated[
    str,
    _matching(
        r"^([0-9]{1,6}[sm]|[0-9]{1,5}h){0,2}(0{0,5}[1-9][0-9]{0,5}[sm]|0{0,4}[1-9][0-9]{0,4}h)([0-9]{1,6}[sm]|[0-9]{1,5}h){0,2}$",
        "a duration above zero, such as 30s, 10m or 4h",
        _duration,
    ),
]
"""A time in which something can be done."""

# --- Boards --------------------------------------------------------------------------------------------------------


def _pci_id(text: str) -> str:
    """Return the id that is most likely meant by `0x2684`, `2684` and mig-parted's `0x268410DE`."""
    found = re.fullmatch(r"(?:0x|10de:)?([0-9a-f]{4})(?:10de)?", text.strip().lower())
    return f"10de:{found[1]}" if found else ""


ComputeCapability = Annotated[
    str,
    _matching(
        r"^[0-9]{1,2}\.[0-9]$",
        'a compute capability in quotes, such as "8.9"',
        lambda text: re.sub(r"\D*([0-9]{1,2}?)[._]?([0-9])\D*", r'"\1.\2"', text) if re.search("[0-9]", text) else "",
    ),
]
PciId = Annotated[
    str,
    _matching(
        r"^10de:[0-9a-f]{4}(/[0-9a-f]{4}:[0-9a-f]{4})?$",
        "NVIDIA's vendor id and the device's, as `lspci -nn` prints them: 10de:2684",
        _pci_id,
    ),
]
ProductLabel = Annotated[
    str,
    _matching(
        r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
        "a value of the node label nvidia.com/gpu.product, such as NVIDIA-GeForce-RTX-4090",
        lambda text: "-".join(re.sub(r"[^A-Za-z0-9._ -]", "", text).split()) or "",
    ),
]

# --- Amounts -------------------------------------------------------------------------------------------------------


def quantity_meant(text: str) -> str:
    """Return the quantity that is most likely meant by `64 cores`, `32GB` and `32 gi`: a number and a suffix."""
    found = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{0,9})?)\s*([a-zA-Z]*)\s*", text)
    if found is None:
        return ""
    number, word = found[1], found[2].lower()
    if word in ("c", "core", "cores", "cpu", "cpus", "vcpu", "vcpus", "b", "byte", "bytes", "pod", "pods"):
        return f"`{number}`"
    short = re.fullmatch(r"([kmgtpe])(i?)b?", word)
    if short is None:
        return ""
    letter = "k" if short[1] == "k" and not short[2] else short[1].upper()
    decimal, binary = f"`{number}{letter}`", f"`{number}{short[1].upper()}i`"
    return binary if short[2] else f"{binary}, or {decimal} for powers of 1000"


_QUANTITY: Final = r"^([0-9]{1,18}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$"


def is_quantity(text: str) -> bool:
    """Whether a text is a quantity as Kubernetes writes it."""
    return regex(_QUANTITY).match(text) is not None


_A_QUANTITY: Final = "a quantity as Kubernetes writes it: `64` or `1500m` CPUs, `512Gi` of memory"


def _quantity_from_number(value: object) -> object:
    """A whole number may go without quotes. YAML has read any other one as the nearest fraction of two already."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        raise PydanticCustomError(NOT_A_QUANTITY, "a quantity", {"words": _A_QUANTITY, "meant": _in_thousandths(value)})
    return value


def _in_thousandths(value: float) -> str:
    """``1500m`` for ``1.5``; empty where that is no whole number of thousandths."""
    thousandths = Decimal(str(value)) * 1000
    is_whole = value > 0 and thousandths == thousandths.to_integral_value()
    return f"`{thousandths.to_integral_value():f}m`" if is_whole else ""


NOT_A_QUANTITY: Final = "not_a_quantity"

QuantityText = Annotated[str, _matching(_QUANTITY, _A_QUANTITY, quantity_meant)]
Quantity = Annotated[
    QuantityText,
    BeforeValidator(_quantity_from_number, json_schema_input_type=QuantityText | Annotated[int, Field(ge=0)]),
]
"""As the API server reads them (`ParseQuantity` in `pkg/api/resource/quantity.go` of kubernetes/apimachinery), but
without a sign: what is granted is never less than nothing.
"""

# --- Money ---------------------------------------------------------------------------------------------------------

_SIGNS: Final = {"€": "EUR", "EURO": "EUR", "$": "USD", "£": "GBP", "₹": "INR"}


def _currency(text: str) -> str:
    """Return the currency that is most likely meant by `eur` and by a sign."""
    found = text.strip().upper()
    return _SIGNS.get(found) or (found if regex(r"[A-Z]{3}").fullmatch(found) else "")


Currency = Annotated[
    str, _matching(r"^[A-Z]{3}$", "a currency by the three letters of ISO 4217, such as EUR or USD", _currency)
]


def _price(text: str) -> str:
    """Return the price that is most likely meant by `2,50 EUR` and `$2.50`."""
    found = regex(r"\D*([0-9]{1,7})(?:[.,]([0-9]{1,6}))?\D*").fullmatch(text)
    if found is None or "-" in text:
        return ""
    return f"{found[1]}.{found[2]}" if found[2] else found[1]


_PRICE: Final = r"^[0-9]{1,7}(\.[0-9]{1,6})?$"


def _price_from_number(value: object) -> object:
    """A price has at most 13 digits, and a float keeps 15: its text is what was written."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{Decimal(str(value)):f}"
    return value


PriceText = Annotated[
    str,
    _matching(
        _PRICE, "a price such as 2.50: at least 0, at most seven digits before the point and six behind it", _price
    ),
]
Price = Annotated[
    PriceText, BeforeValidator(_price_from_number, json_schema_input_type=PriceText | Annotated[float, Field(ge=0)])
]
"""An amount of money as it is written: it is counted with as a decimal number, never as a float."""

# --- Demand --------------------------------------------------------------------------------------------------------


def _percent_from_number(text: str) -> str:
    """Return the part that is most likely meant by `20 %`, `20 percent` and `0,2`."""
    found = re.fullmatch(r"\s*([0-9]{1,4})(?:[.,]([0-9]{1,2}))?\s*(?:%|percent|pct)?\s*", text)
    if found is None:
        return ""
    number = f"{found[1]}.{found[2]}" if found[2] else found[1]
    is_part = not re.search(r"[^0-9.,\s]", text) and float(number) <= 1
    return f"`{number}`" if is_part else f"`{number}%`"


Percent = Annotated[
    str, _matching(r"^(100(\.0{1,2})?|[0-9]{1,2}(\.[0-9]{1,2})?)%$", "a percentage such as `25%`", _percent_from_number)
]
"""A part of a whole."""
PercentMore = Annotated[
    str, _matching(r"^[0-9]{1,4}(\.[0-9]{1,2})?%$", "an addition in per cent, such as `20%`", _percent_from_number)
]
"""An amount that is added to a whole, and that may be larger than it."""


def _with_unit(text: str) -> str:
    found = re.fullmatch(r"\s*([0-9]{1,7}(?:\.[0-9]{1,3})?)\s*(ms|msec|millis|s|sec)?\s*", text.lower())
    return f"`{found[1]}{'s' if (found[2] or 'ms')[0] == 's' else 'ms'}`" if found else ""


Latency = Annotated[
    str, _matching(r"^[0-9]{1,7}(\.[0-9]{1,3})?(ms|s)$", "a time in ms or s, such as `200ms` or `1.5s`", _with_unit)
]
"""The time that an answer takes."""

TableBeside = Annotated[
    str,
    _matching(
        r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}){0,7}$",
        "a file beside this one or below it, such as `profiles/bert.csv`",
    ),
]
"""A path that leads nowhere else."""

# --- Addresses -----------------------------------------------------------------------------------------------------


_PAGE: Final = r"^https://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[A-Za-z0-9._~!$&()*+,;=:@%/?-]{0,1732})?$"
"""At most 2,000 characters, as many as every browser takes."""
PageUrl = Annotated[
    str,
    _matching(
        _PAGE,
        "an https address of at most 2,000 characters, without `#` or quotes, such as https://docs.example.com/monitor-pools/",
        _checked(_PAGE, lambda text: re.sub(r"^(http://)?(?!https://)", "https://", text.partition("#")[0])),
    ),
]

_SERVER: Final = r"^https?://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[A-Za-z0-9._~%/-]{0,200})?$"

ServerUrl = Annotated[
    str, _matching(_SERVER, "an address without credentials, such as `http://prometheus-operated.monitoring:9090`")
]
"""Where a program of the cluster answers. Everybody reads it in Git."""

# --- Names of things elsewhere -------------------------------------------------------------------------------------


_REGISTRY: Final = r"([a-zA-Z0-9][-.a-zA-Z0-9]*|\[[0-9a-fA-F:]+\])(:[0-9]+)?/"
_PART: Final = r"[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*"
_TAG: Final = r":[a-zA-Z0-9_][-._a-zA-Z0-9]{0,127}"
_DIGEST: Final = r"@[a-z0-9]+([-_+.][a-z0-9]+)*:[0-9a-f]{32,}"

DriverVersion = Annotated[
    str,
    _matching(
        r"^(sha256:[0-9a-f]{64}|[a-zA-Z0-9_][-._a-zA-Z0-9]{0,127})$",
        "a driver version, such as 580.95.05, or another tag or `sha256` digest of the driver's image",
        _checked(r"[a-zA-Z0-9_][-._a-zA-Z0-9]{0,127}", str),
    ),
]
"""The operator makes an image's tag of it, or the digest (`GetImagePath` in `api/nvidia/v1alpha1/nvidiadriver_types.go`
of NVIDIA/gpu-operator); the forms are those of `regexp.go` in https://github.com/distribution/reference.
"""

Image = Annotated[
    str,
    _matching(
        rf"^({_REGISTRY})?{_PART}(/{_PART})*({_TAG})?({_DIGEST})?$",
        "an image, such as `registry.example.com/team/app:1.0`",
    ),
]
"""As container runtimes read it (`regexp.go` in https://github.com/distribution/reference)."""


_LABEL: Final = r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
_PORT: Final = r":(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})"
_IP: Final = r"\[[0-9a-fA-F:]{2,39}\]"
_MIRROR: Final = rf"^({_LABEL}(\.{_LABEL})+({_PORT})?|{_LABEL}{_PORT}|localhost|{_IP}({_PORT})?)(/{_PART})*$"
_SEGMENT: Final = r"/\.{0,2}[A-Za-z0-9_~%+=,:-][A-Za-z0-9._~%+=,:-]*"
_CHARTS: Final = (
    rf"^((https?|oci)://({_LABEL}(\.{_LABEL})*|{_IP})({_PORT})?|{_LABEL}(\.{_LABEL})+({_PORT})?|({_LABEL}|{_IP}){_PORT})"
    rf"({_SEGMENT})*/?$"
)

RegistryMirror = Annotated[
    str,
    _matching(
        _MIRROR,
        "a registry and a path in it, without scheme and tag, such as `registry.example.com:5000/nvcr`",
        _checked(_MIRROR, lambda text: re.sub(r"^[a-z]+://", "", text).rstrip("/"), "`{}`"),
    ),
]
"""The part before an image's path. A first part without a dot or a port is no host: container runtimes look for it in
Docker Hub (`splitDockerDomain` in `normalize.go` of https://github.com/distribution/reference).
"""

ChartRepository = Annotated[
    str,
    _matching(
        _CHARTS,
        "where charts are, without credentials, such as `https://charts.example.com/nvidia` or "
        "`oci://registry.example.com/charts`",
        _checked(_CHARTS, lambda text: re.sub(r"(?<=//)[^/]*@", "", text).split("?")[0].split("#")[0], "`{}`"),
    ),
]
"""A Helm repository, or a registry, which may be named without its scheme as Argo CD does. People hand it to Helm in a
shell, and everybody reads it in Git.
"""

NetworkResource = Annotated[
    str,
    _matching(
        r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
        "a resource of a device plugin, such as `rdma/hca_shared_devices_a`",
    ),
]
"""An extended resource (`IsExtendedResourceName` in `pkg/apis/core/v1/helper` of kubernetes/kubernetes)."""

KeyOfData = Annotated[
    str,
    _matching(
        r"^([-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}|\.[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,251})$",
        "a key of a Secret or a ConfigMap: letters, digits, `-`, `_` and `.`, no folders",
    ),
]
"""The form that the API server takes (`IsConfigMapKey` in `pkg/util/validation` of kubernetes/apimachinery)."""

HttpPath = Annotated[str, _matching(r"^/[!-~]{0,1000}$", "a path of an HTTP server, such as `/health`")]
GrpcService = Annotated[
    str,
    _matching(
        r"^[A-Za-z_][A-Za-z0-9_.-]{0,252}$", "the name that a gRPC server gives to its health, such as `model.Chat`"
    ),
]

_HOST: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"


_HOST_NAME: Final = rf"^(\*\.)?({_HOST}\.){{0,4}}[a-z]([-a-z0-9]{{0,61}}[a-z0-9])?$"

HostName = Annotated[
    str,
    _matching(
        _HOST_NAME,
        "a host without a scheme and a port, such as `chat.example.com` or `*.example.com`",
        _checked(_HOST_NAME, lambda text: re.sub(r"^[a-z]+://", "", text.lower()).split("/")[0].split(":")[0]),
    ),
]
"""The hosts that a route may have (`Hostname` in `apis/v1/shared_types.go` of kubernetes-sigs/gateway-api, and
`ValidateIngressSpec` in `pkg/apis/networking/validation/validation.go` of kubernetes/kubernetes). Neither takes an
address of numbers.
"""

_ROUTED: Final = r"[A-Za-z0-9_~-][-._~A-Za-z0-9]{0,99}"


_ROUTE_PATH: Final = rf"^/$|^(/{_ROUTED}){{1,9}}$"

RoutePath = Annotated[
    str,
    _matching(
        _ROUTE_PATH,
        "the beginning of a path, such as `/v1`",
        _checked(_ROUTE_PATH, lambda text: "/" + text.strip("/").removesuffix("/*")),
    ),
]
"""Whole parts of a path, as both kinds of routes compare them."""

Metric = Annotated[str, _matching(r"^[^/%\s.][^/%\s]*$", "a name without spaces, `/` and `%`")]
"""The form of a part of a path (`ValidateMetricIdentifier` in `pkg/apis/autoscaling/validation` of Kubernetes)."""

_NO_REFERENCE: Final = regex(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|(?:^|/)\.|\.lock(?:/|$)|^/|/$|\.$|^@$|^-|^$", re.ASCII
)
"""Parts that no name of a branch or tag has (https://git-scm.com/docs/git-check-ref-format)."""

_CONSTRAINT: Final = regex(r"(?=.*[*<>=!~^|, ])[0-9A-Za-z.+*<>=!~^|, -]+")
"""The form of ranges of versions, such as `>=1.2.0 <2` and `v1.*`: Argo CD takes the newest tag in the range."""


def _check_reference(text: str) -> str:
    if _NO_REFERENCE.search(text) and not (text.strip() == text and _CONSTRAINT.fullmatch(text) and ".." not in text):
        raise PydanticCustomError(NOT_A_REFERENCE, "a Git reference", {"words": _REFERENCE})
    return text


_REFERENCE: Final = "a branch or tag as Git names them, such as `main` or `v1.2.3`"

GitReference = Annotated[Line, AfterValidator(_check_reference), Form(_REFERENCE)]
