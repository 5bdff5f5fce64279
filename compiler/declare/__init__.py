"""What a file declares, checked and expanded: names, replicas, topology, selectors, the model."""
