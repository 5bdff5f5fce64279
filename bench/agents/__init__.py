"""What agents and the coordinator compute and say, without namespaces."""
