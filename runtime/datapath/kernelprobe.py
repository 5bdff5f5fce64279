"""What `tcald --probe` says about a kernel (docs/tcal.md)."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from runtime.system import namespaces


def lacks(done: subprocess.CompletedProcess[bytes]) -> dict[str, str]:
    """What is missing and why; empty if the kernel has everything that tcald needs."""
    if done.returncode == 0:
        return {}
    try:
        found: dict[str, Any] = json.loads(done.stdout)
        if "error" in found:
            return {"the probe": str(found["error"])}
        needed = {name: one for name, one in found.items() if one["needed"] and not one["found"]}
        return {name: str(one["why"]) for name, one in needed.items()}
    except (ValueError, KeyError, TypeError):
        return {"the probe": namespaces.last_words(done)}
