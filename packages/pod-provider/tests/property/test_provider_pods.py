"""Whatever an Instance contains, its Pod cannot reach the node."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider_builders.documents import NOW, OPTIONS, TYPE, an_instance

from compute_api_types.quantity import parse_quantity
from compute_api_types.sizes import CATALOGUE
from compute_api_types.wire import JsonObject, JsonValue
from compute_pod_provider.instance_facts import objects_at, read_instance
from compute_pod_provider.options import PodOptions
from compute_pod_provider.plan import Memory, Observed, plan
from compute_pod_provider.pod_facts import NO_POD, read_pod
from compute_pod_provider.render import render
from compute_pod_provider.render.refusal import Refusal

WORDS = st.sampled_from(["a", "b-1", "", "hostPath", "x" * 300, "spec.nodeName", "\x00"])
JUNK: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
AMOUNTS = st.sampled_from(["100m", "0.3", "1", "64Mi", "1Gi", "3Gi", "junk", "-1"])
CONTAINERS = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b", "c"]), "image": WORDS},
    optional={
        "securityContext": st.just({"privileged": True, "capabilities": {"add": ["ALL"]}}),
        "resources": st.fixed_dictionaries(
            {}, optional={"limits": st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNTS)}
        ),
        "ports": st.just([{"name": "p", "port": 80, "hostPort": 80}]),
        "env": st.just([{"name": "A", "value": "1"}]) | JUNK,
        "volumeAttachments": st.just([{"name": "v", "mountPath": "/v"}]) | JUNK,
    },
)
SOURCES: list[JsonObject] = [
    {"name": "v", "hostPath": {"path": "/"}, "configMap": {"name": "c"}},
    {"name": "v", "hostPath": {"path": "/"}},
    {"name": "s", "secret": {"secretName": "s"}},
    {"name": "d", "disk": {"template": {"spec": {}}}},
]
VOLUMES = st.lists(st.sampled_from(SOURCES), max_size=2)


@st.composite
def specs(draw: st.DrawFn) -> JsonObject:
    containers = draw(st.lists(CONTAINERS, max_size=4, unique_by=lambda one: str(one["name"])))
    spec = cast(
        "JsonObject",
        {
            "runtime": {
                "resources": {"instanceType": draw(st.sampled_from([TYPE, TYPE, "other"]))},
                "sandbox": {
                    "containers": containers,
                    "hostNetwork": True,
                },
            },
            "networkInterfaces": [{"network": {"name": "n"}}],
            "volumes": draw(VOLUMES),
            "hostNetwork": True,
            "serviceAccountName": "admin",
        },
    )
    if draw(st.booleans()):
        spec[draw(st.sampled_from(["runtime", "controller", "volumes"]))] = draw(JUNK)
    return spec


ALLOWED = {
    *("restartPolicy", "terminationGracePeriodSeconds", "automountServiceAccountToken"),
    *("enableServiceLinks", "securityContext", "containers", "hostname", "imagePullSecrets"),
    *("volumes", "hostUsers"),
}


@pytest.mark.spec("PP-02")
@given(spec=specs(), options=st.sampled_from([OPTIONS, PodOptions(is_restricted=False)]))
def test_no_instance_renders_to_a_host_setting(spec: JsonObject, options: PodOptions) -> None:
    rendered = render(read_instance(an_instance(spec=spec)), options)
    if isinstance(rendered, Refusal):
        return
    pod = rendered["spec"]
    assert isinstance(pod, dict)
    assert set(pod) <= ALLOWED
    assert pod["automountServiceAccountToken"] is False
    for volume in objects_at(pod, "volumes"):
        assert set(volume) - {"name"} <= {"configMap", "secret", "emptyDir"}
    used = {"cpu": Fraction(0), "memory": Fraction(0)}
    for container in objects_at(pod, "containers"):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "capabilities": {"drop": ["ALL"]},
        }
        for port in objects_at(container, "ports"):
            assert set(port) == {"name", "containerPort", "protocol"}
        resources = container["resources"]
        assert isinstance(resources, dict)
        limits = resources["limits"]
        assert limits == resources["requests"]
        assert isinstance(limits, dict)
        for name in used:
            used[name] += parse_quantity(limits[name])
    size = CATALOGUE[TYPE]
    assert used["cpu"] <= Fraction(size.millicores, 1000)
    assert used["memory"] <= size.mebibytes * 2**20


@pytest.mark.spec("PP-33")
@given(spec=JUNK, status=JUNK, pod=st.dictionaries(WORDS, JUNK))
def test_no_document_breaks_a_pass(spec: JsonValue, status: JsonValue, pod: JsonObject) -> None:
    instance = an_instance() | {"spec": spec, "status": status}
    found = read_pod(pod | {"status": status})
    for seen in (NO_POD, found):
        plan(Observed(read_instance(instance), seen, NOW), Memory(), OPTIONS)
