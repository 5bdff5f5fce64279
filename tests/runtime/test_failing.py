"""What a TCP client sees of each way to fail, in real time."""

from __future__ import annotations

import pytest

from tests.runs import failing
from tests.runtime.support import DEADLINE_SECONDS, User

pytestmark = [pytest.mark.e2e, pytest.mark.one_user]


def test_each_way_to_fail_is_what_the_page_says(user: User) -> None:
    failing.lay_out(user.home)
    process = user.tstorm("run", "exp.tdl", "--quiet", "--out", "run")
    said = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, said
    failing.check(user.home / "run", exact=False)
