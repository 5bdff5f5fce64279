"""What must hold of a plan, and which datapath can carry it out."""
