"""Expectations: `expect …` statements become what a run is judged by.

expectations.py is the pass; subjects.py resolves names to instances, presence.py knows when these
are there. Nothing here draws, and nothing changes an event.
"""
