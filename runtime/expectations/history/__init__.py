"""Histories of operations that clients write, and whether a model or an order explains them."""
