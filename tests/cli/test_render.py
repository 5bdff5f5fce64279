"""`tstorm render`, and the manifests that `tstorm compile` puts into a plan."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from compiler.plan.reader import read_plan
from tests.plan.test_identity import interpreter
from tstorm.cli import cli
from tstorm.exit_codes import CommandError

ROOT = Path(__file__).resolve().parents[2]
LISTING1 = str(ROOT / "examples" / "listing1.tdl")
GOOD = "service a img=x\nbridge s\nlink a--s latency=1ms\nat 10s quit\n"
LOCAL = 'service a exec="true"\nbridge s\nlink a--s latency=1ms\nat 10s quit\n'


def tstorm(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin)


def message(result: Result) -> str:
    assert isinstance(result.exception, CommandError)
    assert result.exception.code == 1
    return result.exception.message


def content(directory: str | Path) -> dict[str, bytes]:
    root = Path(directory)
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.tdl").write_text(GOOD, encoding="utf-8")


@pytest.mark.parametrize(
    ("form", "folder"),
    [("yaml", "x.kubernetes"), ("kustomize", "x.kustomize"), ("compose", "x.compose")],
)
def test_the_default_directory_is_named_after_experiment_and_form(form: str, folder: str) -> None:
    result = tstorm("render", "x.tdl", "--format", form)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{folder}: ")
    assert [path.name for path in Path().iterdir() if path.name != "x.tdl"] == [folder]
    assert ("kustomization.yaml" in content(folder)) == (form == "kustomize")


def test_a_plan_a_run_and_a_text_give_the_same(tmp_path: Path) -> None:
    assert tstorm("compile", "x.tdl").exit_code == 0
    Path("run").mkdir()
    Path("run/manifest.json").write_text("{}")
    shutil.copytree("x.plan", "run/plan")
    for source, target in (("x.tdl", "a"), ("x.plan", "b"), ("run", "c"), ("x.plan/", "d")):
        result = tstorm("render", source, "-o", target)
        assert result.exit_code == 0, result.output
    result = tstorm("render", "-", "-o", "e", stdin=GOOD)
    assert result.exit_code == 0, result.output
    assert content("a")
    assert content("a") == content("b") == content("c") == content("d") == content("e")
    assert content("a") == content("x.plan/manifests")


def test_names_of_defaults() -> None:
    tstorm("compile", "x.tdl", "-o", "out.plan")
    assert tstorm("render", "out.plan/").stdout.startswith("out.kubernetes: ")
    assert tstorm("render", "-", stdin=GOOD).stdout.startswith("stdin.kubernetes: ")
    os.chdir("out.plan")
    assert tstorm("render", ".", "-o", "../there").stdout.startswith("../there: ")


@pytest.mark.parametrize("form", ["yaml", "compose"])
def test_one_stream(form: str) -> None:
    result = tstorm("render", "x.tdl", "--format", form, "-o", "-")
    assert result.exit_code == 0
    documents = list(yaml.safe_load_all(result.stdout))
    assert ("services" in documents[0]) == (form == "compose")
    assert ("plan/plan-000, which -o DIR writes" in result.stderr) == (form == "compose")
    assert [path.name for path in Path().iterdir()] == ["x.tdl"]
    folder = Path(tstorm("render", "x.tdl", "--format", form).stdout.partition(":")[0])
    texts = [path.read_text("ascii") for path in sorted(folder.glob("*.yaml"))]
    assert documents == [found for text in texts for found in yaml.safe_load_all(text)]


def test_namespace_image_and_seed() -> None:
    arguments = ["render", "x.tdl", "--namespace", "trial-7", "--agent-image", "mine:2"]
    result = tstorm(*arguments, "--seed", "9", "-o", "-")
    documents = list(yaml.safe_load_all(result.stdout))
    assert documents[0]["metadata"]["name"] == "trial-7"
    spaces = {one["metadata"].get("namespace", "trial-7") for one in documents}
    assert spaces == {"trial-7"}
    assert result.stdout.count('image: "mine:2"') == 3
    assert "namespace trial-7, plan " in tstorm(*arguments).stdout
    assert 'name: "TSTORM_SEED"' in result.stdout
    again = tstorm("render", "x.tdl", "--seed", "9", "-o", "-").stdout
    assert again != tstorm("render", "x.tdl", "-o", "-").stdout


def test_another_seed_compiles_a_plan_again() -> None:
    tstorm("compile", "x.tdl")
    wanted = tstorm("render", "x.tdl", "--seed", "9", "-o", "-").stdout
    assert tstorm("render", "x.plan", "--seed", "9", "-o", "-").stdout == wanted


def test_slim_carries_less() -> None:
    full = tstorm("render", LISTING1, "-o", "-").stdout
    slim = tstorm("render", LISTING1, "-o", "-", "--slim").stdout
    assert len(slim) < len(full)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--namespace", ""], "nothing is given"),
        (["--agent-image", ""], "nothing is given"),
        (["--format", "compose", "--namespace", "x"], "Compose has no namespaces"),
        (["--format", "kustomize", "-o", "-"], "a kustomization is a directory"),
        (["--format", "helm"], "'helm' is not one of"),
        (["-o", ""], "the name of a directory is missing"),
    ],
)
def test_usage(arguments: list[str], reason: str) -> None:
    result = tstorm("render", "x.tdl", *arguments)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert [path.name for path in Path().iterdir()] == ["x.tdl"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--namespace", "Not_One"], "'Not_One' cannot name a namespace"),
        (["--namespace", "kube-system"], "belongs to the cluster"),
        (["--agent-image", "no image"], "is not an image"),
        (["-o", "x.tdl"], "is a file"),
        (["-o", "mine"], "mine holds 'thesis.txt', which tstorm has not rendered"),
        (["-o", "no/such/place"], "No such file or directory"),
    ],
)
def test_refused_and_nothing_written(arguments: list[str], reason: str) -> None:
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("years of work")
    before = content(".")
    assert reason in message(tstorm("render", "x.tdl", *arguments))
    assert content(".") == before


def test_a_service_without_an_image_cannot_be_rendered() -> None:
    Path("local.tdl").write_text(LOCAL)
    assert "service 'a' has no image" in message(tstorm("render", "local.tdl"))
    assert "service 'a' has no image" in message(
        tstorm("render", "local.tdl", "--format", "compose")
    )


@pytest.mark.parametrize(
    "text",
    [
        "service a img=x router\nservice b img=x\nlink a--b latency=1ms\n",
        "service a img=x\nlan l\nlink a--l latency=1ms\n",
        "node a {\n service p img=x\n}\nbridge s\nlink a.p--s latency=1ms\n",
    ],
)
def test_what_only_one_engine_does_is_refused_with_its_line(text: str) -> None:
    line = 2 if "lan" in text else 1
    Path("here.tdl").write_text(f"{text}at 2s quit\n")
    Path("below.tdl").write_text('include "here.tdl"\n')
    for form in ("yaml", "compose"):
        for source in ("here.tdl", "below.tdl"):
            said = message(tstorm("render", source, "--format", form))
            assert said.startswith(f"error: here.tdl:{line}: "), said
    assert tstorm("compile", "here.tdl", "--no-manifests").exit_code == 0
    said = message(tstorm("render", "here.plan"))
    assert said.startswith(f"error: here.plan/source.tdl:{line}: "), said
    noted = tstorm("check", "here.tdl", "--backend", "k8s").stdout
    assert f"here.tdl:{line}: Kubernetes does not carry out" in noted


def test_a_damaged_plan_is_not_rendered() -> None:
    tstorm("compile", "x.tdl")
    path = Path("x.plan/routes.bin")
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    assert "routes.bin: was changed" in message(tstorm("render", "x.plan"))
    assert not Path("x.kubernetes").exists()


def test_errors_in_a_text_have_their_place() -> None:
    Path("bad.tdl").write_text("service a img=x\n")
    result = tstorm("render", "bad.tdl")
    assert isinstance(result.exception, CommandError)
    assert "bad.tdl:1:" in result.stderr


def test_compile_without_manifests() -> None:
    assert tstorm("compile", "x.tdl", "--no-manifests").exit_code == 0
    assert not Path("x.plan/manifests").exists()
    digest = read_plan("x.plan").digest
    assert tstorm("compile", "x.tdl").exit_code == 0
    assert Path("x.plan/manifests/00-namespace.yaml").is_file()
    assert read_plan("x.plan").digest == digest
    assert tstorm("compile", "x.tdl", "--no-manifests").exit_code == 0
    assert not Path("x.plan/manifests").exists()


def test_what_others_put_into_manifests_is_not_replaced() -> None:
    tstorm("compile", "x.tdl")
    mine = Path("x.plan/manifests/90-mine.yaml")
    mine.write_text("kind: ConfigMap\n")
    assert "holds 'manifests/90-mine.yaml', which is no" in message(tstorm("compile", "x.tdl"))
    assert mine.read_text() == "kind: ConfigMap\n"


def test_compile_says_why_there_are_no_manifests() -> None:
    Path("local.tdl").write_text(LOCAL)
    result = tstorm("compile", "local.tdl")
    assert result.exit_code == 0
    assert (
        "note: the plan has no manifests for Kubernetes: service 'a' has no image" in result.stderr
    )
    assert not Path("local.plan/manifests").exists()
    assert tstorm("compile", "local.tdl", "--no-manifests").stderr == ""


def test_a_plan_with_manifests_is_used_like_any_other() -> None:
    tstorm("compile", "x.tdl")
    for command in (["events", "x.plan"], ["paths", "x.plan", "--at", "1s"]):
        assert tstorm(*command).exit_code == 0
    read_plan("x.plan").verify(deep=True)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_same_bytes_on_every_python(version: str, tmp_path: Path) -> None:
    """With this environment's libraries: they are pure Python, and so may markupsafe be."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"python{version} is not installed here")
    import click
    import jinja2
    import lark
    import markupsafe

    for module in (click, jinja2, lark, markupsafe):
        folder = Path(str(module.__file__)).parent
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(folder, tmp_path / "site" / folder.name, ignore=ignored)
    places = os.pathsep.join([str(ROOT), str(tmp_path / "site")])
    for number, form in enumerate(("kustomize", "compose")):
        target = tmp_path / f"out-{number}"
        subprocess.run(
            [python, "-m", "tstorm", "render", LISTING1, "--format", form, "-o", str(target)],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": places,
                "PYTHONHASHSEED": "77",
                "PYTHONPYCACHEPREFIX": str(tmp_path / "cache"),
            },
            check=True,
            capture_output=True,
        )
        assert tstorm("render", LISTING1, "--format", form, "-o", "here").exit_code == 0
        assert content(target) == content("here")


