"""Topologies that are programs: a Python file that describes one is loaded in a process without
rights (load_topology.py), in which mininet_stand_in.py stands for Mininet's package."""
