"""`lan NAME kernel`: a bridge of the kernel's in each machine, which the parts' programs use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runtime.support import DEADLINE_SECONDS, User

pytestmark = pytest.mark.e2e

# Says each change of whether the router of the same machine answers, and ends after some of them.
WATCH = """\
#!/bin/sh
[ $TSTORM_MACHINE = sat.0 ] && left=3 || left=1
was=no
while [ $left -gt 0 ]; do
    ping -c 1 -W 0.2 192.168.0.1 >/dev/null 2>&1 && now=yes || now=no
    [ "$now" = "$was" ] && continue
    echo "$now $(cat /sys/class/net/inner/address)"
    was=$now left=$((left - 1))
done
"""
TEXT = """\
node sat replicas=2 {
    service router
    service watch exec="./watch.sh"
    lan inner kernel
    link router--inner address=192.168.0.1/24
    link watch--inner address=192.168.0.11/24
}
quit when sat.watch exit
when log sat.0.watch "yes" {
    sat.0.router %s
}
when log sat.0.watch "no" {
    sat.0.router %s
}
"""


def _run(user: User, gone: str, back: str) -> str:
    """What the command says of a run in which the router of the first machine is gone for a time.
    The other machine has the same addresses, and hears of nothing."""
    watch = user.home / "watch.sh"
    watch.write_text(WATCH)
    watch.chmod(0o755)
    (user.home / "exp.tdl").write_text(TEXT % (gone, back))
    process = user.tstorm("run", "exp.tdl", "--out", "run")
    said = "".join(process.communicate(timeout=DEADLINE_SECONDS))
    logs = user.home / "run/logs"
    first, second = (logs / f"sat.{at}.watch.0.log" for at in range(2))
    mac = "02:54:53:02:00:01"  # of node 1
    heard = [line for line in first.read_text().splitlines() if "[tstorm]" not in line]
    assert heard == [f"yes {mac}", f"no {mac}", f"yes {mac}"], said
    assert second.read_text().splitlines() == ["yes 02:54:53:02:00:03"]
    return said


def test_parts_hear_each_other_unless_one_is_cut_off(user: User) -> None:
    """Run and verdict say what they are not about."""
    said = _run(user, "disconnect", "reconnect")
    past = "what passes sat.0.inner, sat.1.inner (lans of the kernel's)"
    assert f"{past} is not emulated, does not repeat, and is not part of the verdict" in said
    assert f"not probed: {past}, which is not emulated" in said
    certificate = json.loads((user.home / "run/certificate.json").read_text())
    assert f"{past}, which is not emulated" in certificate["not_measured"]


@pytest.mark.one_user
@pytest.mark.parametrize("gone", ["crash", "leave"])
def test_a_part_that_is_down_is_not_at_the_lan(user: User, gone: str) -> None:
    _run(user, gone, "join")


@pytest.mark.parametrize("option", ["--hosts=2", "--time=virtual"])
def test_it_is_refused_with_its_line(option: str, tmp_path: Path) -> None:
    (tmp_path / "exp.tdl").write_text(TEXT % ("crash", "join"))
    done = tstorm(tmp_path, "run", "exp.tdl", option, code=None)
    assert done.returncode != 0
    said = "exp.tdl:4: a lan of the kernel's (lan sat.0.inner kernel) is not possible"
    assert said in done.stderr
