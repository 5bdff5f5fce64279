// Starts `tstorm lsp` for files of TDL; what it can do is said by the server.
"use strict";
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async () => {
    const command = workspace.getConfiguration("tstorm").get("command");
    client = new LanguageClient(
        "tstorm",
        "Thunderstorm",
        { command, args: ["lsp"] },
        {
            documentSelector: [{ language: "tdl" }],
            // What a text includes or follows may change on the disk, too.
            synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.{tdl,trace,csv,yml,yaml}") },
        },
    );
    await client.start();
};

exports.deactivate = () => client?.stop();
