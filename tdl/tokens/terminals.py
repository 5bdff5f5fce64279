"""What messages call the terminals of the grammar. An empty text: nothing to mention."""

from __future__ import annotations

from tdl.lalr_tables import END

# Properties that a statement may have, by its first terminal.
EXAMPLES = {"SERVICE": "img=nginx", "BRIDGE": "tags=core", "BRIDGES": "tags=core",
            "LAN": "tags=core",
            "AIR": "tags=core",
            "EXTERNAL": "if=eth1"}  # fmt: skip
WORDS_FOR = {
    "NAME": "a name",
    "INSTANCE": "",
    "VALUE": "a number",
    "WORD": "text",
    "STRING": "a string",
    "ENVITEM": "NAME:value",
    "TAGS": "tags=…",
    "DASH": "'--'",
    "ARROW": "'->'",
    "LABEL": "",
    "SEMI": "';'",
    "COMMA": "','",
    "OPEN": "'['",
    "CLOSE": "']'",
    "TO": "'to'",
    "AND": "'and'",
    "AT": "'at'",
    "FROM": "'from'",
    "REPLACE": "'replace'",
    "FREQ": "'freq'",
    "FLAG": "",
    END: "the end of the line",
}
