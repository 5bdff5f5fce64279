"""What nodes are beside instances and bridges: machines, routers, lans, and what moves."""
