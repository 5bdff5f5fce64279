"""Making and keeping the kernel for virtual time: user-mode Linux with our configuration.

`config` says what is in it, `patches/` what we change in its own files (in the order of `series`),
`added/` which files we put beside them.
"""
