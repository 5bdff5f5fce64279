"""The agent: one process a host, which shapes what its own instances send (docs/agent.md)."""
