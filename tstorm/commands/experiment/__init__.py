"""Commands about an experiment before it runs."""
