"""What the examples are rendered to, as in tests/manifests/golden; `make golden` renews that.

Recorded is the text of the services of each example, and for one example everything. The plan's
digest and its shards stand there as words, so that a change of plans does not change these files:
plans have records of their own (tests/golden).
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

from manifests import compose, kubernetes
from manifests.render_options import NAMESPACE_DIGITS, Options
from tests.golden.renew import renew
from tests.manifests.kube import EXAMPLES, example

GOLDEN = Path(__file__).resolve().parent / "golden"
SOURCES = [*EXAMPLES, Path(__file__).resolve().parent / "stated.tdl"]
WHOLE = "quickstart"
FORMS = ("kubernetes", "compose")


def _texts(path: Path, form: str) -> dict[str, str]:
    bundle = example(path)
    if form == "kubernetes":
        return kubernetes.render(bundle, Options(kustomize=True))
    files = compose.render(bundle, Options())
    return {name: text for name, text in files.items() if isinstance(text, str)}


def everything(path: Path, form: str) -> str:
    """All texts that `path` is rendered to, what depends on the plan's bytes replaced by words."""
    bundle = example(path)
    text = "".join(f"# {name}\n{body}" for name, body in _texts(path, form).items())
    for name, data in bundle.shards.items():
        text = text.replace(base64.b64encode(data).decode("ascii"), f"base64-of-{name}")
    text = text.replace(bundle.digest, "DIGEST")
    return text.replace(bundle.digest[:NAMESPACE_DIGITS], "DIGEST-12")


def parts(path: Path, form: str) -> tuple[str, str]:
    """Everything but the services, and the services."""
    text = everything(path, form)
    start, end = {
        "kubernetes": (r"^# 60-service-", r"^# kustomization"),
        "compose": (r"^  # Service ", r"^networks:"),
    }[form]
    first = re.search(start, text, re.MULTILINE)
    last = re.search(end, text, re.MULTILINE)
    assert first is not None
    assert last is not None
    return text[: first.start()] + text[last.start() :], text[first.start() : last.start()]


def documents() -> dict[str, str]:
    """The golden files by name."""
    found = {}
    for path in SOURCES:
        for form in FORMS:
            whole = path.stem == WHOLE
            text = everything(path, form) if whole else parts(path, form)[1]
            found[f"{path.stem}.{form}.yaml"] = text
    return found


def main() -> None:
    renew(GOLDEN, ".yaml", documents())


if __name__ == "__main__":
    main()
