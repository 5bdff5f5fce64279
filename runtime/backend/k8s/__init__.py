"""Hosts that are nodes of a Kubernetes cluster: pods found, agents led, what pods do logged."""
