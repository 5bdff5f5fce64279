"""Tells that a device of an instance that is up has gone, whoever removed it."""

from __future__ import annotations

from collections.abc import Callable, Mapping


class Missing:
    """Writes it to the events and says it, once for each time."""

    def __init__(
        self, record: Callable[[Mapping[str, object]], None], notice: Callable[[str], None]
    ) -> None:
        self._record = record
        self._notice = notice

    def tell(self, instance: str, device: str, elapsed_ns: int) -> None:
        self._record(
            {
                "kind": "device_gone",
                "target": instance,
                "device": device,
                "applied_ns": elapsed_ns,
            }
        )
        self._notice(f"{instance}: {device} is gone: it has no network there until it joins again")
