"""`python -m runtime.agent`: options in process/commandline.py, the rest in docs/agent.md."""

from __future__ import annotations

import sys

from compiler.plan.format import PlanError
from runtime.agent.process.agent import FAILED, Agent
from runtime.agent.process.commandline import AgentOptions, parse
from runtime.errors import RunError
from runtime.rpc.secure import read_key
from runtime.system.realtime import rt_throttle


async def main_async(options: AgentOptions) -> int:
    try:
        if options.turns_fd >= 0:
            rt_throttle.RESTS.begin(options.turns_fd)
        return await Agent(options, read_key(options.key)).run()
    except (RunError, PlanError, OSError) as error:
        print(f"the agent cannot start: {error}", file=sys.stderr)  # noqa: T201
        return error.exit_code if isinstance(error, RunError) else FAILED


def main() -> int:
    return rt_throttle.run(main_async(parse(sys.argv[1:])))


if __name__ == "__main__":
    sys.exit(main())
