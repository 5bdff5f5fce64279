"""`--backend k8s`: applies an experiment to a cluster, follows its run, mirrors its results.

The run itself is led inside the cluster (runtime.job); what is here may be killed at any time.
The client `kubernetes` is an optional extra, imported by connection.py and podexec.py when used.
"""
