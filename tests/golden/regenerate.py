"""`make golden`: writes the golden files anew. Read the difference before committing it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.golden.produce import EXAMPLES, GOLDEN, documents
from tests.golden.renew import renew


def main() -> None:
    wanted: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for example in EXAMPLES:
            wanted |= documents(example, Path(folder))
    renew(GOLDEN, ".json", wanted)


if __name__ == "__main__":
    main()
