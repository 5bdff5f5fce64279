"""Carries a plan out. Knows the plan and the machine, never the language."""
