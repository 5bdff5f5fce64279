"""Files of other tools, read as TDL.

A reader takes a file's text to a Translation (tdl/preprocess/translated.py): statements whose words
have their places in that file. So an `include` of such a file, `tstorm run` of it and what `tstorm
import` prints go through one grammar and one set of checks. A reader is a row of readers.py.
yaml_tree.py reads YAML within bounds; compose/ has the reader of Compose files
(docs/from-compose.md).
"""
