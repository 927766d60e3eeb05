"""The smallest guest: 512 bytes that print a line on the serial port and stop. Boots in a second, even emulated."""

MESSAGE = b"KILONOVA BOOTED\r\n"

_CODE = bytes.fromhex(
    "31c0"  # xor ax, ax
    "8ed8"  # mov ds, ax
    "be217c"  # mov si, message
    "ac"  # next: lodsb
    "84c0"  # test al, al
    "7412"  # jz done
    "88c3"  # mov bl, al
    "bafd03"  # mov dx, line status
    "ec"  # wait: in al, dx
    "a820"  # test al, transmitter empty
    "74fb"  # jz wait
    "baf803"  # mov dx, data
    "88d8"  # mov al, bl
    "ee"  # out dx, al
    "ebe9"  # jmp next
    "f4"  # done: hlt
    "ebfd"  # jmp done
)


def disk(size: int = 1 << 20) -> bytes:
    """A raw disk with the boot sector; a partition table must not be empty to pass for one."""
    partition = bytes([0x80, 0, 1, 0, 0x83, 0, 1, 0]) + (1).to_bytes(4, "little") + (100).to_bytes(4, "little")
    sector = (_CODE + MESSAGE + b"\0").ljust(446, b"\0") + partition.ljust(64, b"\0") + b"\x55\xaa"
    return sector.ljust(size, b"\0")
