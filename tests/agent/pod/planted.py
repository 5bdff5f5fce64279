"""A /proc of a node as container runtimes make it, in a folder."""

from __future__ import annotations

from pathlib import Path

HOST = "net:[1]"
BLOCKED = f"{1 << 34:016x}"  # signal 35


class Planted:
    """Processes that are not there. Process 1 is the node's."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.process(1, "0::/init.scope", HOST, name="systemd")

    def process(
        self,
        pid: int,
        groups: str,
        network: str = "net:[7]",
        *,
        start: int = 0,
        name: str = "program",
        words: tuple[str, ...] = ("program",),
        blocked: str = "0",
        inside: str = "1",
    ) -> None:
        """`inside` are its numbers in inner PID namespaces; '' network: it is ending."""
        at = self.proc / str(pid)
        (at / "ns").mkdir(parents=True)
        if network:
            (at / "ns/net").symlink_to(network)
        fields = " ".join(["S", *["0"] * 18, str(start or pid)])
        (at / "stat").write_text(f"{pid} ({name}) {fields} 0\n")
        spaces = "\t".join([str(pid), *inside.split()])
        (at / "status").write_text(
            f"Name:\t{name}\nPid:\t{pid}\nNSpid:\t{spaces}\nSigBlk:\t{blocked}\n"
        )
        (at / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
        (at / "cgroup").write_text(groups + "\n")

    def hold(self, pid: int, groups: str, kind: str = "run", network: str = "net:[7]") -> None:
        words = ("/tstorm/tstorm-hold", kind)
        self.process(pid, groups, network, name="tstorm-hold", words=words, blocked=BLOCKED)

    def root(self, pid: int) -> Path:
        """Of the container of this process; empty."""
        root = self.proc.parent / f"root-{pid}"
        root.mkdir()
        (self.proc / str(pid)).mkdir(parents=True, exist_ok=True)
        (self.proc / str(pid) / "root").symlink_to(root)
        return root