def test_other_commands_do_not_import_jinja2() -> None:
    """It takes longer to import than some of them to run."""
    tstorm("compile", "x.tdl")
    code = (
        "import sys; from click.testing import CliRunner; from tstorm.cli import cli\n"
        "for words in ('events x.plan', 'paths x.plan --at 1s', 'check x.tdl', '--help',\n"
        "              'render --help', 'compile x.tdl --no-manifests'):\n"
        "    assert CliRunner().invoke(cli, words.split()).exit_code == 0, words\n"
        "print('jinja2' in sys.modules, 'manifests' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "False False\n"


COMES_BACK = (
    "service a img=x\nbridge s\nlink a--s latency=1ms\n"
    "at 0s a join\nat 1s a crash\nat 2s a join\nat 9s quit\n"
)


@pytest.mark.parametrize("source", ["back.tdl", "back.plan"])
def test_a_late_rejoin_is_a_warning_with_its_place(source: str) -> None:
    Path("back.tdl").write_text(COMES_BACK)
    assert tstorm("compile", "back.tdl", "--no-manifests").stderr == ""
    result = tstorm("render", source, "-o", "-")
    assert result.exit_code == 0
    file = "back.tdl" if source == "back.tdl" else "back.plan/source.tdl"
    assert result.stderr.startswith(f"{file}:6:1: warning TS0922: 'a.0' comes back at 2s;")
    assert " 6 | at 2s a join\n" in result.stderr
    assert tstorm("render", source, "--format", "compose", "-o", "-").stderr.count("TS0922") == 0


def test_compile_warns_of_it_where_it_renders() -> None:
    Path("back.tdl").write_text(COMES_BACK)
    result = tstorm("compile", "back.tdl")
    assert result.exit_code == 0
    assert result.stderr.startswith("back.tdl:6:1: warning TS0922: ")
    assert "TS0922" in tstorm("compile", "back.tdl", "--format", "json").stdout
    assert "1 warning" in message(tstorm("compile", "back.tdl", "--strict"))
    Path("local.tdl").write_text(COMES_BACK.replace("img=x", ""))
    assert "TS0922" not in tstorm("compile", "local.tdl").stderr


def test_it_can_be_refused() -> None:
    from tstorm.loading import load_plan, show_in_cluster

    Path("back.tdl").write_text(COMES_BACK)
    tstorm("compile", "back.tdl")
    with pytest.raises(CommandError, match="error: 1 error"):
        show_in_cluster(load_plan("back.plan", None), "back.plan", refuse=True)
    show_in_cluster(load_plan("x.tdl", None), "x.tdl", refuse=True)


def test_figures_of_files_are_told_not_to_be_measured_there() -> None:
    Path("own.tdl").write_text(f'figure p99 = json a "r.json" "p99"\n{COMES_BACK}')
    assert tstorm("render", "own.tdl", "-o", "-").stderr.startswith("note: not measured: p99: in a")
    result = tstorm("check", "own.tdl", "--backend", "k8s")
    assert "TS0922" in result.stderr
    assert "own.tdl: not measured: p99: in a cluster" in result.stdout
    assert "not measured" not in tstorm("check", "own.tdl").stdout


def test_nodes_and_the_processor_of_agents() -> None:
    result = tstorm("render", "x.tdl", "--nodes", "pool=lab", "--agent-cpu", "0.5", "-o", "-")
    found = {one["kind"]: one for one in yaml.safe_load_all(result.stdout)}
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["requests"]["cpu"] == "500m"
    assert pod["affinity"] == found["StatefulSet"]["spec"]["template"]["spec"]["affinity"]
    for arguments, reason in (
        (["--nodes", "a b"], "'a b' selects no nodes"),
        (["--agent-cpu", "0"], "an agent cannot ask for 0 thousandths"),
    ):
        assert reason in message(tstorm("render", "x.tdl", *arguments))
    for option in ("--nodes", "--agent-cpu"):
        result = tstorm("render", "x.tdl", "--format", "compose", option, "1")
        assert result.exit_code == 2
        assert f"'{option}'" in result.stderr
