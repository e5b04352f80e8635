"""Pod Security *restricted*, and further rules for our own pods (`faults.md` S4).

Reports each problem of a pod in one sentence. A pod that a real API server refuses in a namespace
that enforces *restricted* has a problem here. The rules are those of Kubernetes v1.35. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from compute_api_types.wire import JsonObject
from e2e.world.objects import object_at, objects_at, text_at, texts_at, value_at

# Volume types that do not expose the node.
VOLUMES: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
SAFE_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
SELINUX_TYPES: Final = frozenset(
    {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
)
SECCOMP: Final = frozenset({"RuntimeDefault", "Localhost"})
APPARMOR: Final = frozenset({"", "RuntimeDefault", "Localhost"})
HANDLERS: Final = ("httpGet", "tcpSocket")

# Takes the pod's spec and one container; returns the problem, or an empty text.
ContainerRule = Callable[[JsonObject, JsonObject], str]
PodRule = Callable[[JsonObject], str]


def find_problems(pod: JsonObject, *, is_released: bool = False) -> list[str]:
    """The problems of a pod's spec; a released one must also name its images by digest."""
    problems = [problem for rule in POD_RULES if (problem := rule(pod))]
    rules = (*CONTAINER_RULES, names_its_digest) if is_released else CONTAINER_RULES
    for container in containers_of(pod):
        name = text_at(container, "name")
        raised = (rule(pod, container) for rule in rules)
        problems += [f"container {name!r} {problem}" for problem in raised if problem]
    return problems


def containers_of(pod: JsonObject) -> Iterator[JsonObject]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from objects_at(pod, field)


def stays_off_the_host(pod: JsonObject) -> str:
    shared = [name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    return f"shares {', '.join(shared)} with its node" if shared else ""


def mounts_nothing_of_the_host(pod: JsonObject) -> str:
    strange = {key for volume in objects_at(pod, "volumes") for key in volume} - VOLUMES - {"name"}
    return f"mounts {', '.join(sorted(strange))}" if strange else ""


def bounds_its_scratch_space(pod: JsonObject) -> str:
    """Not in the standard: an emptyDir without a size limit can fill its node."""
    scratch = [volume for volume in objects_at(pod, "volumes") if "emptyDir" in volume]
    open_ended = [one for one in scratch if not value_at(one, "emptyDir", "sizeLimit")]
    names = ", ".join(text_at(volume, "name") for volume in open_ended)
    return f"has an emptyDir without a size: {names}" if names else ""


def sets_only_safe_sysctls(pod: JsonObject) -> str:
    sysctls = {text_at(one, "name") for one in objects_at(pod, "securityContext", "sysctls")}
    unsafe = sorted(sysctls - SAFE_SYSCTLS)
    return f"sets {', '.join(unsafe)}" if unsafe else ""


def is_confined(pod: JsonObject) -> str:
    return _explain_confinement(object_at(pod, "securityContext"))


def container_is_confined(_pod: JsonObject, container: JsonObject) -> str:
    return _explain_confinement(object_at(container, "securityContext"))


def _explain_confinement(context: JsonObject) -> str:
    options = object_at(context, "seLinuxOptions")
    if text_at(options, "type") not in SELINUX_TYPES or options.get("user") or options.get("role"):
        return "chooses SELinux options of its own"
    if text_at(context, "appArmorProfile", "type") not in APPARMOR:
        return "is not confined by AppArmor"
    if value_at(context, "windowsOptions", "hostProcess"):
        return "is a process of its host"
    return ""


def gains_nothing(_pod: JsonObject, container: JsonObject) -> str:
    context = object_at(container, "securityContext")
    if context.get("privileged"):
        return "is privileged"
    if context.get("allowPrivilegeEscalation") is not False:
        return "may escalate its privileges"
    if text_at(context, "procMount") not in {"", "Default"}:
        return "unmasks /proc"
    return ""


def drops_capabilities(_pod: JsonObject, container: JsonObject) -> str:
    capabilities = object_at(container, "securityContext", "capabilities")
    if "ALL" not in texts_at(capabilities, "drop"):
        return "keeps capabilities"
    if set(texts_at(capabilities, "add")) - {"NET_BIND_SERVICE"}:
        return "adds capabilities"
    return ""


def is_not_root(pod: JsonObject, container: JsonObject) -> str:
    contexts = [object_at(container, "securityContext"), object_at(pod, "securityContext")]
    if _first(contexts, "runAsNonRoot") is not True:
        return "may run as root"
    if any(context.get("runAsUser") == 0 for context in contexts):
        return "runs as user 0"
    return ""


def is_filtered(pod: JsonObject, container: JsonObject) -> str:
    own = text_at(container, "securityContext", "seccompProfile", "type")
    profile = own or text_at(pod, "securityContext", "seccompProfile", "type")
    return "" if profile in SECCOMP else "has no seccomp profile"


def takes_no_host_port(_pod: JsonObject, container: JsonObject) -> str:
    taken = any(port.get("hostPort") for port in objects_at(container, "ports"))
    return "takes a port of its node" if taken else ""


def names_no_host_in_probes(_pod: JsonObject, container: JsonObject) -> str:
    """Since v1.34: a host in a probe makes the kubelet connect to any address that a pod names."""
    probes = [
        object_at(container, f"{name}Probe", handler)
        for name in ("startup", "liveness", "readiness")
        for handler in HANDLERS
    ]
    hooks = [
        object_at(container, "lifecycle", name, handler)
        for name in ("postStart", "preStop")
        for handler in HANDLERS
    ]
    return "names a host in a probe" if any(one.get("host") for one in (*probes, *hooks)) else ""


def writes_nowhere_of_its_own(_pod: JsonObject, container: JsonObject) -> str:
    """Not in the standard."""
    writes = value_at(container, "securityContext", "readOnlyRootFilesystem") is not True
    return "can write its root file system" if writes else ""


def bounds_its_memory(_pod: JsonObject, container: JsonObject) -> str:
    """Not in the standard: a memory leak must not affect other pods of the node."""
    limits = object_at(container, "resources", "limits")
    return "" if limits.get("memory") else "has no memory limit"


def names_its_digest(_pod: JsonObject, container: JsonObject) -> str:
    pinned = "@sha256:" in text_at(container, "image")
    return "" if pinned else "names its image by a tag"


def _first(contexts: Iterable[JsonObject], field: str) -> object:
    """The value of the innermost context that sets the field."""
    return next((context[field] for context in contexts if field in context), None)


POD_RULES: Final[tuple[PodRule, ...]] = (
    stays_off_the_host,
    mounts_nothing_of_the_host,
    bounds_its_scratch_space,
    sets_only_safe_sysctls,
    is_confined,
)
CONTAINER_RULES: Final[tuple[ContainerRule, ...]] = (
    container_is_confined,
    gains_nothing,
    drops_capabilities,
    is_not_root,
    is_filtered,
    takes_no_host_port,
    names_no_host_in_probes,
    writes_nowhere_of_its_own,
    bounds_its_memory,
)
