"""`publish=` of services: what a run makes reachable, and what it says where it cannot."""

from __future__ import annotations

import socket

import pytest

from compiler.pipeline import compile_source
from compiler.plan.format import Place, PlanError
from compiler.plan.parts import services
from compiler.plan.types import Topology
from runtime.driver.progress import RUNNING, STARTING, STOPPING, Progress
from tstorm.live import publishing


def topology(text: str) -> Topology:
    return compile_source(f"{text}\nbridge s\nlink web--s").plan.topology


def test_each_instance_has_a_port_of_its_own() -> None:
    found = topology("service web exec=x replicas=2 publish=8080:80;443")
    assert publishing.of_services(found) == [
        ("web.0", 80, 8080),
        ("web.0", 443, None),
        ("web.1", 80, 8081),
        ("web.1", 443, None),
    ]
    assert "publish= (of web) makes no port" in publishing.left_out(found, "in a replay")


def test_nobody_else_is_published() -> None:
    found = topology("service web exec=x port=80")
    assert publishing.of_services(found) == []
    assert publishing.left_out(found, "in virtual time") == ""


def test_ports_of_a_run_that_ends_before_its_start_lead_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(publishing, "_started", lambda _place, target, _at: begun.append(target))
    with socket.socket() as listener:
        publisher = publishing.Publisher([("web.0:80", listener)])
        for phase in (STARTING, STOPPING):
            publisher.seen(Progress(phase, "", "", 0, 1, 0, 0, 0))
        assert begun == []
        publisher.seen(Progress(RUNNING, "", "", 0, 1, 0, 0, 0))
        assert begun == ["web.0:80"]


@pytest.mark.parametrize("ports", ["", "http", "80;", "1:2:3", "0:80"])
def test_a_plan_with_other_words_is_refused(ports: str) -> None:
    [service] = topology("service web exec=x publish=80").services
    said = services.service_to_json(service) | {"options": [["publish", ports]]}
    place = Place("topology.json")
    with pytest.raises(PlanError, match="published ports of service web"):
        services.check(services.service_from_json(said, place, 0), place)
