"""What virtual time is measured by: runs that repeat to the last byte, and their real time."""
