"""Builds the syntax tree from the tokens of one statement."""
