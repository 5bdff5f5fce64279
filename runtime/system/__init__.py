"""What is asked of the kernel and of the machine: netlink, namespaces, processes, limits."""
