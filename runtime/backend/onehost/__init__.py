"""One machine, one engine: every link of the plan is a queue of pktd."""
