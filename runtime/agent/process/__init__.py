"""The agent as a process: options, orders of the coordinator, one run."""
