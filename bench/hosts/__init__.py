"""Whole runs over local hosts, against the model: `python -m bench.hosts`."""
