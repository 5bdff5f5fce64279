"""Lets the kernel drop datagrams that do not begin as they should, before they take up room.

A classic BPF program on the socket (Documentation/networking/filter.rst of Linux; SO_ATTACH_FILTER
in socket(7)); any user may do that. Without it a flood of garbage would fill the socket's buffer
and leave no room for what is genuine.
"""

from __future__ import annotations

import ctypes
import socket
import struct

_SO_ATTACH_FILTER, _SO_MEMINFO = 26, 55  # asm-generic/socket.h
_MEMINFO_DROPS = 8  # position in what SO_MEMINFO tells (linux/sock_diag.h)
_LOAD_BYTE = 0x30  # BPF_LD | BPF_B | BPF_ABS
_JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
_UDP_HEADER = 8  # what a program on a UDP socket sees begins with it
_WHOLE = 0xFFFF_FFFF
MAX_PREFIX = 64  # jumps of a program are at most 255 instructions long

_INSTRUCTION = struct.Struct("=HBBI")


def program(prefix: bytes) -> bytes:
    """Instructions that take datagrams with this prefix whole, and nothing else."""
    assert len(prefix) <= MAX_PREFIX
    found = []
    for at, byte in enumerate(prefix):
        left = 2 * (len(prefix) - at)  # from the jump to the last instruction but itself
        found.append(_INSTRUCTION.pack(_LOAD_BYTE, 0, 0, _UDP_HEADER + at))
        found.append(_INSTRUCTION.pack(_JUMP_IF_EQUAL, 0, left - 1, byte))
    found.append(_INSTRUCTION.pack(_RETURN, 0, 0, _WHOLE))
    found.append(_INSTRUCTION.pack(_RETURN, 0, 0, 0))
    return b"".join(found)


class _Program(ctypes.Structure):
    """struct sock_fprog (linux/filter.h)."""

    _fields_ = (("count", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def accept_only(receiver: socket.socket, prefix: bytes) -> None:
    """From now on; what is in the buffer already stays. Raises OSError."""
    code = program(prefix)
    instructions = ctypes.create_string_buffer(code, len(code))
    count = len(code) // _INSTRUCTION.size
    whole = _Program(count, ctypes.cast(instructions, ctypes.c_void_p))
    receiver.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, bytes(whole))


def drops(receiver: socket.socket) -> int:
    """Datagrams that the kernel dropped at this socket: filtered out, or without room."""
    try:
        told = receiver.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 64)
    except OSError:
        return 0  # Linux before 4.12
    values = struct.unpack(f"={len(told) // 4}I", told)
    return int(values[_MEMINFO_DROPS]) if len(values) > _MEMINFO_DROPS else 0
