"""A configuration and a libvirt that only answers what hosts are."""

import pathlib
from xml.etree import ElementTree as ET

import pytest
from tests.fakes import guests

from kilonova.virt.libvirt import builder, cpu, storage
from kilonova.virt.libvirt.connection import Connection
from kilonova.virt.libvirt.imagecache import ImageCache
from kilonova.virt.libvirt.paths import Layout
from kilonova.virt.libvirt.qemu_img import QemuImg

CAPABILITIES = """
<capabilities><host><uuid>00000000-0000-0000-0000-00000000beef</uuid>
<cpu><arch>x86_64</arch><model>EPYC</model><vendor>AMD</vendor><topology sockets='1' cores='2' threads='2'/>
<maxphysaddr mode='emulate' bits='46'/><feature name='avx'/><feature name='svm'/></cpu>
<topology><cells><cell><cpus><cpu id='0' siblings='0-1'/></cpus></cell></cells></topology></host>
<guest><os_type>hvm</os_type><arch name='x86_64'><machine>pc</machine><machine>q35</machine>
<machine>pc-i440fx-7.2</machine><domain type='qemu'/><domain type='kvm'/></arch></guest>
<guest><os_type>hvm</os_type><arch name='aarch64'><machine>virt</machine><domain type='qemu'/></arch></guest>
</capabilities>"""

DOMAIN_CAPABILITIES = """
<domainCapabilities><os><enum name='firmware'><value>efi</value></enum>
<loader><enum name='secure'><value>yes</value><value>no</value></enum></loader></os>
<devices><disk><enum name='bus'><value>virtio</value><value>sata</value></enum></disk>
<video><enum name='modelType'><value>vga</value><value>virtio</value></enum></video></devices></domainCapabilities>"""


class StandIn:
    """A virConnect whose host never changes."""

    def getCapabilities(self):
        return CAPABILITIES

    def getLibVersion(self):
        return 9_000_000

    def getVersion(self):
        return 7_002_000

    def getDomainCapabilities(self, *_):
        return DOMAIN_CAPABILITIES

    def getCPUModelNames(self, arch):
        return ["qemu64", "Nehalem", "Skylake-Client"]

    def baselineCPU(self, xmls, flags):
        implied = {
            "EPYC": ["aes"],
            "Nehalem": ["sse4.2"],
            "Skylake-Client": ["sse4.2", "avx2", "aes"],
            "qemu64": ["sse2"],
        }
        given = ET.fromstring(xmls[0])
        names = [*implied[given.findtext("model")], *(each.get("name") for each in given.iterfind("feature"))]
        return f"<cpu>{''.join(f'<feature name={name!r}/>' for name in names)}</cpu>"


@pytest.fixture
def conf(tmp_path):
    (tmp_path / "instances").mkdir()
    return guests.configuration(instances_path=str(tmp_path / "instances"), libvirt__virt_type="qemu")


class StandInConnection(Connection):
    def __init__(self):
        super().__init__("test", "host")
        self._stand_in = StandIn()

    def get(self):
        return self._stand_in


@pytest.fixture
def connection():
    return StandInConnection()


@pytest.fixture
def layout(conf):
    return Layout(pathlib.Path(conf.instances_path), "_base")


@pytest.fixture
def make_storage(conf, layout):
    def make(fetcher=None):
        qemu_img = QemuImg(conf)
        return storage.Storage(conf, layout, ImageCache(conf, layout, fetcher, qemu_img), qemu_img)

    return make


@pytest.fixture
def make_builder(conf, connection, layout, make_storage):
    return lambda: builder.Builder(conf, connection, layout, make_storage(), cpu.Processors(conf, connection))
