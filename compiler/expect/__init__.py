"""Expectations: `expect …` statements become what a run is judged by.

compile_expectations.py has the passes; subjects.py resolves names to
instances. Nothing here draws, and nothing changes an event.
"""
