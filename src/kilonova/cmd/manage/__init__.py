"""nova-manage, one file per command."""
