"""What NVIDIA's library says of the boards of this machine; it is asked, and no setting is changed.

Structures and numbers are those of `nvml.h`, as NVIDIA/go-nvml v0.13.0 has it in `gen/nvml/`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char, c_int, c_uint, c_ulonglong, c_void_p, sizeof
from typing import Final

from tests.gpu.comparing import Board, Instances

_INVALID_ARGUMENT: Final = 2
_NOT_SUPPORTED: Final = 3
_PROFILES: Final = 0x11
_LONGEST: Final = 96


class NoBoardError(Exception):
    """Why there is nothing to ask."""


class _Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class _Pci(ctypes.Structure):
    _fields_ = [
        ("bus_id_legacy", c_char * 16),
        ("domain", c_uint),
        ("bus", c_uint),
        ("device", c_uint),
        ("pci_device_id", c_uint),
        ("pci_subsystem_id", c_uint),
        ("bus_id", c_char * 32),
    ]


_PROFILE: Final = [
    ("id", c_uint),
    ("is_p2p_supported", c_uint),
    ("slices", c_uint),
    ("instances", c_uint),
    ("sm", c_uint),
    ("ce", c_uint),
    ("dec", c_uint),
    ("enc", c_uint),
    ("jpeg", c_uint),
    ("ofa", c_uint),
    ("memory_mb", c_ulonglong),
]


class _Profile(ctypes.Structure):
    _fields_ = _PROFILE


class _NamedProfile(ctypes.Structure):
    _fields_ = [("version", c_uint), *_PROFILE, ("name", c_char * _LONGEST)]


class _Placement(ctypes.Structure):
    _fields_ = [("start", c_uint), ("size", c_uint)]


def read_boards() -> list[Board]:
    """The boards of this machine."""
    try:
        library = _Nvml(ctypes.CDLL("libnvidia-ml.so.1"))
    except OSError as error:
        raise NoBoardError(f"no NVIDIA driver: {error}") from error
    if code := library.call("nvmlInit_v2"):
        raise NoBoardError(f"NVML does not start: {library.text(code)}")
    try:
        return list(library.boards())
    finally:
        library.call("nvmlShutdown")


class _Nvml:
    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.nvmlErrorString.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: object) -> int:
        return int(getattr(self._library, name)(*arguments))

    def text(self, code: int) -> str:
        found: bytes = self._library.nvmlErrorString(code)
        return found.decode()

    def _ask(self, name: str, *arguments: object) -> None:
        if code := self.call(name, *arguments):
            raise AssertionError(f"{name}: {self.text(code)}")

    def boards(self) -> Iterator[Board]:
        count, driver = c_uint(), ctypes.create_string_buffer(_LONGEST)
        self._ask("nvmlDeviceGetCount_v2", byref(count))
        self._ask("nvmlSystemGetDriverVersion", driver, _LONGEST)
        for index in range(count.value):
            device = c_void_p()
            self._ask("nvmlDeviceGetHandleByIndex_v2", index, byref(device))
            yield self._board(device, driver.value.decode())

    def _board(self, device: c_void_p, driver: str) -> Board:
        name, memory, pci, major, minor = ctypes.create_string_buffer(_LONGEST), _Memory(), _Pci(), c_int(), c_int()
        self._ask("nvmlDeviceGetName", device, name, _LONGEST)
        self._ask("nvmlDeviceGetMemoryInfo", device, byref(memory))
        self._ask("nvmlDeviceGetPciInfo_v3", device, byref(pci))
        self._ask("nvmlDeviceGetCudaComputeCapability", device, byref(major), byref(minor))
        is_mig_on = self._is_mig_on(device)
        return Board(
            name.value.decode(),
            pci.pci_device_id,
            memory.total >> 20,
            (major.value, minor.value),
            driver,
            is_mig_on,
            tuple(self._profiles(device)) if is_mig_on is not None else (),
        )

    def _is_mig_on(self, device: c_void_p) -> bool | None:
        now, pending = c_uint(), c_uint()
        code = self.call("nvmlDeviceGetMigMode", device, byref(now), byref(pending))
        if code == _NOT_SUPPORTED:
            return None
        assert code == 0, self.text(code)
        return bool(now.value)

    def _profiles(self, device: c_void_p) -> Iterator[Instances]:
        """Of all that NVML has numbers for, those that the board has; the names are told where MIG is on."""
        for number in range(_PROFILES):
            named = _NamedProfile(version=sizeof(_NamedProfile) | 2 << 24)
            info, name = _Profile(), ""
            if self.call("nvmlDeviceGetGpuInstanceProfileInfoV", device, number, byref(named)) == 0:
                name = named.name.decode().removeprefix("MIG ")
            code = self.call("nvmlDeviceGetGpuInstanceProfileInfo", device, number, byref(info))
            if code in (_INVALID_ARGUMENT, _NOT_SUPPORTED):
                continue
            assert code == 0, self.text(code)
            counts = (info.slices, info.instances, info.sm, info.ce, info.dec, info.enc, info.jpeg, info.ofa)
            yield Instances(name, *counts, info.memory_mb, tuple(self._placements(device, info.id)))

    def _placements(self, device: c_void_p, profile: int) -> Iterator[tuple[int, int]]:
        name, count = "nvmlDeviceGetGpuInstancePossiblePlacements_v2", c_uint()
        self._ask(name, device, profile, POINTER(_Placement)(), byref(count))
        found = (_Placement * count.value)()
        self._ask(name, device, profile, found, byref(count))
        yield from ((place.start, place.size) for place in found[: count.value])
