"""Routes and plans of large networks, beside what libraries do."""
