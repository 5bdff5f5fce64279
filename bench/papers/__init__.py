"""The published experiments, beside peers in the same run: `python -m bench.papers`."""
