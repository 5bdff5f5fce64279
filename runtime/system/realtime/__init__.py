"""The real-time class, timers and clocks."""
