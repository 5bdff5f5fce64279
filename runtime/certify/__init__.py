"""The certificate of a run: what its packets met, beside what the plan says."""
