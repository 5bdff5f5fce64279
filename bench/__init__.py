"""Measurements of the engine and the compiler, and the demonstration (docs/performance.md)."""
