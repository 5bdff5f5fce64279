"""Several local hosts: an agent and a datapath each."""
