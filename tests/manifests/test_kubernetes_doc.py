"""What docs/manifests.md states is what is rendered."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from compiler.plan.types import PlanFile
from manifests import kubernetes
from manifests.bundle import Bundle
from manifests.render_options import Options
from tests.manifests.kube import ROOT, bundle_of, documents, one, rendered, service, workload
from tests.manifests.test_kubernetes_schema import VERSIONS
from tstorm.cli import cli
from tstorm.k8s.preflight import RIGHTS

TEXT = (ROOT / "docs/manifests.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of its tables, without their heads."""
    found = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in found if set("".join(row)) - set("- ")]


def words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def whole() -> Bundle:
    """Of an experiment that has objects of every kind."""
    file = PlanFile("/etc/web", 0o644, hashlib.sha256(b"").hexdigest())
    return bundle_of(service("web", files=(file,)), contents=[b""])


def test_the_versions() -> None:
    [(oldest, newest)] = re.findall(r"(1\.\d+) to (1\.\d+) by their schemas", TEXT)
    assert (oldest, newest) == (VERSIONS[0], VERSIONS[-1])


def test_the_files() -> None:
    named = [words(row[0])[0] for row in rows(section("What is rendered"))[1:]]
    files = list(kubernetes.render(whole(), Options()))
    patterns = [name.replace("NNN", r"\d{3}").replace("NAME", "web") for name in named]
    assert len(patterns) == len(files)
    for pattern, file in zip(patterns, files, strict=True):
        assert re.fullmatch(rf"{pattern}\.yaml", file)


def test_the_privileges() -> None:
    named = [words(row[0])[0] for row in rows(section("Why agents are privileged as they are"))[1:]]
    pod = one(rendered(service()), "DaemonSet", "tstorm-agent")["spec"]["template"]["spec"]
    security = pod["containers"][0]["securityContext"]
    assert set(named) == {
        *("hostPID", "allowPrivilegeEscalation", "appArmorProfile", "seLinuxOptions"),
        *security["capabilities"]["add"],
    }
    assert pod["hostPID"] is security["allowPrivilegeEscalation"] is True


def test_the_variables() -> None:
    paragraph = TEXT.partition("**Variables** ")[2].partition("\n\n")[0]
    named = [word for word in words(paragraph) if word.startswith("TSTORM_")]
    _, container = workload(rendered(service("server", entrypoint=("x",))), "server")
    stated = {entry["name"] for entry in container["env"]}
    assert set(named) == stated - {"TSTORM_ADDRESSES"} | {"TSTORM_IPV4", "TSTORM_IPV6"}


def test_components_and_names() -> None:
    components = {
        document["metadata"]["labels"]["app.kubernetes.io/component"]
        for document in documents(kubernetes.render(whole(), Options()))
    }
    [named] = [w for w in words(section("What is rendered")) if "coordinator plan" in w]
    assert set(named.split()) == components
    names = [document["metadata"]["name"] for document in rendered(service("My_Server"))]
    assert re.fullmatch(r"my-server-[0-9a-f]{8}", names[-1])


def test_a_character_that_it_says_is_refused() -> None:
    """Each end of the ranges, and not what is beside them."""
    from manifests.refusal import ManifestError

    assert "U+007F to U+009F, U+FFFE and U+FFFF" in TEXT
    for code in (0x7F, 0x9F, 0xFFFE, 0xFFFF):
        with pytest.raises(ManifestError):
            rendered(service(command=(chr(code),)))
    for code in (0x7E, 0xA0, 0xFFFD, 0x10000):
        assert rendered(service(command=(chr(code),)))


def test_its_commands_of_tstorm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page, in one directory."""
    monkeypatch.chdir(tmp_path)
    text = "service a img=x\nbridge s\nlink a--s\n"
    (tmp_path / "exp.tdl").write_text(text, encoding="utf-8")
    plain = re.sub(r"\s+", " ", section("Apply, look, remove"))
    found = re.findall(r"tstorm ((?:compile|render)[a-z. -]+?)(?: # |`)", plain)
    assert [command.split()[0] for command in found] == ["compile", "render", "render"]
    for command in found:
        result = CliRunner().invoke(cli, command.split(), catch_exceptions=False)
        assert result.exit_code == 0, (command, result.stderr)
    assert (tmp_path / "exp.plan/manifests/00-namespace.yaml").exists()
    assert 'name: "again"' in (tmp_path / "again/00-namespace.yaml").read_text(encoding="ascii")
    assert (tmp_path / "exp.kustomize/kustomization.yaml").exists()


GUIDE = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")


def test_the_first_experiment_is_what_the_guide_says_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It compiles and renders without a word, and a request takes two round trips."""
    monkeypatch.chdir(tmp_path)
    [text] = re.findall(r"```tdl\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "web.tdl").write_text(text, encoding="utf-8")
    made = CliRunner().invoke(cli, ["compile", "web.tdl"], catch_exceptions=False)
    assert (made.exit_code, made.stderr) == (0, "")
    assert (tmp_path / "web.plan/manifests/60-service-client.yaml").exists()
    [(first, later)] = re.findall(r"about ([\d.]+) s a request, from 10 s on ([\d.]+) s", GUIDE)
    for at, seconds in (("5s", first), ("12s", later)):
        asked = ["explain", "web.plan", "--from", "client", "--to", "web", "--at", at]
        told = CliRunner().invoke(cli, asked, catch_exceptions=False).stdout
        [rtt_ms] = re.findall(r"round trip (\d+)ms", told)
        assert 2 * int(rtt_ms) / 1000 == float(seconds)


def test_its_commands_have_their_options() -> None:
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL))
    found = re.findall(r"^(?:sudo )?tstorm ([^#\n]*)", blocks, re.MULTILINE)
    assert len(found) >= 8
    for line in found:
        name, *arguments = line.split(" -- ")[0].split()
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, line
        if isinstance(command, click.Group):
            command = command.commands[arguments.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in arguments if word.startswith("-")} <= known, line


def test_the_coordinator_s_rights() -> None:
    [row] = [cells for cells in rows(GUIDE) if cells[0] == "the coordinator"]
    rules = {
        (resource, verb)
        for document in rendered(service())
        if document["kind"] == "Role"
        for rule in document["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert rules == {(p, v) for p, v in [("pods/log", "get")]} | {
        ("pods", verb) for verb in ("get", "list", "watch")
    }
    first, second = row[1].split("; ")
    assert first == "get, list and watch pods of its namespace, and get their logs"
    assert "(get and create pods/exec), if the experiment has `expect run`" in second


def test_the_user_s_rights_are_those_that_are_asked_for() -> None:
    [row] = [cells[1] for cells in rows(GUIDE) if cells[0] == "you"]
    for verb, _, resource in RIGHTS:
        given = [part for part in row.split(";") if resource in part]
        of_coordinator = resource in ("pods", "pods/log") and verb != "list"
        assert of_coordinator or any(verb in words(part)[0].split() for part in given), resource
