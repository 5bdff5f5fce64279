"""Whoever follows a run, in the place of the driver's channel to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from runtime.driver import driver_messages
from runtime.driver.driver_messages import REPORT_SECONDS, Said


class Followed:
    """Where the driver sends what it says."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.records: list[Mapping[str, Any]] = []

    def report_seconds(self, _planned_seconds: float) -> float:
        return REPORT_SECONDS

    def send(self, said: Said) -> None:
        self.records.append(driver_messages.write(said))

    def messages(self) -> list[str]:
        found = [record["progress"]["message"] for record in self.records if "progress" in record]
        return [message for message in found if message]

    def warnings(self) -> list[str]:
        found = [record["progress"] for record in self.records if "progress" in record]
        return [record["message"] for record in found if record["warning"]]

    @property
    def started(self) -> bool:
        return any("started" in record for record in self.records)
