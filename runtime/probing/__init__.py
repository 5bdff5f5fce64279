"""Light probes between the instances of a run: which pairs, how often, and what became of them."""
