"""Choose: pick hosts from a live snapshot, claim them, explain."""
