"""A language server for editors (docs/editors.md).

editor ─JSON-RPC→ language_server.py ─text→ check_process.py (a process a text, bounded) →
checking.py (the compiler, and what it knows of the text). Files that a text names are read by
open_folder.py.
"""
