"""Files of other tools, read as TDL.

A reader takes a file's text to a Translation (tdl/preprocess/translated.py): statements whose words
have their places in that file. So an `include` of such a file, `tstorm run` of it and what `tstorm
import` prints go through one grammar and one set of checks. A reader is a row of readers.py.
yaml_tree.py and xml_tree.py read within bounds, with places; written.py says how TDL writes words,
element_names.py what things may be called. compose/ has the reader of Compose files
(docs/from-compose.md), topologies/ all others (docs/import.md).
"""
