"""Container images on one machine: fetched, unpacked and kept by digest, and what they start."""
