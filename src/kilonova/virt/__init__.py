"""The virt driver interface and its drivers."""
