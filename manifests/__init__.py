"""A plan as files for Kubernetes and Compose. Knows the plan and jinja2, nothing above them.

Input: a Bundle (manifests/bundle.py) and Options. Output: texts by file name; the same plan and
options give the same bytes everywhere. Rendering looks at no machine and at no cluster.
"""
