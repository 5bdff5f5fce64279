"""Words of a command with the run's own variables, `$TSTORM_IPV4` or `${TSTORM_IPV4}`, put in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from compiler.plan.types import RUN_VARIABLE


def replaced(argv: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """There is no shell that would do that; any other `$` is left for the one that there may be."""

    def value(found: re.Match[str]) -> str:
        return env.get(found[1] or found[2], found[0])

    return tuple(RUN_VARIABLE.sub(value, word) for word in argv)
