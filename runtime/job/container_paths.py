"""Where the files of the coordinator's container are. Little is imported here: `probe` is called
every few seconds."""

from __future__ import annotations

from pathlib import Path

ROOT = Path("/")
MESSAGES = "messages.jsonl"  # grows: what is to be seen even by who comes late
PROGRESS = "progress.json"  # the latest record, replaced
FINAL = "final.json"  # the last message


class ContainerPaths:
    """Paths as the manifests mount them; tests have others below `root`."""

    def __init__(self, root: Path = ROOT) -> None:
        self.shards = root / "plan"  # of the plan
        self.plan = root / "tmp/plan"  # the plan made of them
        self.key = root / "auth/key"
        self.config = root / "run-config/run.json"
        self.home = root / "run/tstorm"  # what is kept of the run
        self.run = self.home / "run"  # the run directory
        self.socket = self.home / "job.sock"  # of the Job
        self.control = self.home / "control.sock"  # of the driver
