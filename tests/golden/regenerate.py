"""`make golden`: writes the golden files anew. Read the difference before committing it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.golden.produce import EXAMPLES, GOLDEN, documents


def main() -> None:
    wanted: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for example in EXAMPLES:
            wanted |= documents(example, Path(folder))
    for old in GOLDEN.glob("*.json"):
        if old.name not in wanted:
            old.unlink()
            sys.stdout.write(f"removed {old.name}\n")
    for name, text in sorted(wanted.items()):
        path = GOLDEN / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {name}\n")


if __name__ == "__main__":
    main()
