"""One command a file; each module has one click command named `command`.

Modules here import click and `tstorm` helpers at the top and everything else inside the command, so
that no command pays for another's imports.
"""
