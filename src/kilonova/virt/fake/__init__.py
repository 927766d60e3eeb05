"""A driver that behaves like a hypervisor and owns none."""
