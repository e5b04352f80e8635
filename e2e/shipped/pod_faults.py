"""Pods with one thing wrong, as data: what the evaluator must find, and a real API server must
refuse.

Each fault is one field set otherwise on a pod that is right. Those beside the standard are ours
alone; a real server has nothing against them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from compute_api_types.wire import JsonObject, JsonValue
from e2e.objects import object_at, objects_at


@dataclass(frozen=True, slots=True)
class Fault:
    """A field of a pod's spec or of a container, what it is set to, and what is then said."""

    path: str
    value: JsonValue
    said: str
    is_standard: bool = True

    @override
    def __str__(self) -> str:
        return f"{self.path}: {self.said}"

    def put_into(self, found: JsonObject) -> None:
        *parents, last = self.path.split(".")
        object_at(found, *parents)[last] = copy.deepcopy(self.value)

    def in_pod(self, pod: JsonObject) -> JsonObject:
        spoilt = copy.deepcopy(pod)
        self.put_into(spoilt)
        return spoilt

    def in_container(self, pod: JsonObject, where: str) -> JsonObject:
        """The pod with a second container, `second`, that is wrong."""
        spoilt = copy.deepcopy(pod)
        container = copy.deepcopy(objects_at(pod, "containers")[0])
        container["name"] = "second"
        self.put_into(container)
        spoilt[where] = [*objects_at(spoilt, where), container]
        return spoilt


POD_FAULTS: Final = (
    Fault("hostNetwork", True, "shares hostNetwork with its node"),
    Fault("hostPID", True, "shares hostPID with its node"),
    Fault("hostIPC", True, "shares hostIPC with its node"),
    Fault("volumes", [{"name": "x", "hostPath": {"path": "/"}}], "mounts hostPath"),
    Fault(
        "volumes",
        [{"name": "x", "emptyDir": {}}],
        "has an emptyDir without a size: x",
        is_standard=False,
    ),
    Fault(
        "securityContext.sysctls", [{"name": "kernel.msgmax", "value": "1"}], "sets kernel.msgmax"
    ),
    Fault(
        "securityContext.seLinuxOptions", {"type": "spc_t"}, "chooses SELinux options of its own"
    ),
    Fault("securityContext.appArmorProfile", {"type": "Unconfined"}, "is not confined by AppArmor"),
    Fault("securityContext.windowsOptions", {"hostProcess": True}, "is a process of its host"),
)
# Set for the pod, and wrong with each container that does not say otherwise.
INHERITED_FAULTS: Final = (
    Fault("securityContext.runAsNonRoot", False, "may run as root"),
    Fault("securityContext.runAsUser", 0, "runs as user 0"),
    Fault("securityContext.seccompProfile", {"type": "Unconfined"}, "has no seccomp profile"),
)
CONTAINER_FAULTS: Final = (
    Fault("securityContext.privileged", True, "is privileged"),
    Fault("securityContext.allowPrivilegeEscalation", True, "may escalate its privileges"),
    Fault("securityContext.procMount", "Unmasked", "unmasks /proc"),
    Fault("securityContext.capabilities", {"drop": ["KILL"]}, "keeps capabilities"),
    Fault("securityContext.capabilities", {"drop": ["ALL"], "add": ["KILL"]}, "adds capabilities"),
    Fault("securityContext.runAsNonRoot", False, "may run as root"),
    Fault("securityContext.runAsUser", 0, "runs as user 0"),
    Fault("securityContext.seccompProfile", {"type": "Unconfined"}, "has no seccomp profile"),
    Fault("securityContext.seLinuxOptions", {"user": "x"}, "chooses SELinux options of its own"),
    Fault(
        "securityContext.readOnlyRootFilesystem",
        False,
        "can write its root file system",
        is_standard=False,
    ),
    Fault("resources.limits", {}, "has no memory limit", is_standard=False),
    Fault("ports", [{"containerPort": 1, "hostPort": 1}], "takes a port of its node"),
    Fault("livenessProbe", {"httpGet": {"host": "x", "port": 1}}, "names a host in a probe"),
    Fault(
        "lifecycle", {"preStop": {"tcpSocket": {"host": "x", "port": 1}}}, "names a host in a probe"
    ),
)
