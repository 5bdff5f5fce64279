"""The plan: the one contract between compiling and running. Specified in docs/plan.md.

This package imports nothing of `tdl`, of the rest of `compiler`, of `runtime` or of `manifests`.
"""
