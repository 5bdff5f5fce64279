"""The kernel's datapath: tcald beside tc and pyroute2."""
