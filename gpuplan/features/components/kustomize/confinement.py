"""Keep programs that are started from here from reaching a network."""

from __future__ import annotations

import functools
import os
import platform
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gpuplan.compiler.base.values import NamedTuple


class Confinement(NamedTuple):
    """A way to start programs without a network: a thread calls ``enter`` once, and puts ``prefix`` before commands."""

    enter: Callable[[], None]
    prefix: tuple[str, ...] = ()


@functools.cache
def find_confinement() -> Confinement | None:
    """Return a way to keep a program, and all that it starts, from a network, or None if this system has none.

    Proxy variables are not enough: Go asks no proxy for loopback addresses, and other programs ask none at all.
    """
    if sys.platform == "darwin":
        has_sandbox = os.access(SANDBOX_EXEC, os.X_OK)
        return Confinement(_nothing, (SANDBOX_EXEC, "-p", SANDBOX_PROFILE)) if has_sandbox else None
    return Confinement(_refuse_sockets) if sys.platform == "linux" and _sockets_can_be_refused() else None


# --- macOS -------------------------------------------------------------------------------------------------------

SANDBOX_EXEC: Final = "/usr/bin/sandbox-exec"
SANDBOX_PROFILE: Final = "(version 1)(allow default)(deny network*)"


def _nothing() -> None:
    """The command itself is all that is needed."""


# --- Linux -------------------------------------------------------------------------------------------------------


class _Architecture(NamedTuple):
    """The name of an architecture in the kernel, its calls that make sockets, and the first number of foreign calls.

    AUDIT_ARCH_* of include/uapi/linux/audit.h; arch/x86/entry/syscalls/syscall_64.tbl, where numbers from
    __X32_SYSCALL_BIT on are those of x32; include/uapi/asm-generic/unistd.h for aarch64. A pair of UNIX sockets can be
    turned to another address, so that `socketpair` is one of them.
    """

    audit: int
    calls: tuple[int, ...]
    limit: int


_ARCHITECTURES: Final = {
    "x86_64": _Architecture(0xC000003E, (41, 53), 0x40000000),
    "aarch64": _Architecture(0xC00000B7, (198, 199), 0x40000000),
}
_IO_URING_SETUP: Final = 425  # its rings make sockets without a call that a filter sees

# include/uapi/linux/prctl.h and seccomp.h
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38
_ALLOW, _REFUSE, _NO_SUCH_CALL = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38  # SECCOMP_RET_ERRNO | EPERM, ENOSYS

# include/uapi/linux/bpf_common.h: load a word of the call's description, compare, return
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCH = 0, 4  # where they are in struct seccomp_data


def _filter(architecture: _Architecture) -> bytes:
    """A filter that refuses to make sockets, and whatever is called by the numbers of another architecture.

    Documentation/userspace-api/seccomp_filter.rst says why the architecture comes first: numbers mean nothing without.
    """
    steps = [(_LOAD, 0, 0, _ARCH), (_IF_EQUAL, 1, 0, architecture.audit), (_RETURN, 0, 0, _REFUSE)]
    steps += [(_LOAD, 0, 0, _NUMBER), (_IF_AT_LEAST, 0, 1, architecture.limit), (_RETURN, 0, 0, _REFUSE)]
    for call in architecture.calls:
        steps += [(_IF_EQUAL, 0, 1, call), (_RETURN, 0, 0, _REFUSE)]
    steps += [(_IF_EQUAL, 0, 1, _IO_URING_SETUP), (_RETURN, 0, 0, _NO_SUCH_CALL), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _refuse_sockets() -> None:
    """Take sockets from this thread and from every program that it starts, for good; other threads keep theirs.

    seccomp(2): a filter is the calling thread's, and whatever it starts inherits it. No right is needed once the thread
    has given up to gain any. It works in containers, too, where namespaces of one's own are mostly forbidden.
    """
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    steps = _filter(_ARCHITECTURES[platform.machine()])
    text = ctypes.create_string_buffer(steps, len(steps))
    program = Program(len(steps) // 8, ctypes.cast(text, ctypes.c_void_p))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    address = ctypes.addressof(program)
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, address, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot refuse sockets")


def _sockets_can_be_refused() -> bool:
    """Tried in a thread of its own, which ends with it."""
    if platform.machine() not in _ARCHITECTURES or sys.maxsize < 2**32 or not Path("/proc/self").exists():
        return False
    outcome: list[bool] = []

    def attempt() -> None:
        try:
            _refuse_sockets()
        except (OSError, AttributeError, ImportError):
            return
        outcome.append(True)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return bool(outcome)
