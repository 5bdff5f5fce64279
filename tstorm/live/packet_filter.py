"""Filters of packets in the language of pcap-filter(7), by libpcap, as tcpdump and Wireshark.

The library is used where it is installed and not otherwise needed. Declarations are those of
pcap(3PCAP), whose interface has been the same since 1.0.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from runtime.errors import RunError

_NAMES = ("libpcap.so.0.8", "libpcap.so.1", "libpcap.so")  # Debian's name, others'
_ETHERNET, _LONGEST, _UNKNOWN_MASK = 1, 1 << 18, 0xFFFFFFFF
_INSTRUCTION_BYTES = 8

Wanted = Callable[[bytes], bool]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.c_void_p))


class _PacketHeader(ctypes.Structure):
    _fields_ = (
        ("seconds", ctypes.c_long),
        ("microseconds", ctypes.c_long),
        ("captured", ctypes.c_uint32),
        ("length", ctypes.c_uint32),
    )


class PacketFilter:
    """Says of an Ethernet frame whether it is wanted. `instructions` say it to a kernel, too
    (SO_ATTACH_FILTER): 8 bytes each."""

    def __init__(self, pcap: ctypes.CDLL, program: _Program) -> None:
        self._pcap, self._program = pcap, program
        size = _INSTRUCTION_BYTES * program.length
        self.instructions = ctypes.string_at(program.instructions, size)

    def __call__(self, frame: bytes) -> bool:
        header = _PacketHeader(0, 0, len(frame), len(frame))
        return bool(self._pcap.pcap_offline_filter(self._program, header, frame))


def compiled(expression: str) -> PacketFilter:
    """RunError with libpcap's words."""
    pcap = _library()
    handle, program = pcap.pcap_open_dead(_ETHERNET, _LONGEST), _Program()
    text = expression.encode("utf-8", "surrogateescape")
    if b"\0" in text or pcap.pcap_compile(handle, program, text, 1, _UNKNOWN_MASK) != 0:
        words = pcap.pcap_geterr(handle).decode(errors="replace")
        raise RunError(f"--filter {expression!r:.200}: {words}", "man pcap-filter has the language")
    return PacketFilter(pcap, program)


def _library() -> ctypes.CDLL:
    for name in _NAMES:
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        program, header = ctypes.POINTER(_Program), ctypes.POINTER(_PacketHeader)
        found.pcap_open_dead.restype = ctypes.c_void_p
        found.pcap_open_dead.argtypes = (ctypes.c_int, ctypes.c_int)
        found.pcap_geterr.restype = ctypes.c_char_p
        found.pcap_geterr.argtypes = (ctypes.c_void_p,)
        found.pcap_compile.argtypes = (
            *(ctypes.c_void_p, program, ctypes.c_char_p),
            *(ctypes.c_int, ctypes.c_uint32),
        )
        found.pcap_offline_filter.argtypes = (program, header, ctypes.c_char_p)
        return found
    raise RunError("--filter needs libpcap, which is not here", "apt install libpcap0.8")
