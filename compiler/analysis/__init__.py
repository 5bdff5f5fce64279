"""Answers about plans: what an event did, why a path is as it is, how two plans differ."""
