"""All hosts in memory, kept up to date by what changed."""
