"""A registry on loopback: Debian's docker-registry, on a free port, with its files in a folder."""

from __future__ import annotations

import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.packing.layout import Packed, write_layout
from tests.waiting import wait_until

_CONFIG = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


def needed(*programs: str) -> None:
    """Skips the test where one of them is not installed."""
    lacking = [name for name in programs if shutil.which(name) is None]
    if lacking:
        pytest.skip(f"not installed: {', '.join(lacking)}")


class Registry:
    def __init__(self, port: int, folder: Path) -> None:
        self.host = f"127.0.0.1:{port}"
        self._folder = folder
        self._pushed = 0

    def push(self, image: Packed, name: str, *, docker: bool = False) -> str:
        """The digest under which it is there. `name`: REPOSITORY:TAG."""
        self._pushed += 1
        layout = self._folder / f"pushed{self._pushed}"
        digest = write_layout(layout, image, docker=docker)
        target = f"docker://{self.host}/{name}"
        argv = ["skopeo", "--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false"]
        subprocess.run([*argv, "--preserve-digests", f"oci:{layout}:latest", target], check=True)
        return digest


@contextmanager
def running(folder: Path) -> Iterator[Registry]:
    """Until the end of the block. Another process may take the free port first: then it is tried
    again."""
    needed("docker-registry", "skopeo")
    for _ in range(5):
        port = _free_port()
        config = folder / "registry.yml"
        config.write_text(_CONFIG.format(folder=folder / "blobs", port=port))
        with (folder / "registry.log").open("ab") as log:
            process = subprocess.Popen(
                ["docker-registry", "serve", str(config)], stdout=log, stderr=log
            )
        try:
            _await(process, port)
            if process.poll() is None:
                yield Registry(port, folder)
                return
        finally:
            process.kill()
            process.wait()
    pytest.fail((folder / "registry.log").read_text())


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    """Until it answers or has ended."""
    wait_until(lambda: process.poll() is not None or _answers(port), "the registry answers")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False
