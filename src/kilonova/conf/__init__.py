"""Options, one file per group, declared with the code that obeys them."""
