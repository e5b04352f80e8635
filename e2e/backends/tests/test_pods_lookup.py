from __future__ import annotations

import base64
import json
import time
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from compute_api_types.wire import JsonObject
from e2e.backends.pods.disruptions import expired
from e2e.backends.pods.pods import Pod, parse_pod
from e2e.backends.pods.replicas import is_rolled_out
from e2e.harness.access.certificates import a_signing_key

POD = Pod("a", "u", "10.90.0.2", "containerd://x", 0, "", is_ready=True, is_terminating=False)


def a_deployment(**status: int) -> JsonObject:
    counted = {"updatedReplicas": 1, "readyReplicas": 1, "replicas": 1, "observedGeneration": 2}
    return {
        "metadata": {"generation": 2},
        "spec": {"replicas": 1},
        "status": {**counted, **status},
    }


def test_a_deployment_that_is_as_it_should_be_is_rolled_out() -> None:
    assert is_rolled_out(a_deployment(), [POD])


@pytest.mark.parametrize(
    "status",
    [{"observedGeneration": 1}, {"readyReplicas": 0}, {"updatedReplicas": 0}, {"replicas": 2}],
    ids=str,
)
def test_what_is_not_yet_so_is_not_rolled_out(status: dict[str, int]) -> None:
    assert not is_rolled_out(a_deployment(**status), [POD])


def test_pods_of_the_old_version_are_waited_for() -> None:
    assert not is_rolled_out(a_deployment(), [POD, POD])


def test_a_deployment_without_replicas_is_rolled_out_without_counters() -> None:
    nothing: JsonObject = {
        "metadata": {"generation": 1},
        "spec": {"replicas": 0},
        "status": {"observedGeneration": 1},
    }
    assert is_rolled_out(nothing, [])


def test_a_pods_status_is_read() -> None:
    ended: JsonObject = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    pod = parse_pod(
        {
            "metadata": {"name": "a", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "status": {
                "podIP": "10.90.0.7",
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "lastTransitionTime": "2026-01-01T00:00:04Z",
                    }
                ],
                "containerStatuses": [
                    {
                        "containerID": "containerd://c",
                        "restartCount": 2,
                        "lastState": ended,
                        "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}},
                    }
                ],
            },
        }
    )
    assert pod == Pod(
        name="a",
        uid="u",
        address="10.90.0.7",
        container="containerd://c",
        restarts=2,
        last_end="OOMKilled 137",
        is_ready=True,
        is_terminating=True,
        took=timedelta(seconds=3),
    )


def test_a_pod_that_has_no_container_yet_is_read_too() -> None:
    pod = parse_pod({"metadata": {"name": "a", "uid": "u"}})
    assert (pod.container, pod.address, pod.is_ready) == ("", "", False)


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "==")


def test_an_expired_token_is_rightly_signed_and_over() -> None:
    pair = a_signing_key()
    header = base64.urlsafe_b64encode(b'{"alg":"ES256","kid":"k"}').decode().rstrip("=")
    claims = {"sub": "somebody", "aud": ["compute-hub"], "exp": int(time.time()) + 3600}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    made = expired(f"{header}.{body}.x", pair.key)
    kept, payload, signature = made.split(".")
    payload_claims = json.loads(_decoded(payload))
    assert kept == header
    assert (payload_claims["sub"], payload_claims["aud"]) == ("somebody", ["compute-hub"])
    assert payload_claims["exp"] < time.time()
    public = serialization.load_pem_public_key(pair.certificate)
    assert isinstance(public, ec.EllipticCurvePublicKey)
    raw = _decoded(signature)
    both = (int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    public.verify(
        encode_dss_signature(*both), f"{kept}.{payload}".encode(), ec.ECDSA(hashes.SHA256())
    )
