"""pytest's side: options, the mark, the fixture `tstorm`, what a failure report says
(docs/testing.md).

Everybody who has the package installed has this module in every session of pytest, so it imports
nothing of the project before a test uses the fixture.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tstorm.testing.fixture import Tstorm

_FIXTURE = pytest.StashKey["Tstorm"]()
_SEED_FIXTURE = "_tstorm_seed"
_MARK = "tstorm_require"
_PAGE = "tstorm_page"  # of a report's properties, which JUnit's files have, too
_FAILED, _ALL = "failed", "all"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tstorm", "experiments of Thunderstorm")
    group.addoption(
        "--tstorm-seeds",
        metavar="A..B",
        help="Run each test that uses the fixture tstorm once with each of these seeds.",
    )
    group.addoption(
        "--tstorm-time",
        choices=["real", "virtual"],
        help="The time of experiments whose test does not state one.",
    )
    group.addoption(
        "--tstorm-artifacts",
        metavar="DIR",
        help="Keep the run directories of tests that fail here, each with its page report.html. "
        "[default: all are in pytest's temporary directories]",
    )
    group.addoption(
        "--tstorm-keep",
        choices=[_FAILED, _ALL],
        default=_FAILED,
        help="Whose run directories --tstorm-artifacts keeps. [default: %(default)s]",
    )
    parser.addini(_MARK, "The verdict that runs of every test must have: valid or degraded.")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f'{_MARK}(verdict="valid"): a test whose runs have another verdict (valid, or degraded) '
        "fails as not to be trusted",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    asked = metafunc.config.getoption("--tstorm-seeds")
    if asked is None or _SEED_FIXTURE not in metafunc.fixturenames:
        return
    seeds = _seeds(str(asked))
    names = [f"seed{seed}" for seed in seeds]
    metafunc.parametrize(_SEED_FIXTURE, seeds, ids=names, indirect=True)


def _seeds(text: str) -> range:
    import click

    from tstorm.campaign.points import SeedsType

    try:
        return SeedsType().convert(text, None, None)
    except click.BadParameter as error:
        raise pytest.UsageError(f"--tstorm-seeds: {error.message}") from None


@pytest.fixture
def _tstorm_seed(request: pytest.FixtureRequest) -> int | None:
    """That of --tstorm-seeds."""
    return getattr(request, "param", None)


@pytest.fixture
def tstorm(
    request: pytest.FixtureRequest, _tstorm_seed: int | None, tmp_path: Path
) -> Iterator[Tstorm]:
    """Runs experiments; what the test leaves open is ended."""
    from tstorm.testing.fixture import FixtureRequest, Tstorm

    config = request.config
    artifacts = config.getoption("--tstorm-artifacts")
    asked = FixtureRequest(
        test=_name(request.node, config.invocation_params.dir),
        folder=request.path.parent,
        temporary=tmp_path,
        artifacts=config.invocation_params.dir / str(artifacts) if artifacts else None,
        seed=_tstorm_seed,
        time=config.getoption("--tstorm-time"),
        required=_required(request.node),
    )
    found = request.node.stash[_FIXTURE] = Tstorm(asked)
    yield found
    found.end()
    found.tidy()
    if config.getoption("--tstorm-keep") != _ALL and not found.failed:
        found.discard()


def _name(node: pytest.Item, here: Path) -> str:
    """As somebody in this directory gives it to pytest."""
    _, colons, rest = str(node.nodeid).partition("::")
    return f"{os.path.relpath(node.path, here)}{colons}{rest}"


def _required(node: pytest.Item) -> str:
    """By the mark, else by the ini file; '' is any verdict."""
    from runtime.options import REQUIRED

    mark = node.get_closest_marker(_MARK)
    if mark is None:
        found = str(node.config.getini(_MARK))
    else:
        words = [*mark.args, *mark.kwargs.values()]
        found = str(words[0]) if words else "valid"
    if found not in REQUIRED:
        known = " or ".join(filter(None, REQUIRED))
        raise pytest.UsageError(f"{_MARK} is {found!r}: say {known}")
    return found


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """What a test says of runs that are not to be trusted, good or bad, is not to be trusted."""
    __tracebackhide__ = True
    try:
        result = yield
    except (Exception, pytest.fail.Exception) as error:
        found = pyfuncitem.stash.get(_FIXTURE, None)
        if found is not None:
            found.judge(error)
        raise
    found = pyfuncitem.stash.get(_FIXTURE, None)
    if found is not None:
        found.judge(None)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    found = item.stash.get(_FIXTURE, None)
    if found is not None and report.failed:
        found.failed = True
        report.sections[:0] = found.sections()
        report.user_properties += [(_PAGE, page) for page in found.pages() if page]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The last lines of a session: where the pages of tests that failed are."""
    pages = {
        str(page): report.nodeid
        for kind in ("failed", "error")
        for report in terminalreporter.getreports(kind)
        for name, page in getattr(report, "user_properties", ())  # one of collection has none
        if name == _PAGE
    }
    if pages:
        terminalreporter.section("pages of tests that failed")
    for page, test in pages.items():
        terminalreporter.write_line(f"{test}: {page}")
