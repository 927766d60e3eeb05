"""libvirt/QEMU driver, one device family per file."""
