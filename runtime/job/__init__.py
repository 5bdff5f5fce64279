"""What runs in the coordinator's pod: the Job that leads a run in a cluster, and its commands."""
