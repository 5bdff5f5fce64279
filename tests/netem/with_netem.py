"""Runs a command where the kernel has netem: `with_netem.py [--check] -- COMMAND [ARG…]`.

In namespaces of its own under this kernel if that has netem, else in the machine of vm.py. Either
way the command is root there, alone with its network, and nothing it leaves outlives it. `--check`
says which it would be, or with status 69 why it is neither.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.netem import vm
from tests.netem.kernel import SEARCH, isolation, why_no_netem

TIMEOUT_S = 900  # a machine that hangs must not hang a whole test run


def main() -> int:
    parser = argparse.ArgumentParser(prog="with_netem.py", description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("command", nargs="*", metavar="COMMAND [ARG…]")
    options = parser.parse_args()
    if not options.command and not options.check:
        parser.error("no command")
    refused = why_no_netem()
    missing = vm.why_not() if refused else ""
    if missing:
        print(f"{refused}; and no machine that has it: {missing}", file=sys.stderr)
        return vm.MISSING
    if options.check:
        print(f"user-mode Linux {vm.kernel()}" if refused else f"Linux {os.uname().release}")
        return 0
    os.environ["TSTORM_TEST_NETEM"] = "1"
    os.environ["PATH"] = SEARCH
    if refused:
        return vm.launch(options.command, timeout_s=TIMEOUT_S)
    argv = [*vm.DYING, *isolation("--mount", "--pid", "--mount-proc"), *options.command]
    return subprocess.run(argv, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
