"""What a program without rights cannot do, as both kinds of user: topologies that try it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runtime.support import User
from tests.waiting import wait_until

TOPO = "from mininet.topo import Topo\n"
HOST = "class T(Topo):\n  def build(self):\n    self.addHost('h1')\n"
HOSTILE = {
    "fork": "import os\nwhile True: os.fork()\n",
    "threads": "import threading\nthreading.Thread(target=print).start()\n",
    "memory": "x = bytearray(10 << 30)\n",
    "passwd": "open('/etc/passwd')\n",
    "home": "import os\nos.listdir(os.path.expanduser('~root'))\n",
    "processes": "open('/proc/1/environ')\n",
    "net": "import socket\nsocket.create_connection(('127.0.0.1', 22))\n",
    "write": "open('mark', 'w')\n",
    "elsewhere": "open('/tmp/mark', 'w')\n",
    "device": "import os\nos.mknod('/x', 0o60600, 1)\n",
    "mount": "import ctypes\nassert ctypes.CDLL(None).mount(b'/', b'/usr', b'', 4096, None) == 0\n",
    "kill": "import os\nos.kill(int(os.environ['PID']), 9)\n",
    "shell": "import os\nos.system('touch mark')\nopen('mark')\n",
    "deep": "def f(): f()\nf()\n",
}


@pytest.mark.e2e
def test_a_hostile_file_does_nothing(user: User) -> None:
    """For both kinds of user: each ends with an error at its place, and leaves nothing. What a good
    one prints is not among what the command says."""
    folder = user.home / "topologies"
    folder.mkdir()
    for name, text in HOSTILE.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "good.py").write_text(f"print('said')\n{TOPO}{HOST}")
    (folder / "all.tdl").write_text("".join(f'include "{name}.py"\n' for name in HOSTILE))
    process = user.tstorm("check", "--format", "json", str(folder / "all.tdl"))
    out, err = process.communicate(timeout=180)
    assert process.returncode == 1, err
    found = {Path(one["file"]).stem: one["message"] for one in json.loads(out)}
    assert found.keys() - {"all"} == HOSTILE.keys(), found
    assert "PermissionError" in found["fork"]
    assert "MemoryError" in found["memory"]
    assert "FileNotFoundError" in found["passwd"]
    assert not list(folder.glob("mark*"))
    process = user.tstorm("import", str(folder / "good.py"))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "service h1\n"), err
    wait_until(lambda: not _running(str(folder)), "every process of theirs is gone")


def _running(folder: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text(errors="replace").split("\0")
        except OSError:
            continue
        found += [path.parent.name for word in words if word.startswith(folder)]
    return found
