"""The targets for the volume of metadata: bytes follow from the seed, so they may be asserted."""

from __future__ import annotations

from tests.simulation.volume import HEADER_BYTES, TARGET, Fleet, targets


def test_the_targets_are_met_with_headers() -> None:
    """160 instances, 80 flows, 4 agents: 50 kB/s at rest, 300 kB/s while all flows change."""
    rows = {row["what"]: row for row in targets(1)}
    assert set(rows) == {"at rest", "restless", "all told anew"}
    for what, row in rows.items():
        assert (row["instances"], row["flows"], row["hosts"]) == (160, 80, 4)
        assert 0 < row["payload_bytes_s"] < row["with_headers_bytes_s"] <= row["bound_bytes_s"], (
            what
        )
    assert rows["at rest"]["bound_bytes_s"] == 50_000
    assert rows["restless"]["with_headers_bytes_s"] > 5 * rows["at rest"]["with_headers_bytes_s"]


def test_silence_costs_a_heartbeat() -> None:
    side, _, hosts = TARGET
    fleet = Fleet(side, hosts, 0, change=False)
    fleet.run(4)
    fleet.run(40)
    assert fleet.datagrams == hosts * (hosts - 1) * 2
    assert fleet.bytes + HEADER_BYTES * fleet.datagrams < 80 * fleet.datagrams
