"""The run directory: its files and records, written whole, read as foreign data."""
