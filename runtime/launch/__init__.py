"""The process outside: starts a run, keeps its record and directory, finds and ends runs."""
