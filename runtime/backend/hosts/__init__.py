"""A run over several hosts, an agent and a datapath on each, wherever they are."""
