"""Runs in virtual time: the driver and all of the run live under a kernel of their own, whose clock
stands still while anything runs: user-mode Linux in its time-travel mode (docs/virtual.md).
"""
