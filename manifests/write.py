"""Rendered files as bytes, and as a directory that appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from compiler.plan.format import TOOL_VERSION
from compiler.plan.storage import outdir
from manifests.refusal import ManifestError

Files = Mapping[str, str | bytes]

# By the first words a directory of ours is told from others: see compiler/plan/storage/outdir.py.
_HEAD = f"{outdir.RENDERED.decode()} {TOOL_VERSION} from a plan; render again instead of editing.\n"


def encoded(files: Files) -> dict[str, bytes]:
    """The files' bytes by name. Texts are ASCII and begin with a comment: who made them."""
    return {
        name: data if isinstance(data, bytes) else (_HEAD + data).encode("ascii")
        for name, data in files.items()
    }


def write(directory: str | Path, files: Files) -> None:
    """Makes or replaces `directory`. Raises ManifestError; then whatever was there is still there.

    Replaced is only what is empty or holds nothing but rendered files.
    """
    target = Path(directory)
    try:
        if target.is_symlink():
            target = Path(os.path.realpath(target))
        refusal = outdir.refusal(target, _not_rendered)
        if refusal:
            raise ManifestError(f"{target} {refusal}", "choose another -o or move it away")
        outdir.put(target, encoded(files))
    except OSError as error:
        reason = error.strerror or str(error)
        raise ManifestError(
            f"{directory}: cannot write the manifests: {reason}", "choose another -o"
        ) from error


def _not_rendered(directory: Path) -> str:
    """Why this is neither an empty directory nor one of manifests, `""` if it is."""
    if not directory.is_dir():
        return "is a file, not a directory of manifests"
    strange = outdir.stranger(directory)
    return strange and f"holds {strange!r}, which tstorm has not rendered"


def stream(files: Files) -> str:
    """The texts as one stream of YAML documents, in order of their names."""
    texts = [files[name] for name in sorted(files)]
    return "".join(f"---\n{text}" for text in texts if isinstance(text, str))
