"""What a program has in its floating-point and vector registers stays its own."""

from pathlib import Path

import pytest

from tests.virtual.guests import compiled, guest

pytestmark = pytest.mark.virtual


@pytest.mark.skipif("avx" not in Path("/proc/cpuinfo").read_text().split(), reason="needs AVX")
def test_registers_are_kept(either_kernel: list[str], tmp_path: Path) -> None:
    program = compiled("registers", tmp_path, "-static", "-pthread")
    script = f"{program}; echo ended with $?; {program} & {program}; wait"
    with guest(either_kernel, script, tmp_path) as it:
        lines = it.end().splitlines()
    none = "wrong: 0 in threads, 0 processes, 0 in forks, 0 in programs; signals: 800"
    assert lines == [none, "ended with 0", none, none]


def test_a_debugger_sees_and_sets_those_of_its_program(
    either_kernel: list[str], tmp_path: Path
) -> None:
    program = compiled("tracer", tmp_path, "-static")
    with guest(either_kernel, f"{program}; echo ended with $?", tmp_path) as it:
        lines = it.end().splitlines()
    assert lines == ["saw 1234567890abcdef", f"a third is {(1 / 3).hex()}", "ended with 0"]
