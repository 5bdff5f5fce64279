"""Nodes that move: files of positions to links, their traces, and when they are up."""
