"""Paths of a plan: the properties of links composed along a route."""
