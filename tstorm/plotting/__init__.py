"""Pictures of runs and experiments, by matplotlib (the extra `plot`)."""
