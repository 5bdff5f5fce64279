"""An agent's place on a node of a cluster: the process of its container, and the pods beside it."""
