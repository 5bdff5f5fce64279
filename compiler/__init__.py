"""From the syntax tree to the plan. Import the parts you need; this file stays empty on purpose.

The runtime imports `compiler.plan` (the artifact) and must not pull in the rest.
"""
