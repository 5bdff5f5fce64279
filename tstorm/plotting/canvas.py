"""What all pictures share: matplotlib with a style of our own, and bytes that repeat.

The user's own settings of matplotlib play no part. An SVG has neither date nor random names
(`svg.hashsalt`) and its text as outlines, so it looks the same everywhere; names are never read as
formulas. Colours are those of Okabe and Ito (2008), which colour-blind people can tell apart.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from tstorm.exit_codes import CANNOT, CommandError
from tstorm.output import visible

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
AMBER, SKY, BLACK, GREY, PALE = "#E69F00", "#56B4E9", "#1f2328", "#6e7781", "#e3e7eb"
SERVICES = (BLUE, AMBER, GREEN, PURPLE, SKY, ORANGE, BLACK)
SUFFIXES = (".svg", ".png")
DPI = 160.0
_EXTRA = "pip install 'tstorm[plot]', or in a checkout: .venv/bin/pip install -e '.[plot]'"
_STYLE = {
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "font.size": 9,
    "grid.color": PALE,
    "legend.frameon": False,
    "path.simplify": False,
    "svg.hashsalt": "tstorm",
    "text.parse_math": False,
}


@contextmanager
def drawing() -> Iterator[Any]:
    """matplotlib's class of figures, in our style. CommandError where it is missing."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        said = f"error: pictures need the Python package 'matplotlib'\nhint: {_EXTRA}"
        raise CommandError(said, CANNOT) from error
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.simplefilter("ignore")  # of characters that the font lacks: boxes show them
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield Figure


def encoded(figure: Any, suffix: str, most_dpi: float = DPI) -> bytes:
    """The file, for a suffix of SUFFIXES."""
    buffer = BytesIO()
    metadata = {"Date": None, "Creator": None} if suffix == ".svg" else {"Software": None}
    dpi = min(DPI, most_dpi)
    figure.savefig(buffer, format=suffix[1:], metadata=metadata, facecolor="white", dpi=dpi)
    return buffer.getvalue()


def width(text: str, points: float) -> float:
    """Of a line of text in this size, in points. Only while drawing()."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def label(text: object, most: int = 60) -> str:
    """Foreign text, in one line that fits."""
    shown = visible(str(text))
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
