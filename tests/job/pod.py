"""The coordinator's pod without a cluster: what it mounts, in a folder; its programs, children."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compiler.pipeline import compile_source
from compiler.plan.format import TOOL_VERSION
from compiler.plan.storage import plan_shards
from compiler.plan.storage.delivery import ArrivingPlan
from runtime.job.container_paths import ContainerPaths
from runtime.options import RunOptions, RunPlaces
from runtime.rundir import rundir

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = (
    "service a img=x\nservice b img=x replicas=2\nbridge s\n"
    "link a--s latency=1\nlink b--s latency=1\n"
    "at 500ms b.1 crash\nat 900ms b.1 join\nat {seconds}s quit\n"
)
OPTIONS = RunOptions(backend="k8s", nodes="pool=lab")


class Pod:
    """Its folder is short: paths of sockets are."""

    def __init__(self, root: Path, *, seconds: int = 2, linger: int = 60, log: int = 3000) -> None:
        self.root = root
        self.places = ContainerPaths(root)
        self.log_bytes = log
        plan = compile_source(TEXT.format(seconds=seconds)).plan
        shards = plan_shards.pack({name: plan.raw(name) for name in plan.names}, slim=True)
        self._mount("plan", shards)
        self._mount("auth", {"key": bytes(range(32))})
        self.config: dict[str, Any] = {
            "run_id": "run-1",
            "options": OPTIONS.to_record(),
            "name": "run",
            "start_directory": "/home/user",
            "source_directory": "/home/user",
            "manifest": rundir.manifest("run-1", plan, OPTIONS, RunPlaces(), "run"),
            "linger_seconds": linger,
        }
        self._mount("run-config", {})
        self.configure()
        for folder in ("tmp", "run/tstorm"):
            (root / folder).mkdir(parents=True)
        self.variables = {
            "TSTORM_EXPERIMENT": plan.digest,
            "TSTORM_VERSION": TOOL_VERSION,
            "TSTORM_NAMESPACE": "tstorm-x",
            "TSTORM_POD_IP": "10.0.0.1",
        }

    def _mount(self, folder: str, files: dict[str, bytes]) -> None:
        (self.root / folder).mkdir(parents=True)
        for name, data in files.items():
            (self.root / folder / name).write_bytes(data)

    def configure(self, **changes: Any) -> None:
        """run.json, with these changes."""
        self.config.update(changes)
        self.places.config.write_text(json.dumps(self.config))

    def start(
        self, *command: str, around: Sequence[str] = (), stdin: bytes = b""
    ) -> subprocess.Popen[bytes]:
        """A command in the pod; none: the Job. `around` is a program that becomes it."""
        words = [*around, sys.executable, "-P", "-m", "tests.job.program", str(self.root)]
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            return subprocess.Popen(
                [*words, str(self.log_bytes), *command],
                env={**os.environ, **self.variables, "PYTHONPATH": str(REPOSITORY)},
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )

    def talk(self, command: str) -> subprocess.Popen[bytes]:
        """A command that answers what comes on its stdin."""
        words = [sys.executable, "-P", "-m", "tests.job.program", str(self.root)]
        return subprocess.Popen(
            [*words, str(self.log_bytes), command],
            env={**os.environ, **self.variables, "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def follow(self, have: dict[str, int] | None = None) -> subprocess.Popen[bytes]:
        return self.start("follow", stdin=json.dumps({"have": have or {}}).encode() + b"\n")

    def call(self, *command: str, stdin: bytes = b"") -> tuple[int, str, str]:
        """Status, stdout and stderr of a command that ends."""
        process = self.start(*command, stdin=stdin)
        out, error = process.communicate(timeout=180)
        return process.returncode, out.decode(errors="replace"), error.decode()

    def grown(self) -> dict[str, bytes]:
        """What a mirror of the run directory should hold."""
        run = self.places.run
        names = ["events.jsonl", "samples.jsonl", "probes.jsonl", "driver.log"]
        names += [f"logs/{path.name}" for path in sorted((run / "logs").iterdir())]
        return {name: (run / name).read_bytes() for name in names}


class Mirror:
    """What a client makes of the stream: files, messages, and where to go on."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.messages: list[dict[str, Any]] = []
        self.progress: list[dict[str, Any]] = []
        self.arriving = ArrivingPlan()
        self.have: dict[str, int] = {}
        self.beats = 0
        self.ended = False

    def read(self, process: subprocess.Popen[bytes], most: int = 1 << 60) -> None:
        """Takes frames until the end of the stream, or of so many bytes of files."""
        assert process.stdout is not None
        taken = 0
        while taken < most and (line := process.stdout.readline()):
            if not line.endswith(b"\n"):
                return  # cut
            header = json.loads(line)
            if "file" in header:
                data = process.stdout.read(header["bytes"])
                if len(data) < header["bytes"]:
                    return
                self._take(header, data)
                taken += len(data)
            elif "plan" in header:
                data = process.stdout.read(header["bytes"])
                self.arriving.take(header["plan"], header["shard"], data)
            else:
                self._note(header)

    def _take(self, header: dict[str, Any], data: bytes) -> None:
        name = header["file"]
        before = self.files.get(name, b"")
        assert header["offset"] == len(before), "nothing is left out or sent twice"
        self.files[name] = before + data
        self.have[name] = len(self.files[name])

    def _note(self, header: dict[str, Any]) -> None:
        assert not self.ended, "nothing follows the end"
        if "message" in header:
            self.messages.append(header["message"])
            self.have["messages.jsonl"] = header["have"]
        elif "progress" in header:
            self.progress.append(header["progress"])
        elif "beat" in header:
            self.beats += 1
        else:
            assert header == {"end": True}
            self.ended = True

    @property
    def final(self) -> dict[str, Any]:
        found: dict[str, Any] = self.messages[-1]["final"]
        return found
