"""Where instances live and what joins them: the contract (base), one host, several hosts."""
