"""Every admission rule of api.md 12.3 at its borders, and the check that none is missing.

Each example starts from a valid fixture, so the errors listed are all there are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import yaml

from compute_api_types.labels import RESTARTED_AT, SSH_KEYS, WORKLOAD_NAME, WORKLOAD_UID
from compute_api_types.validation import NETWORKING_OFF, Facts, Json, Review

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compute_api_types.validation import CannotDecide, Document

SPEC: Final = Path(__file__).parents[5] / "docs" / "spec" / "api.md"

KNOWN: Final = frozenset({"DFW", "LHR", "dfw"})
FACTS: Final = Facts("acme", KNOWN, {"default": Review.ALLOWED})
KEYS: Final = f"T.metadata.annotations[{SSH_KEYS}]"
ED25519: Final = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
EXT4: Final = {"filesystem": {"type": "ext4"}}
IMAGE: Final = {"image": {"name": "datumcloud/ubuntu-2204-lts"}}
SETTINGS: Final = "P[0].scaleSettings"
TARGET: Final = "M[0].resource.target"
DISK: Final = "S.volumes[0].disk"
SIZE: Final = f"{DISK}.template.spec.resources"
MACHINE: Final = "S.runtime.virtualMachine"
NETWORK: Final = "S.networkInterfaces[0].network"
# 63 characters are the longest DNS label.
LONGEST: Final = "a" * 63


@dataclass(frozen=True)
class Example:
    """A fixture with changes, and all errors in order."""

    changes: Mapping[str, Json]
    expected: tuple[str, ...] = ()
    start: str = "sandbox"
    facts: Facts = FACTS


def vm(changes: Mapping[str, Json], *expected: str) -> Example:
    return Example(changes, expected, "vm")


def sandbox(changes: Mapping[str, Json], *expected: str) -> Example:
    return Example(changes, expected)


def with_disk(size: Json = "10Gi", populator: Json = None, **disk: Json) -> dict[str, Json]:
    """The sandbox with one attached disk."""
    spec: dict[str, Json] = {"resources": {"requests": {"storage": size}}}
    if populator is not None:
        spec["populator"] = populator
    return {
        "S.volumes": [{"name": "data", "disk": {"template": {"spec": spec}, **disk}}],
        "C.volumeAttachments": [{"name": "data"}],
    }


def with_volumes(*volumes: dict[str, Json]) -> dict[str, Json]:
    """The sandbox with volumes v0, v1 …, each attached once."""
    named: list[Json] = [{"name": f"v{number}", **volume} for number, volume in enumerate(volumes)]
    return {
        "S.volumes": named,
        "C.volumeAttachments": [{"name": f"v{number}"} for number in range(len(volumes))],
    }


def a_disk(**disk: Json) -> dict[str, Json]:
    spec: Json = {"resources": {"requests": {"storage": "10Gi"}}}
    return {"disk": {"template": {"spec": spec}, **disk}}


def with_config_map(**source: Json) -> dict[str, Json]:
    return with_volumes({"configMap": {"name": "settings", **source}})


def with_target(**target: Json) -> dict[str, Json]:
    return {
        f"{SETTINGS}.maxReplicas": 2,
        "M": [{"resource": {"name": "cpu", "target": target}}],
    }


def with_city_codes(*codes: str) -> dict[str, Json]:
    return {"P[0].cityCodes": codes}


def two_placements(first: str, second: str) -> dict[str, Json]:
    settings: Json = {"minReplicas": 1}
    return {
        "P": [
            {"name": first, "cityCodes": ["DFW"], "scaleSettings": settings},
            {"name": second, "cityCodes": ["LHR"], "scaleSettings": settings},
        ]
    }


def with_ports(*ports: Json) -> dict[str, Json]:
    return {"C.ports": ports}


def knowing(review: Review, **changes: Json) -> Example:
    wanted = {f"{NETWORK}.{name}": value for name, value in changes.items()}
    kind = "Forbidden" if review is Review.DENIED else "InternalError"
    return Example(wanted, (f"{kind} {NETWORK}",), facts=Facts("acme", KNOWN, {"default": review}))


RULES: Final[Mapping[int, Mapping[str, Example]]] = {
    1: {
        "a virtual machine without keys": vm({KEYS: None}, "Required K"),
        "a sandbox needs none": sandbox({}),
    },
    2: {
        "no colon": vm({KEYS: "ubuntu"}, "Invalid K[0]"),
        "an empty value is one line": vm({KEYS: " \n "}, "Invalid K[0]"),
        "an empty line between two": vm({KEYS: f"a:{ED25519}\n\nb:{ED25519}"}, "Invalid K[1]"),
        "blanks around the value": vm({KEYS: f"\n a:{ED25519}\n\n"}),
        "carriage returns": vm({KEYS: f"a:{ED25519}\r\nb:{ED25519}\r\n"}),
        "a sandbox may carry keys, and they are read": sandbox({KEYS: "x"}, "Invalid K[0]"),
    },
    3: {
        "no username": vm({KEYS: f":{ED25519}"}, "Required K[0]"),
        "a blank username": vm({KEYS: f"a:{ED25519}\n :{ED25519}"}, "Required K[1]"),
    },
    4: {
        "no entry": vm({KEYS: "ubuntu:"}, "Invalid K[0]"),
        "3 and 4 together": vm({KEYS: ":"}, "Required K[0]", "Invalid K[0]"),
        "options and a comment": vm({KEYS: f'ubuntu:no-pty,from="a b" {ED25519} me@home'}),
        "the second line": vm({KEYS: f"a:{ED25519}\nb:ssh-rsa AAAA"}, "Invalid K[1]"),
    },
    5: {
        "the same device name twice": sandbox(
            with_volumes(a_disk(deviceName="x"), a_disk(deviceName="x")),
            "Duplicate S.volumes[1].disk.deviceName",
        ),
        "a name that stands for another's place": sandbox(
            with_volumes(a_disk(deviceName="persistent-disk-1"), a_disk()),
            "Duplicate S.volumes[1].disk.deviceName",
        ),
        "volumes that are no disks take a name too": sandbox(
            with_volumes({"secret": {"secretName": "s"}}, a_disk(deviceName="persistent-disk-0")),
            "Duplicate S.volumes[1].disk.deviceName",
        ),
        "different names, and none at all": sandbox(
            with_volumes(a_disk(deviceName="x"), a_disk(), a_disk(deviceName=""))
        ),
    },
    6: {
        "no template, and 7 to 14 are skipped": sandbox(
            {**with_disk(), f"{DISK}.template": None}, f"Required {DISK}.template"
        )
    },
    7: {
        "another type": sandbox(
            {**with_disk(), f"{DISK}.template.spec.type": "pd-ssd"},
            f"NotSupported {DISK}.template.spec.type",
        ),
        "an empty type": sandbox(
            {**with_disk(), f"{DISK}.template.spec.type": ""},
            f"NotSupported {DISK}.template.spec.type",
        ),
        "the default": sandbox({**with_disk(), f"{DISK}.template.spec.type": "pd-standard"}),
    },
    8: {
        "another image": sandbox(
            with_disk("25Gi", {"image": {"name": "other"}}),
            f"NotSupported {DISK}.template.populator.image.name",
        ),
        "no name": sandbox(
            with_disk("25Gi", {"image": {}}), f"NotSupported {DISK}.template.populator.image.name"
        ),
        "image and filesystem together": sandbox(with_disk("25Gi", {**IMAGE, **EXT4})),
    },
    9: {
        "another filesystem": sandbox(
            with_disk(populator={"filesystem": {"type": "xfs"}}),
            f"NotSupported {DISK}.template.populator.filesystem.type",
        ),
        "no type": sandbox(
            with_disk(populator={"filesystem": {}}),
            f"NotSupported {DISK}.template.populator.filesystem.type",
        ),
    },
    10: {
        "no size and no image": sandbox({**with_disk(), SIZE: None}, f"Required {SIZE}"),
        "an image implies a size": sandbox({**with_disk(populator=IMAGE), SIZE: None}),
        "a filesystem does not": sandbox(
            {**with_disk(populator=EXT4), SIZE: None}, f"Required {SIZE}"
        ),
    },
    11: {
        "no requests": sandbox({**with_disk(), SIZE: {}}, f"Required {SIZE}.requests"),
        "not even with an image": sandbox(
            {**with_disk(populator=IMAGE), SIZE: {}}, f"Required {SIZE}.requests"
        ),
    },
    12: {
        "other keys do not count": sandbox(
            {**with_disk(), f"{SIZE}.requests": {"iops": "100"}}, "Required B(0)"
        ),
        "empty requests": sandbox({**with_disk(), f"{SIZE}.requests": {}}, "Required B(0)"),
    },
    13: {
        "zero stops there": sandbox(with_disk("0"), "Invalid B(0)"),
        "negative": sandbox(with_disk("-10Gi"), "Invalid B(0)"),
        "less than a byte below zero is zero": sandbox(with_disk("-1m"), "Invalid B(0)"),
        "too small": sandbox(with_disk("9Gi"), "Invalid B(0)"),
        "the smallest": sandbox(with_disk("10Gi")),
        "a number of bytes": sandbox(with_disk(10 * 2**30)),
        "in another unit": sandbox(with_disk("10240Mi")),
        "one byte less than the smallest": sandbox(
            with_disk(10 * 2**30 - 1), "Invalid B(0)", "Invalid B(0)"
        ),
        "a fraction of a byte is rounded up to the smallest": sandbox(with_disk("10737418239500m")),
        "a fraction of a byte is rounded up to one too many": sandbox(
            with_disk("10737418240001m"), "Invalid B(0)"
        ),
        "the largest": sandbox(with_disk("100Gi")),
        "too large": sandbox(with_disk("101Gi"), "Invalid B(0)"),
        "too large and crooked": sandbox(with_disk("100.5Gi"), "Invalid B(0)", "Invalid B(0)"),
        "decimal gigabytes": sandbox(with_disk("20G"), "Invalid B(0)"),
        "too small and crooked": sandbox(with_disk("1.5Gi"), "Invalid B(0)", "Invalid B(0)"),
    },
    14: {
        "below the image": sandbox(with_disk("24Gi", IMAGE), "Invalid B(0)"),
        "as large as the image": sandbox(with_disk("25Gi", IMAGE)),
        "13 is said first and alone": sandbox(with_disk("9Gi", IMAGE), "Invalid B(0)"),
    },
    15: {
        "all three": sandbox(
            with_volumes({**a_disk(), "configMap": {}, "secret": {}}),
            "Forbidden S.volumes[0].configMap",
            "Forbidden S.volumes[0].secret",
        ),
        "the first one is checked": sandbox(
            with_volumes({"configMap": {}, "secret": {}}),
            "Required S.volumes[0].configMap.name",
            "Forbidden S.volumes[0].secret",
        ),
    },
    16: {
        "no name": sandbox(with_config_map(name=""), "Required S.volumes[0].configMap.name"),
        "a name": sandbox(with_config_map()),
    },
    17: {
        "too large": sandbox(
            with_config_map(defaultMode=512), "Invalid S.volumes[0].configMap.defaultMode"
        ),
        "negative": sandbox(
            with_config_map(defaultMode=-1), "Invalid S.volumes[0].configMap.defaultMode"
        ),
        "the smallest": sandbox(with_config_map(defaultMode=0)),
        "the largest": sandbox(with_config_map(defaultMode=511)),
    },
    18: {
        "an item": sandbox(
            with_config_map(items=[{"key": "a", "path": "b"}]),
            "Forbidden S.volumes[0].configMap.items",
        ),
        "no item": sandbox(with_config_map(items=[])),
    },
    19: {
        "no source": sandbox(with_volumes({}), "Required S.volumes[0]"),
        "a secret is taken as it is": sandbox(with_volumes({"secret": {"items": [{}]}})),
    },
    20: {
        "no name": sandbox(
            {**with_disk(), "S.volumes[0].name": "", "C.volumeAttachments": [{"name": ""}]},
            "Required S.volumes[0].name",
        ),
        "not a label and too long": sandbox(
            {**with_disk(), "S.volumes[0].name": "A" * 64, "C.volumeAttachments[0].name": "A" * 64},
            "Invalid S.volumes[0].name",
            "Invalid S.volumes[0].name",
        ),
        "the longest": sandbox(
            {**with_disk(), "S.volumes[0].name": LONGEST, "C.volumeAttachments[0].name": LONGEST}
        ),
    },
    21: {
        "the same name twice": sandbox(
            {
                **with_volumes(a_disk(), {**a_disk(), "name": "v0"}),
                "C.volumeAttachments": [{"name": "v0"}],
            },
            "Duplicate S.volumes[1].name",
        )
    },
    22: {
        "nothing attaches it": sandbox(
            {**with_disk(), "C.volumeAttachments": []}, "Required S.volumes[0].name"
        ),
        "a second container attaches it": sandbox(
            {
                **with_disk(),
                "C.volumeAttachments": [],
                "S.runtime.sandbox.containers[1]": {
                    "name": "second",
                    "image": "i",
                    "volumeAttachments": [{"name": "data"}],
                },
            }
        ),
        "only the first of its name": sandbox(
            {**with_volumes(a_disk(), {**a_disk(), "name": "v0"}), "C.volumeAttachments": []},
            "Required S.volumes[0].name",
            "Duplicate S.volumes[1].name",
        ),
    },
    23: {
        "another type": sandbox(
            {"S.runtime.resources.instanceType": "datumcloud/d1-standard-4"},
            "NotSupported S.runtime.resources",
        ),
        "no resources at all": sandbox(
            {"S.runtime.resources": None}, "NotSupported S.runtime.resources"
        ),
    },
    24: {
        "a size": sandbox(
            {"S.runtime.resources.requests": {"cpu": "1"}}, "Forbidden S.runtime.resources.requests"
        ),
        "present and empty": sandbox(
            {"S.runtime.resources.requests": {}}, "Forbidden S.runtime.resources.requests"
        ),
    },
    25: {
        "empty": sandbox(
            {"S.runtime.sandbox.containers": []}, "Required S.runtime.sandbox.containers"
        ),
        "absent": sandbox({"S.runtime.sandbox": {}}, "Required S.runtime.sandbox.containers"),
    },
    26: {
        "no name": sandbox({"C.name": ""}, "Required C.name"),
        "not a label": sandbox({"C.name": "-a"}, "Invalid C.name"),
        "too long": sandbox({"C.name": LONGEST + "a"}, "Invalid C.name"),
        "300 characters that are no label": sandbox(
            {"C.name": "É" * 300}, "Invalid C.name", "Invalid C.name"
        ),
        "the longest": sandbox({"C.name": LONGEST}),
    },
    27: {"no image": sandbox({"C.image": ""}, "Required C.image")},
    28: {
        "limits": sandbox({"C.resources": {"limits": {"cpu": "1"}}}, "Forbidden C.resources"),
        "present and empty": sandbox({"C.resources": {}}, "Forbidden C.resources"),
    },
    29: {
        "no such volume": sandbox(
            {"C.volumeAttachments": [{"name": "gone"}]}, "NotFound C.volumeAttachments[0].name"
        ),
        "no name": sandbox(
            {"C.volumeAttachments": [{"mountPath": "/a"}]}, "NotFound C.volumeAttachments[0].name"
        ),
    },
    30: {
        "nothing to mount": sandbox(
            {**with_disk(), "C.volumeAttachments[0].mountPath": "/data"},
            "NotFound C.volumeAttachments[0].mountPath",
        ),
        "a raw device": sandbox(with_disk()),
        "a filesystem": sandbox(
            {**with_disk(populator=EXT4), "C.volumeAttachments[0].mountPath": "/data"}
        ),
        "no template": sandbox(
            {
                **with_disk(),
                f"{DISK}.template": None,
                "C.volumeAttachments[0].mountPath": "/data",
            },
            f"Required {DISK}.template",
            "InternalError C.volumeAttachments[0].mountPath",
        ),
        "files of a ConfigMap": sandbox(
            {**with_config_map(), "C.volumeAttachments[0].mountPath": "/data"}
        ),
    },
    31: {
        "the same path twice": sandbox(
            {
                **with_volumes({"secret": {}}, {"secret": {}}),
                "C.volumeAttachments[0].mountPath": "/data",
                "C.volumeAttachments[1].mountPath": "/data",
            },
            "Duplicate C.volumeAttachments[1].mountPath",
        ),
        "once in each of two containers": sandbox(
            {
                **with_volumes({"secret": {}}),
                "C.volumeAttachments[0].mountPath": "/data",
                "S.runtime.sandbox.containers[1]": {
                    "name": "second",
                    "image": "i",
                    "volumeAttachments": [{"name": "v0", "mountPath": "/data"}],
                },
            }
        ),
        "raw devices have no path": sandbox(with_volumes({"secret": {}}, {"secret": {}})),
    },
    32: {
        "no name": sandbox(
            with_ports({"port": 80}, {"port": 81}),
            *(f"Required C.ports[{index}].name" for index in (0, 1)),
        ),
        "15 characters": sandbox(with_ports({"name": "a" * 15, "port": 80})),
        "16 characters": sandbox(
            with_ports({"name": "a" * 16, "port": 80}), "Invalid C.ports[0].name"
        ),
        "other characters": sandbox(
            with_ports({"name": "hTTp", "port": 80}), "Invalid C.ports[0].name"
        ),
        "no letter": sandbox(with_ports({"name": "80", "port": 80}), "Invalid C.ports[0].name"),
        "two hyphens": sandbox(with_ports({"name": "a--b", "port": 80}), "Invalid C.ports[0].name"),
        "a hyphen first": sandbox(
            with_ports({"name": "-a", "port": 80}), "Invalid C.ports[0].name"
        ),
        "a hyphen last": sandbox(with_ports({"name": "a-", "port": 80}), "Invalid C.ports[0].name"),
        "all five at once": sandbox(
            with_ports({"name": "--" + "É" * 14, "port": 80}), *["Invalid C.ports[0].name"] * 5
        ),
        "repeated": sandbox(
            with_ports({"name": "a", "port": 80}, {"name": "a", "port": 80}),
            "Duplicate C.ports[1].name",
        ),
    },
    33: {
        "zero": sandbox(with_ports({"name": "a", "port": 0}), "Invalid C.ports[0].port"),
        "the smallest": sandbox(with_ports({"name": "a", "port": 1})),
        "the largest": sandbox(with_ports({"name": "a", "port": 65535})),
        "too large": sandbox(with_ports({"name": "a", "port": 65536}), "Invalid C.ports[0].port"),
    },
    34: {
        "after all other checks of that container": sandbox(
            {"S.runtime.sandbox.containers[1]": {"name": "container1", "ports": [{}]}},
            "Required S.runtime.sandbox.containers[1].image",
            "Required S.runtime.sandbox.containers[1].ports[0].name",
            "Invalid S.runtime.sandbox.containers[1].ports[0].port",
            "Duplicate S.runtime.sandbox.containers[1].name",
        )
    },
    35: {
        "no name": sandbox(
            {"S.runtime.sandbox.imagePullSecrets": [{"name": "a"}, {}]},
            "Required S.runtime.sandbox.imagePullSecrets[1].name",
        )
    },
    36: {
        "both, and 37 to 40 are skipped": vm(
            {
                "S.volumes": None,
                "S.runtime.sandbox.containers": [{"name": "c", "image": "i"}],
                MACHINE: {"ports": [{}]},
            },
            f"Forbidden {MACHINE}",
        )
    },
    37: {
        "nothing to boot from": vm(
            {"S.volumes": None, f"{MACHINE}.volumeAttachments": []},
            f"Required {MACHINE}.volumeAttachments",
        )
    },
    38: {
        "no such volume": vm(
            {f"{MACHINE}.volumeAttachments[1]": {"name": "gone"}},
            f"NotFound {MACHINE}.volumeAttachments[1].name",
        ),
        "nothing to mount, twice at one place": vm(
            {
                "S.volumes[1]": {"name": "data", **a_disk()},
                f"{MACHINE}.volumeAttachments[1]": {"name": "data", "mountPath": "/data"},
                f"{MACHINE}.volumeAttachments[2]": {"name": "data", "mountPath": "/data"},
            },
            f"NotFound {MACHINE}.volumeAttachments[1].mountPath",
            f"NotFound {MACHINE}.volumeAttachments[2].mountPath",
            f"Duplicate {MACHINE}.volumeAttachments[2].mountPath",
        ),
    },
    39: {
        "a secret cannot be booted": vm(
            {"S.volumes[0]": {"name": "boot", "secret": {}}},
            f"Required {MACHINE}.volumeAttachments[0].name",
        ),
        "only the first one is": vm(
            {
                "S.volumes[1]": {"name": "data", **a_disk()},
                f"{MACHINE}.volumeAttachments[1]": {"name": "data"},
            }
        ),
        "an unknown one is only not found": vm(
            {"S.volumes": None}, f"NotFound {MACHINE}.volumeAttachments[0].name"
        ),
    },
    40: {
        "as in a container": vm(
            {f"{MACHINE}.ports": [{"port": 0}]},
            f"Required {MACHINE}.ports[0].name",
            f"Invalid {MACHINE}.ports[0].port",
        )
    },
    41: {"neither": sandbox({"S.runtime.sandbox": None}, "Required S.runtime")},
    42: {
        "empty": sandbox({"S.networkInterfaces": []}, "Required S.networkInterfaces"),
    },
    43: {
        "empty": sandbox({f"{NETWORK}.name": ""}, f"Invalid {NETWORK}.name"),
        "not a label": sandbox({f"{NETWORK}.name": "a.b"}, f"Invalid {NETWORK}.name"),
        "not a label and too long": sandbox(
            {f"{NETWORK}.name": "a." * 40}, f"Invalid {NETWORK}.name", f"Invalid {NETWORK}.name"
        ),
    },
    44: {
        "denied": knowing(Review.DENIED),
        "failed": knowing(Review.FAILED),
        "the own namespace spelled out": knowing(Review.DENIED, namespace="default"),
        "no answer is a failed one": Example(
            {}, (f"InternalError {NETWORK}",), facts=Facts("acme", KNOWN, {})
        ),
        "networking off": Example({}, facts=Facts("acme", KNOWN, NETWORKING_OFF)),
    },
    45: {
        "empty": sandbox({"P": []}, "Required spec.placements"),
    },
    46: {
        "no name": sandbox({"P[0].name": ""}, "Required P[0].name"),
        "not a label and too long": sandbox(
            {"P[0].name": "A" * 64}, "Invalid P[0].name", "Invalid P[0].name"
        ),
        "the longest": sandbox({"P[0].name": LONGEST}),
    },
    47: {"no city": sandbox(with_city_codes(), "Required P[0].cityCodes")},
    48: {
        "unknown": sandbox(with_city_codes("AMS"), "NotSupported P[0].cityCodes[0]"),
        "case counts": sandbox(with_city_codes("lhr"), "NotSupported P[0].cityCodes[0]"),
        "empty": sandbox(with_city_codes("DFW", ""), "NotSupported P[0].cityCodes[1]"),
        "no city is known": Example(
            {},
            ("NotSupported P[0].cityCodes[0]",),
            facts=Facts("acme", frozenset(), {"default": Review.ALLOWED}),
        ),
    },
    49: {
        "zero": sandbox({f"{SETTINGS}.minReplicas": 0}, f"Invalid {SETTINGS}.minReplicas"),
        "absent": sandbox({SETTINGS: None}, f"Invalid {SETTINGS}.minReplicas"),
        "the smallest": sandbox({f"{SETTINGS}.minReplicas": 1}),
        "the largest": sandbox({f"{SETTINGS}.minReplicas": 1000}),
        "too large": sandbox({f"{SETTINGS}.minReplicas": 1001}, f"Invalid {SETTINGS}.minReplicas"),
    },
    50: {
        "no metrics": sandbox({f"{SETTINGS}.maxReplicas": 2}, "Required M"),
        "empty metrics": sandbox({f"{SETTINGS}.maxReplicas": 2, "M": []}, "Required M"),
        "metrics without maxReplicas are not looked at": sandbox({"M": [{}]}),
    },
    51: {
        "an empty metric": sandbox(
            {f"{SETTINGS}.maxReplicas": 2, "M": [{}, {}]},
            "Required M[0].resource",
            "Required M[1].resource",
        )
    },
    52: {
        "another resource": sandbox(
            {**with_target(averageValue=1), "M[0].resource.name": "disk"},
            "NotSupported M[0].resource.name",
        ),
        "memory": sandbox({**with_target(averageValue="512Mi"), "M[0].resource.name": "memory"}),
    },
    53: {
        "a second target is not checked": sandbox(
            with_target(averageValue=1, averageUtilization=-1),
            f"Forbidden {TARGET}.averageUtilization",
        ),
    },
    54: {
        "zero": sandbox(with_target(averageValue="0"), f"Invalid {TARGET}.averageValue"),
        "negative": sandbox(with_target(averageValue="-1m"), f"Invalid {TARGET}.averageValue"),
        "as little as there is": sandbox(with_target(averageValue="1n")),
        "an average": sandbox(with_target(averageValue="500m")),
    },
    55: {
        "zero": sandbox(with_target(averageUtilization=0), f"Invalid {TARGET}.averageUtilization"),
        "the smallest": sandbox(with_target(averageUtilization=1)),
    },
    56: {
        "an empty target": sandbox(with_target(), f"Required {TARGET}"),
        "no target": sandbox({**with_target(), TARGET: None}, f"Required {TARGET}"),
    },
    57: {
        "reserved labels, sorted": sandbox(
            {
                "T.metadata.labels": {
                    "meta.datumapis.com/z": "",
                    "app": "web",
                    WORKLOAD_UID: "",
                    WORKLOAD_NAME: "",
                    "compute.datumapis.com": "not below the prefix",
                }
            },
            f"Forbidden T.metadata.labels[{WORKLOAD_NAME}]",
            f"Forbidden T.metadata.labels[{WORKLOAD_UID}]",
            "Forbidden T.metadata.labels[meta.datumapis.com/z]",
        ),
        "the exceptions are annotations only": sandbox(
            {f"T.metadata.labels[{RESTARTED_AT}]": "x"},
            f"Forbidden T.metadata.labels[{RESTARTED_AT}]",
        ),
    },
    58: {
        "reserved annotations": sandbox(
            {
                f"T.metadata.annotations[{RESTARTED_AT}]": "now",
                f"T.metadata.annotations[{WORKLOAD_UID}]": "x",
                "T.metadata.annotations[example.net/owner]": "x",
            },
            f"Forbidden T.metadata.annotations[{WORKLOAD_UID}]",
        ),
        "after the keys": vm(
            {KEYS: "x", f"T.metadata.annotations[{WORKLOAD_UID}]": "x"},
            "Invalid K[0]",
            f"Forbidden T.metadata.annotations[{WORKLOAD_UID}]",
        ),
    },
    59: {
        "another namespace, and 44 is skipped": Example(
            {f"{NETWORK}.namespace": "other"},
            (f"Forbidden {NETWORK}.namespace",),
            facts=Facts("acme", KNOWN, {"default": Review.DENIED}),
        ),
        "after the name": sandbox(
            {NETWORK: {"name": "", "namespace": "other"}},
            f"Invalid {NETWORK}.name",
            f"Forbidden {NETWORK}.namespace",
        ),
        "the own one": sandbox({f"{NETWORK}.namespace": "default"}),
        "an empty one": sandbox({f"{NETWORK}.namespace": ""}),
    },
    60: {"present and empty": sandbox({"S.location": {}}, "Forbidden S.location")},
    61: {"present and empty": sandbox({"S.controller": {}}, "Forbidden S.controller")},
    62: {
        "seen before": sandbox(two_placements("a", "a"), "Duplicate P[1].name"),
        "empty names are only empty": sandbox(
            two_placements("", ""), "Required P[0].name", "Required P[1].name"
        ),
    },
    63: {
        "in one placement, ignoring case": sandbox(
            with_city_codes("DFW", "dfw"), "Duplicate P[0].cityCodes[1]"
        ),
        "in two placements": sandbox(
            {**two_placements("a", "b"), "P[1].cityCodes": ["LHR", "DFW"]},
            "Duplicate P[1].cityCodes[1]",
        ),
    },
    64: {
        "less": sandbox(
            {**with_target(averageValue=1), f"{SETTINGS}.minReplicas": 3},
            f"Invalid {SETTINGS}.maxReplicas",
        ),
        "equal": sandbox({**with_target(averageValue=1), f"{SETTINGS}.minReplicas": 2}),
        "49 is said alone": sandbox(
            {**with_target(averageValue=1), f"{SETTINGS}.minReplicas": 1001},
            f"Invalid {SETTINGS}.minReplicas",
        ),
    },
    65: {
        "another policy": sandbox(
            {f"{SETTINGS}.instanceManagementPolicy": "Parallel"},
            f"NotSupported {SETTINGS}.instanceManagementPolicy",
        ),
        "the one there is": sandbox({f"{SETTINGS}.instanceManagementPolicy": "OrderedReady"}),
        "empty": sandbox({f"{SETTINGS}.instanceManagementPolicy": ""}),
    },
    66: {
        "within it": sandbox({"C.env": [{"name": "E", "value": "x" * 190_000}]}),
        "more than 192 KiB": sandbox(
            {"C.env": [{"name": "E", "value": "x" * 200_000}]}, "Forbidden T"
        ),
    },
    67: {
        "alone": sandbox(with_target(value=1), f"Forbidden {TARGET}.value"),
        "the other one is checked": sandbox(
            with_target(value=1, averageValue=-1),
            f"Forbidden {TARGET}.value",
            f"Invalid {TARGET}.averageValue",
        ),
    },
    68: {
        "as many as there can be": sandbox(
            {**with_target(averageValue=1), f"{SETTINGS}.maxReplicas": 1000}
        ),
        "one more": sandbox(
            {**with_target(averageValue=1), f"{SETTINGS}.maxReplicas": 1001},
            f"Invalid {SETTINGS}.maxReplicas",
        ),
        "whatever 49 finds": sandbox(
            {
                **with_target(averageValue=1),
                f"{SETTINGS}.minReplicas": 0,
                f"{SETTINGS}.maxReplicas": 1001,
            },
            f"Invalid {SETTINGS}.minReplicas",
            f"Invalid {SETTINGS}.maxReplicas",
        ),
    },
    69: {
        "labels and annotations, sorted": sandbox(
            {
                "T.metadata.labels": {"b#": "", "a|b": "", "app": "web"},
                "T.metadata.annotations[example.net/a@b]": "x",
            },
            "Invalid T.metadata.labels[a|b]",
            "Invalid T.metadata.labels[b#]",
            "Invalid T.metadata.annotations[example.net/a@b]",
        ),
        "of a disk": sandbox(
            {
                **with_disk(),
                f"{DISK}.template.metadata": {"labels": {"a*": ""}, "annotations": {"a?": ""}},
                f"{SIZE}.requests[a|b]": "1",
            },
            f"Invalid {DISK}.template.metadata.labels[a*]",
            f"Invalid {DISK}.template.metadata.annotations[a?]",
            f"Invalid {SIZE}.requests[a|b]",
        ),
        "where the map itself is forbidden": sandbox(
            {
                "S.runtime.resources.requests": {"a|b": "1"},
                "C.resources": {"requests": {"a|b": "1"}, "limits": {"a|b": "1"}},
            },
            "Invalid S.runtime.resources.requests[a|b]",
            "Invalid C.resources.requests[a|b]",
            "Invalid C.resources.limits[a|b]",
            "Forbidden S.runtime.resources.requests",
            "Forbidden C.resources",
        ),
        "qualified names": sandbox(
            {
                "T.metadata.labels": {
                    "a": "",
                    f"{'a' * 63}": "",
                    f"example.net/A_b.c-{'d' * 50}": "",
                }
            }
        ),
        "no qualified names": sandbox(
            {"T.metadata.labels": {"": "", "a/b/c": "", "a" * 64: "", "A/b": "", "a/": ""}},
            "Invalid T.metadata.labels[]",
            "Invalid T.metadata.labels[A/b]",
            "Invalid T.metadata.labels[a/]",
            "Invalid T.metadata.labels[a/b/c]",
            f"Invalid T.metadata.labels[{'a' * 64}]",
        ),
    },
}

# What no autoscaler, or no copy in a cell, could make use of.
NOT_SCALABLE: Final[Mapping[str, Example]] = {
    "a total": sandbox(with_target(value=1), f"Forbidden {TARGET}.value"),
    "an unknown metric": sandbox(
        {**with_target(averageValue=1), "M[0].resource.name": "disk"},
        "NotSupported M[0].resource.name",
    ),
    "bounds the wrong way round": sandbox(
        {**with_target(averageValue=1), f"{SETTINGS}.minReplicas": 3},
        f"Invalid {SETTINGS}.maxReplicas",
    ),
    "more than 1000": sandbox(
        {**with_target(averageValue=1), f"{SETTINGS}.maxReplicas": 1001},
        f"Invalid {SETTINGS}.maxReplicas",
    ),
    "a map key that Karmada splits": sandbox(
        {"T.metadata.labels[a|b]": ""}, "Invalid T.metadata.labels[a|b]"
    ),
}

# Everything that 12.4 accepts on purpose, in one document.
ACCEPTED: Final[Mapping[str, Json]] = {
    **with_volumes({"secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}}),
    "C.env": [{"name": "A", "value": "1"}, {"name": "any thing"}],
    "C.command": ["sh", "-c", ""],
    "C.args": ["\n"],
    "C.volumeAttachments[0].mountPath": "not/absolute/../at all",
    "C.ports": [{"name": "http", "port": 80, "protocol": "anything"}],
    "S.runtime.sandbox.containers[1]": {
        "name": "second",
        "image": "i",
        "ports": [{"name": "http", "port": 80}],
    },
    "S.runtime.sandbox.imagePullSecrets": [{"name": "missing"}],
    f"{NETWORK}": {"name": "default"},
    "S.networkInterfaces[0].networkPolicy": {"ingress": [{"from": [{"ipBlock": {"cidr": "?"}}]}]},
}


@pytest.mark.parametrize(
    "examples", [pytest.param(RULES[number], id=f"rule-{number:02}") for number in sorted(RULES)]
)
def test_the_rule_finds_what_it_must_and_nothing_else(
    examples: Mapping[str, Example],
    build: Callable[[str, Mapping[str, Json]], Document],
    judge: Callable[[Document, Document | None, Facts], list[str] | CannotDecide],
    spell: Callable[[tuple[str, ...]], list[str]],
) -> None:
    outcomes = {
        name: judge(build(example.start, example.changes), None, example.facts)
        for name, example in examples.items()
    }
    assert outcomes == {name: spell(example.expected) for name, example in examples.items()}


@pytest.mark.spec("AS-17")
@pytest.mark.parametrize("name", NOT_SCALABLE)
def test_settings_that_cannot_be_autoscaled_are_refused_and_stay_editable_where_stored(
    name: str,
    build: Callable[[str, Mapping[str, Json]], Document],
    judge: Callable[[Document, Document | None, Facts], list[str] | CannotDecide],
    spell: Callable[[tuple[str, ...]], list[str]],
) -> None:
    example = NOT_SCALABLE[name]
    wanted = build(example.start, example.changes)
    assert judge(wanted, None, example.facts) == spell(example.expected)
    edited = build(example.start, {**example.changes, "C.image": "registry.example.net/new:2"})
    assert judge(edited, wanted, example.facts) == []


def test_what_is_deliberately_accepted_is_accepted(
    build: Callable[[str, Mapping[str, Json]], Document],
    judge: Callable[[Document, Document | None, Facts], list[str] | CannotDecide],
) -> None:
    assert judge(build("sandbox", ACCEPTED), None, FACTS) == []


def test_the_workload_of_the_specification_is_admitted(
    judge: Callable[[Document, Document | None, Facts], list[str] | CannotDecide],
) -> None:
    examples = SPEC.read_text("utf-8").partition("\n## 17. ")[2]
    document: Document = yaml.safe_load(examples.partition("```yaml\n")[2].partition("```")[0])
    assert document["kind"] == "Workload"
    assert judge(document, None, FACTS) == []


def test_errors_come_in_the_order_of_evaluation(
    build: Callable[[str, Mapping[str, Json]], Document],
    judge: Callable[[Document, Document | None, Facts], list[str] | CannotDecide],
    spell: Callable[[tuple[str, ...]], list[str]],
) -> None:
    broken: dict[str, Json] = {
        "P[0].name": "",
        "P[0].cityCodes": ["AMS", "AMS", "LHR"],
        f"{SETTINGS}.instanceManagementPolicy": "Parallel",
        f"{SETTINGS}.minReplicas": 3,
        f"{SETTINGS}.maxReplicas": 2,
        "S.controller": {},
        "S.location": {},
        "S.networkInterfaces": [{}, {"network": {"name": "b", "namespace": "other"}}],
        "C.image": "",
        "S.runtime.resources.requests": {},
        "S.volumes": [{}],
        f"T.metadata.labels[{WORKLOAD_UID}]": "x",
        KEYS: "x",
    }
    expected = (
        "Invalid K[0]",
        f"Forbidden T.metadata.labels[{WORKLOAD_UID}]",
        "Required S.volumes[0]",
        "Required S.volumes[0].name",
        "Required S.volumes[0].name",
        "Forbidden S.runtime.resources.requests",
        "Required C.image",
        "Invalid S.networkInterfaces[0].network.name",
        "Forbidden S.networkInterfaces[1].network.namespace",
        "Forbidden S.location",
        "Forbidden S.controller",
        "Required P[0].name",
        "NotSupported P[0].cityCodes[0]",
        "NotSupported P[0].cityCodes[1]",
        "Duplicate P[0].cityCodes[1]",
        f"Invalid {SETTINGS}.maxReplicas",
        f"NotSupported {SETTINGS}.instanceManagementPolicy",
        "Required M",
    )
    assert judge(build("sandbox", broken), None, FACTS) == spell(expected)


def test_every_rule_of_the_specification_has_a_test() -> None:
    section = SPEC.read_text("utf-8").partition("\n### 12.3 ")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| ([0-9, ]+) \|", section, re.MULTILINE)
    numbers = [int(number) for row in rows for number in row.split(",")]
    assert sorted(numbers) == sorted(RULES)
    assert len(numbers) == 69
