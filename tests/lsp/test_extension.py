"""The extension for VS Code: what its package names is there, and what it does with the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tdl.tokens.textmate import grammar
from tests.page.browser import Browser

pytestmark = pytest.mark.e2e

EXTENSION = Path(__file__).parents[2] / "docs/editors/vscode"
PACKAGE = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
LANGUAGE = PACKAGE["contributes"]["languages"][0]["id"]

# The editor, the language client and the command in its place, and what became of them.
STAND_INS = """async (source, settings, answers, changes) => {
    const saw = { checked: [], servers: [], stopped: 0, shown: [], commands: [] };
    let changed;
    const modules = {
        child_process: {
            execFile: (command, words, told) => {
                saw.checked.push([command, ...words]);
                const answer = answers.shift();
                told(answer.error ?? null, "", answer.said ?? "");
            },
        },
        vscode: {
            commands: { registerCommand: (name) => saw.commands.push(name) },
            window: { showErrorMessage: (words) => (saw.shown.push(words), Promise.resolve()) },
            workspace: {
                getConfiguration: () => ({ get: (name) => settings[name] }),
                createFileSystemWatcher: () => ({}),
                onDidChangeConfiguration: (called) => { changed = called; },
            },
        },
        "vscode-languageclient/node": {
            LanguageClient: class {
                constructor(id, name, server, client) {
                    saw.servers.push({ ...server, ...client });
                }
                async start() {}
                async stop() { saw.stopped += 1; }
            },
        },
    };
    const extension = {};
    new Function("require", "exports", source)((name) => modules[name], extension);
    await extension.activate({ subscriptions: [] });
    for (const one of changes) await changed({ affectsConfiguration: (name) => name === one });
    await extension.deactivate();
    return saw;
}"""


def activated(browser: Browser, answers: list[Any], changes: tuple[str, ...] = ()) -> Any:
    """What happened from the extension's start to its end. `answers` of the command to `--check`,
    `changes` of settings in between."""
    settings = PACKAGE["contributes"]["configuration"]["properties"]
    told = (
        (EXTENSION / "extension.js").read_text(encoding="utf-8"),
        {setting: one["default"] for setting, one in settings.items()},
        answers,
        list(changes),
    )
    return browser.run(f"({STAND_INS})({', '.join(map(json.dumps, told))})")


def test_the_package_has_what_it_names() -> None:
    contributed = PACKAGE["contributes"]
    bundled = re.fullmatch(
        r"esbuild (\S+) --bundle .*--external:vscode --outfile=(\S+)",
        PACKAGE["scripts"]["vscode:prepublish"],
    )
    assert bundled
    assert PACKAGE["main"] == f"./{bundled[2]}"
    named = [
        bundled[1],
        *(one["configuration"] for one in contributed["languages"]),
        *(one["path"] for one in contributed["grammars"]),
    ]
    assert [name for name in named if not (EXTENSION / name).exists()] == []
    json.loads((EXTENSION / "language-configuration.json").read_text(encoding="utf-8"))
    assert contributed["grammars"] == [
        {
            "language": LANGUAGE,
            "scopeName": grammar()["scopeName"],
            "path": "./syntaxes/tdl.tmLanguage.json",
        }
    ]


def test_what_is_needed_has_one_version() -> None:
    """Whoever packs it packs the same: there is no file of locks."""
    needed = {**PACKAGE["dependencies"], **PACKAGE["devDependencies"]}
    assert [one for one in needed.values() if not re.fullmatch(r"\d+\.\d+\.\d+", one)] == []


def test_the_server_is_started_for_the_language_and_ended(browser: Browser) -> None:
    saw = activated(browser, [{}])
    assert saw["checked"] == [["tstorm", "lsp", "--check"]]
    [server] = saw["servers"]
    assert (server["command"], server["args"]) == ("tstorm", ["lsp"])
    assert server["documentSelector"] == [{"language": LANGUAGE}]
    assert (saw["stopped"], saw["shown"]) == (1, [])
    assert saw["commands"] == [one["command"] for one in PACKAGE["contributes"]["commands"]]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"error": {"code": "ENOENT"}}, "there is no 'tstorm': pip install 'tstorm[lsp]'"),
        ({"error": {"code": 3}, "said": "error: it needs x\nhint: y\n"}, "it needs x\nhint: y"),
        ({"error": {"code": "EACCES", "message": "spawn EACCES"}}, "spawn EACCES"),
    ],
)
def test_what_hinders_it_is_shown_and_a_changed_setting_tries_again(
    browser: Browser, answer: dict[str, Any], shown: str
) -> None:
    saw = activated(browser, [answer])
    assert saw["servers"] == []
    assert [one.startswith(f"Thunderstorm: {shown}") for one in saw["shown"]] == [True]
    again = activated(browser, [answer, {}, {}], ("files.eol", "tstorm.command", "tstorm.command"))
    assert (len(again["servers"]), again["stopped"], len(again["shown"])) == (2, 2, 1)
