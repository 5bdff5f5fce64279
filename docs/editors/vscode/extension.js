// Starts `tstorm lsp` for files of TDL; what it can do is said by the server. Where it cannot start, the editor
// shows why, in the command's words.
"use strict";
const { execFile } = require("child_process");
const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const SETTING = "tstorm.command";
let client;
let turn = Promise.resolve(); // starts and stops, one after the other; it is never rejected

// Words that say what hinders the server, "" where nothing does.
const hindrance = (command) =>
    new Promise((told) => {
        execFile(command, ["lsp", "--check"], (error, _, said) => {
            if (error?.code === "ENOENT") {
                told(`there is no '${command}': pip install 'tstorm[lsp]', or set ${SETTING} to its whole path`);
            } else {
                told(error ? said.trim().replace(/^error: /, "") || error.message : "");
            }
        });
    });

async function start(fileEvents) {
    const command = workspace.getConfiguration().get(SETTING);
    const hinders = await hindrance(command);
    if (hinders) {
        // Not awaited: it stays until somebody has read it.
        window.showErrorMessage(`Thunderstorm: ${hinders}`, "Settings").then((chosen) => {
            if (chosen) {
                commands.executeCommand("workbench.action.openSettings", SETTING);
            }
        });
        return;
    }
    const begun = new LanguageClient(
        "tstorm",
        "Thunderstorm",
        { command, args: ["lsp"] },
        { documentSelector: [{ language: "tdl" }], synchronize: { fileEvents } },
    );
    try {
        await begun.start();
        client = begun;
    } catch {
        // The client has shown it.
    }
}

async function stop() {
    const ended = client;
    client = undefined;
    await ended?.stop().catch(() => {}); // one that has crashed cannot be stopped
}

exports.activate = (context) => {
    // What a text includes or follows may change on the disk, too.
    const files = workspace.createFileSystemWatcher("**/*.{tdl,trace,csv,yml,yaml}");
    const restart = () => (turn = turn.then(stop).then(() => start(files)));
    context.subscriptions.push(
        files,
        commands.registerCommand("tstorm.restart", restart),
        workspace.onDidChangeConfiguration((change) => change.affectsConfiguration(SETTING) && restart()),
    );
    return restart();
};

exports.deactivate = () => (turn = turn.then(stop));
