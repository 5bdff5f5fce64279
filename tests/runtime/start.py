"""Calls the runtime for the tests, as whoever starts it: `start.py COMMAND ARGUMENT…`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from compiler.plan.reader import read_plan
from runtime.doctor.checks import probe
from runtime.driver.progress import Progress
from runtime.errors import RunError
from runtime.launch.cleanup import destroy, forget
from runtime.launch.enter import exec_argv
from runtime.launch.launch import run
from runtime.launch.run_status import inspect
from runtime.options import RunPlaces, decode


def show(record: Progress) -> None:
    print(json.dumps(asdict(record)), flush=True)


def start(plan: str, out: str, options: str) -> int:
    path = Path(plan)
    places = RunPlaces(Path(out), path.stem, source_directory=str(path.parent.absolute()))
    result = run(read_plan(path), decode(json.loads(options), "options"), places, show)
    said = {"outcome": result.outcome, "message": result.message, "run_id": result.run_id}
    print(json.dumps({**said, "exit_code": result.exit_code, "directory": str(result.directory)}))
    return 0


def main(command: str, *arguments: str) -> int:
    try:
        if command == "run":
            return start(*arguments)
        if command == "exec":
            return exec_argv(arguments[0], arguments[1], arguments[2:])
        if command == "inspect":
            print(json.dumps(inspect(*arguments)))
        elif command == "destroy":
            done = destroy(everything=True) if not arguments else destroy(arguments[0])
            print(json.dumps([asdict(one) for one in done]))
        elif command == "forget":
            print(json.dumps([asdict(one) for one in forget(arguments[0])]))
        elif command == "doctor":
            print(json.dumps([asdict(check) for check in probe()]))
    except RunError as error:
        print(json.dumps({"error": str(error), "exit_code": error.exit_code}))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
