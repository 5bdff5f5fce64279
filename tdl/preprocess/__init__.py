"""What is done with a text before the parser sees a statement: let, for, include, ranges of names.

Logical lines go in, logical lines come out, so that the grammar and everything behind it knows
statements only. blocks.py finds the bodies of loops, variables.py puts values and ranges into the
words of a line, unroll.py carries out the four of them, heads.py reads their own lines.
"""
