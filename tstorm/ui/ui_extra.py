"""Whether the packages of the extra `[ui]` are there."""

from __future__ import annotations

from importlib.util import find_spec

from runtime.errors import MachineError

_PACKAGES = ("starlette", "uvicorn")
_EXTRA = "pip install 'tstorm[ui]', or in a checkout: .venv/bin/pip install -e '.[ui]'"


def check_installed() -> None:
    """MachineError with the command that installs them."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        what = " and ".join(missing)
        raise MachineError(f"the page of a running experiment needs {what}", _EXTRA)
