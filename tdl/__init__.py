"""The Thunderstorm description language: text to syntax tree, and back.

text ─lexer→ logical lines of tokens ─preprocess→ lines without let, for and include ─lalr +
grammar.lark→ actions (static, running, dynamic) → ast. What cannot be parsed is explained by
syntax_errors.py and unexpected.py, wrong values by values.py; all of it becomes diagnostics, which
presentation.py shows. formatter.py is the way back for a statement, text_layout.py for a file.
docs/tdl.md is the specification.
"""
