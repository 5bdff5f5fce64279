"""The process inside a run's namespaces that carries the plan out."""
