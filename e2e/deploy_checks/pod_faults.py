"""Pods with one fault each, as data: the evaluator must find it and a real API server refuse it.

Each fault is one changed field of a valid pod. Faults beyond the standard are our own rules; a real
server accepts them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from compute_api_types.wire import JsonObject, JsonValue
from e2e.world.objects import object_at, objects_at


@dataclass(frozen=True, slots=True)
class PodFault:
    """A field of a pod's spec or of a container, its wrong value, and the reported problem."""

    path: str
    value: JsonValue
    problem: str
    is_standard: bool = True

    @override
    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"

    def put_into(self, pod: JsonObject) -> None:
        *parents, last = self.path.split(".")
        object_at(pod, *parents)[last] = copy.deepcopy(self.value)

    def in_pod(self, pod: JsonObject) -> JsonObject:
        faulty = copy.deepcopy(pod)
        self.put_into(faulty)
        return faulty

    def in_container(self, pod: JsonObject, where: str) -> JsonObject:
        """The pod with a second, faulty container `second`."""
        faulty = copy.deepcopy(pod)
        container = copy.deepcopy(objects_at(pod, "containers")[0])
        container["name"] = "second"
        self.put_into(container)
        faulty[where] = [*objects_at(faulty, where), container]
        return faulty


POD_FAULTS: Final = (
    PodFault("hostNetwork", True, "shares hostNetwork with its node"),
    PodFault("hostPID", True, "shares hostPID with its node"),
    PodFault("hostIPC", True, "shares hostIPC with its node"),
    PodFault("volumes", [{"name": "x", "hostPath": {"path": "/"}}], "mounts hostPath"),
    PodFault(
        "volumes",
        [{"name": "x", "emptyDir": {}}],
        "has an emptyDir without a size: x",
        is_standard=False,
    ),
    PodFault(
        "securityContext.sysctls", [{"name": "kernel.msgmax", "value": "1"}], "sets kernel.msgmax"
    ),
    PodFault(
        "securityContext.seLinuxOptions", {"type": "spc_t"}, "chooses SELinux options of its own"
    ),
    PodFault(
        "securityContext.appArmorProfile", {"type": "Unconfined"}, "is not confined by AppArmor"
    ),
    PodFault("securityContext.windowsOptions", {"hostProcess": True}, "is a process of its host"),
)
# Set for the pod; a fault of each container that does not override it.
INHERITED_FAULTS: Final = (
    PodFault("securityContext.runAsNonRoot", False, "may run as root"),
    PodFault("securityContext.runAsUser", 0, "runs as user 0"),
    PodFault("securityContext.seccompProfile", {"type": "Unconfined"}, "has no seccomp profile"),
)
CONTAINER_FAULTS: Final = (
    PodFault("securityContext.privileged", True, "is privileged"),
    PodFault("securityContext.allowPrivilegeEscalation", True, "may escalate its privileges"),
    PodFault("securityContext.procMount", "Unmasked", "unmasks /proc"),
    PodFault("securityContext.capabilities", {"drop": ["KILL"]}, "keeps capabilities"),
    PodFault(
        "securityContext.capabilities", {"drop": ["ALL"], "add": ["KILL"]}, "adds capabilities"
    ),
    PodFault("securityContext.runAsNonRoot", False, "may run as root"),
    PodFault("securityContext.runAsUser", 0, "runs as user 0"),
    PodFault("securityContext.seccompProfile", {"type": "Unconfined"}, "has no seccomp profile"),
    PodFault("securityContext.seLinuxOptions", {"user": "x"}, "chooses SELinux options of its own"),
    PodFault(
        "securityContext.readOnlyRootFilesystem",
        False,
        "can write its root file system",
        is_standard=False,
    ),
    PodFault("resources.limits", {}, "has no memory limit", is_standard=False),
    PodFault("ports", [{"containerPort": 1, "hostPort": 1}], "takes a port of its node"),
    PodFault("livenessProbe", {"httpGet": {"host": "x", "port": 1}}, "names a host in a probe"),
    PodFault(
        "lifecycle", {"preStop": {"tcpSocket": {"host": "x", "port": 1}}}, "names a host in a probe"
    ),
)
