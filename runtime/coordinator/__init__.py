"""The coordinator: the one end of a run that speaks to every agent (docs/agent.md)."""
