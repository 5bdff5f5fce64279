"""The images of a run between those who fetch them and those who run them."""

from __future__ import annotations

from dataclasses import replace

from runtime.backend.local.filesystem.image_root import ImageRoot
from runtime.driver.progress import STARTING, Progress, Reporter
from runtime.images.preparing import Prepared, Tell
from runtime.schedule import Schedule


def teller(schedule: Schedule, reporter: Reporter) -> Tell:
    """Says what is done before there is a run."""

    def tell(message: str, warning: bool) -> None:
        at_ns = schedule.clock.plan_time(0)
        record = Progress(STARTING, "", "", at_ns, schedule.end_ns, 0, 0, 0)
        reporter(replace(record, message=message, warning=warning))

    return tell


def roots(found: list[Prepared]) -> dict[str, ImageRoot]:
    """By service."""
    return {
        one.service: ImageRoot(
            lower=str(one.image.root),
            argv=one.start.argv,
            env=one.start.env,
            user=one.start.user,
            cwd=one.start.directory,
            stop=one.start.stop,
            volumes=one.start.volumes,
            ready=one.start.ready,
        )
        for one in found
    }
