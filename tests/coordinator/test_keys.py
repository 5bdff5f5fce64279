"""The key of a run from a file or a descriptor: exactly 32 bytes, and never in a message."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runtime.errors import RunError
from runtime.rpc import secure

KEY = bytes(range(32))


def test_keys_from_files_and_descriptors(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    assert secure.read_key(str(path)) == KEY
    reading, writing = os.pipe()
    os.write(writing, KEY)
    os.close(writing)
    assert secure.read_key(f"fd:{reading}") == KEY
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(reading)
    assert len(secure.make_key()) == 32
    assert secure.make_key() != secure.make_key()


@pytest.mark.parametrize("data", [b"", KEY[:-1], KEY + b"\n"])
def test_a_key_of_another_length_is_refused_without_showing_it(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(data)
    with pytest.raises(RunError, match="does not have 32 bytes") as error:
        secure.read_key(str(path))
    assert repr(data)[2:-1] not in str(error.value) or not data


@pytest.mark.parametrize("source", ["/nowhere/key", "fd:99999", "fd:x", "fd:"])
def test_a_key_that_is_not_there_is_named(source: str) -> None:
    with pytest.raises(RunError, match="cannot read the run's key from") as error:
        secure.read_key(source)
    assert source in error.value.message
