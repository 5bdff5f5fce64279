"""The one way to fill a template: jinja2 with every expression serialized.

Nothing in a template is quoted by hand: `{{ x }}` is one YAML value, wherever `x` comes from
(manifests/serialize.py). A name that is not defined is an error, never an empty text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import jinja2

from manifests.serialize import serialize

TEMPLATES = Path(__file__).resolve().parent / "templates"


def _finalize(value: object) -> str:
    if isinstance(value, jinja2.Undefined):
        str(value)  # StrictUndefined raises here, with the name
    return serialize(value)


@cache
def environment() -> jinja2.Environment:
    """The environment of all templates; `kubernetes/agent.yaml` names one in templates/."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        autoescape=False,  # this is no HTML: finalize is what keeps values apart
        auto_reload=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def fill(template: str, values: Mapping[str, object]) -> str:
    """The text of `template` with `values`. Raises ManifestError for characters YAML has not."""
    return environment().get_template(template).render(values)
