"""Facts about a GPU model: its memory, its MIG profiles and the place where each fact was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog.names import ProfileName, parse_profile, resource_suffix


class Source(NamedTuple):
    """A place where facts were read; rows name it by its key."""

    key: str
    citation: str


class Product(NamedTuple):
    """A value of the node label ``nvidia.com/gpu.product`` that boards of this model carry.

    ``derived`` says from what it was inferred, and is empty for one that was read on a node.
    """

    label: str
    derived: str = ""
    note: str = ""


class PciDevice(NamedTuple):
    """A PCI device id of the model; ``subsystem`` is vendor and device, `10DE14A9`, where boards share the id."""

    device: str
    name: str
    subsystem: str = ""

    @property
    def filter(self) -> str:
        """The id as mig-parted's ``device-filter`` wants it: device, then NVIDIA's vendor id."""
        return f"{self.device}10DE"

    @property
    def spelt(self) -> str:
        """As `lspci -nn` prints it: `10de:20b2`, and `10de:25b6/10de:14a9` with its subsystem."""
        subsystem = f"/{self.subsystem[:4]}:{self.subsystem[4:]}" if self.subsystem else ""
        return f"10de:{self.device.removeprefix('0x')}{subsystem}".lower()

    def is_same(self, other: PciDevice) -> bool:
        """Whether both are of the same boards: an id without a subsystem is not one with it."""
        return self.device == other.device and self.subsystem == other.subsystem


class Engines(NamedTuple):
    """Media engines: video decoders and encoders, JPEG decoders, optical flow; None where it was not read."""

    dec: int | None = None
    enc: int | None = None
    jpeg: int | None = None
    ofa: int | None = None

    def items(self) -> tuple[tuple[str, int | None], ...]:
        return tuple(self._asdict().items())


class Placement(NamedTuple):
    """Where an instance sits: its first memory slice and how many it takes."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """The first memory slice after it."""
        return self.start + self.size

    @property
    def mask(self) -> int:
        """One bit per memory slice taken."""
        return ((1 << self.size) - 1) << self.start

    def __str__(self) -> str:
        return str(self.start) if self.size == 1 else f"{self.start}-{self.end - 1}"


class Profile(NamedTuple):
    """A kind of GPU instance on one model.

    ``memory_gib`` is what ``nvidia-smi mig -lgip`` prints: usable, driver dependent, and below the number in the name.
    ``memory_mib`` is the same from NVML or a node label, where that was read. None always means unknown, never zero.
    ``sm`` and ``ce`` count multiprocessors and copy engines, the rest as in `Engines`.
    ``derived`` names the fields that were inferred rather than read; ``sources`` are keys of the model's sources.
    """

    name: str
    compute_slices: int
    memory_slices: int
    max_instances: int
    placements: tuple[Placement, ...]
    sources: tuple[str, ...]
    memory_gib: float | None = None
    memory_mib: int | None = None
    sm: int | None = None
    ce: int | None = None
    dec: int | None = None
    enc: int | None = None
    jpeg: int | None = None
    ofa: int | None = None
    derived: tuple[str, ...] = ()

    @property
    def parsed(self) -> ProfileName:
        parsed = parse_profile(self.name)
        assert parsed is not None, self.name  # noqa: S101 - the catalog's tests hold it
        return parsed

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.parsed.attributes

    @property
    def is_plain(self) -> bool:
        """The name carries neither a ``+`` nor a ``-`` attribute."""
        return self.parsed.is_plain

    @property
    def is_media(self) -> bool:
        """The instance holds the board's one JPEG and optical flow engine set (``+me``, ``+me.all``)."""
        return any(attribute.split(".")[0] == "me" for attribute in self.attributes)

    @property
    def resource_suffix(self) -> str:
        """The name in ``nvidia.com/mig-<suffix>`` and in mig-parted's ``all-<suffix>``."""
        return resource_suffix(self.name)

    @property
    def engines(self) -> Engines:
        return Engines(self.dec, self.enc, self.jpeg, self.ofa)

    @property
    def starts(self) -> tuple[int, ...]:
        return tuple(placement.start for placement in self.placements)


class LegacyName(NamedTuple):
    """A name that some driver reports, or once reported, for a profile of this model."""

    name: str
    profile: str
    note: str


class Gpu(Value, eq=False):
    """A GPU model. Two are equal when they are the same object: a process loads each model once.

    ``memory_gib`` is the size by which the model is named; ``memory_mib`` is the total that the driver reports where
    that was read. ``memory_slices`` is the axis of MIG placements. A model without MIG has no slices and no profiles;
    one with MIG whose profiles cannot be judged has an ``incomplete_reason`` and no profiles. ``min_drivers`` tells
    from which driver on MIG, a profile or a pair of profiles works, ``min_driver`` the first that knows the board,
    where that was read, and ``min_container_driver`` the first that works in the operator's container if that is later.
    ``uncertain`` lists what no board has confirmed.
    ``written_at`` is the `spec` of the platform's document that describes it; None for one of the catalog.
    """

    id: str
    name: str
    architecture: str
    compute_capability: tuple[int, int]
    memory_gib: int
    supports_mig: bool
    incomplete_reason: str
    engines: Engines
    profiles: tuple[Profile, ...]
    legacy_names: Mapping[str, LegacyName]
    products: tuple[Product, ...]
    pci: tuple[PciDevice, ...]
    sources: tuple[Source, ...]
    read_on: str
    memory_mib: int | None = None
    compute_slices: int = 0
    memory_slices: int = 0
    min_driver: str = ""
    min_container_driver: str = ""
    min_drivers: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    uncertain: tuple[str, ...] = ()
    written_at: Origin | None = None

    @property
    def is_complete(self) -> bool:
        return not self.incomplete_reason

    @property
    def plain_profiles(self) -> tuple[Profile, ...]:
        """The profiles without ``+`` and ``-`` attributes, in catalog order: small ones first."""
        return tuple(profile for profile in self.profiles if profile.is_plain)

    @property
    def base_profiles(self) -> tuple[Profile, ...]:
        """The plain profiles with the least memory for their compute slices: ``1g.10gb`` but not ``1g.20gb``."""
        smallest: dict[int, Profile] = {}
        for profile in self.plain_profiles:  # small ones come first
            smallest.setdefault(profile.compute_slices, profile)
        return tuple(smallest.values())

    def find_profile(self, name: str) -> Profile | None:
        return next((profile for profile in self.profiles if profile.name == name), None)

    def current_name(self, name: str) -> str:
        """The profile's name today, for one that some driver reports or once reported; any other as it is."""
        return self.legacy_names[name].profile if name in self.legacy_names else name

    def similar_profiles(self, name: str) -> tuple[Profile, ...]:
        """This model's profiles for another model's name: as many compute slices, same attributes, nearest size first.

        A legacy name has exactly one: the profile that it became.
        """
        if legacy := self.legacy_names.get(name):
            return tuple(profile for profile in self.profiles if profile.name == legacy.profile)
        wanted = parse_profile(name)
        if wanted is None:
            return ()
        same = [profile for profile in self.profiles if profile.parsed.kind == wanted.kind]
        return tuple(sorted(same, key=lambda profile: abs(profile.parsed.gigabytes - wanted.gigabytes)))
