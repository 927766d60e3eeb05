"""Domain XML as data: one dataclass per element, each knows its own form.

Source: libvirt's domain XML format (formatdomain).
"""
