"""Which services of a run run images, and with which content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compiler.pipeline import compile_source, write
from compiler.plan.reader import Plan, read_plan
from runtime.errors import MachineError, RunError
from runtime.images import ids, image_cache, preparing
from runtime.options import K8S, NEVER, PREFERRED, RunOptions, RunPlaces
from tests.images.support import SMALL
from tests.packing.layout import write_layout

TEXT = """\
service both img=oci:app exec="sleep 60"
service image img=oci:app
service idle
bridge s1
link both--s1 latency=1
link image--s1 latency=1
link idle--s1 latency=1
at 1s quit
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    write(compile_source(TEXT), tmp_path / "exp.plan")
    return read_plan(tmp_path / "exp.plan")


def told(_text: str, _warning: bool) -> None:
    """Nobody listens."""


@pytest.mark.parametrize(
    ("images", "names"), [("alone", ["image"]), (PREFERRED, ["both", "image"]), (NEVER, [])]
)
def test_option_chooses_between_image_and_program(
    plan: Plan, images: str, names: list[str]
) -> None:
    found = preparing.wanted(plan, RunOptions(images=images))
    assert [service.name for service in found] == names


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(RunError, match="images is 'x'"):
        RunOptions(images="x")
    with pytest.raises(RunError, match="every program comes from an image"):
        RunOptions(images=NEVER, backend=K8S)


def test_missing_tools_are_named_with_the_service(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(MachineError, match=r"skopeo and umoci are not installed, and image would"),
        preparing.prepared(plan, RunOptions(), RunPlaces(), told),
    ):
        pass


@pytest.mark.e2e
@pytest.mark.usefixtures("tools")
def test_images_are_held_as_long_as_the_run(plan: Plan, tmp_path: Path) -> None:
    digest = write_layout(tmp_path / "app", SMALL)
    places = RunPlaces(source_directory=str(tmp_path))
    said: list[str] = []
    options = RunOptions(images=PREFERRED)
    with preparing.prepared(plan, options, places, lambda text, _: said.append(text)) as found:
        assert [(one.service, one.start.argv) for one in found] == [
            ("both", ("/hello",)),
            ("image", ("/hello",)),
        ]
        assert preparing.digests(found) == {"oci:app": digest}
        assert image_cache.prune(every=True) == []
    assert len(image_cache.prune(every=True)) == 1
    fetched = [text for text in said if text not in (ids.WARNING, f"{ids.WARNING}; {ids.REMEDY}")]
    assert fetched == [
        "looking for the image oci:app",
        "fetching the image oci:app",
        "unpacking the image oci:app",
    ]


@pytest.mark.e2e
@pytest.mark.usefixtures("tools")
def test_recorded_run_has_its_own_content_again(plan: Plan, tmp_path: Path) -> None:
    before = write_layout(tmp_path / "app", SMALL)
    places = RunPlaces(source_directory=str(tmp_path))
    with preparing.prepared(plan, RunOptions(), places, told) as found:
        assert found[0].image.digest == before
    (tmp_path / "app").rename(tmp_path / "old")
    write_layout(tmp_path / "app", replace(SMALL, config={"Cmd": ["/other"]}))
    again = replace(places, digests={"oci:app": before})
    with preparing.prepared(plan, RunOptions(), again, told) as found:
        assert found[0].start.argv == ("/hello",)
    with preparing.prepared(plan, RunOptions(), places, told) as found:
        assert found[0].start.argv == ("/other",)


@pytest.mark.e2e
@pytest.mark.usefixtures("tools")
def test_an_image_that_cannot_be_held_is_told(plan: Plan, tmp_path: Path) -> None:
    write_layout(tmp_path / "app", SMALL)
    places = RunPlaces(source_directory=str(tmp_path))
    with preparing.prepared(plan, RunOptions(), places, told) as found:
        folder = found[0].image.folder
    (folder / "used").unlink()
    with (
        pytest.raises(MachineError, match="cannot be held where it is kept") as error,
        preparing.prepared(plan, RunOptions(), places, told),
    ):
        pass
    assert "prune --all" in error.value.remedy
