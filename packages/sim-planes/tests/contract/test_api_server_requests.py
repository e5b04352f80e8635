"""Malformed requests: bodies, formats, sizes, methods, paths."""

from __future__ import annotations

import pytest
import yaml

from compute_sim_planes.api_server.testing import Api, a_config_map, a_widget
from compute_sim_planes.json_types import JsonObject

MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize("body", [b"{nonsense", b"[]", b'"text"', b"\xff\xfe"])
async def test_a_body_that_is_no_object_is_a_bad_request(
    api: Api, widgets: str, body: bytes
) -> None:
    refused = await api.send("POST", widgets, body)
    refused.expect(400)
    assert refused.reason == "BadRequest"
    assert refused.message.startswith(
        "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; "
    )


async def test_another_kind_or_version_in_the_body_is_refused(api: Api, widgets: str) -> None:
    refused = await api.post(widgets, {**a_widget(), "apiVersion": "other/v1"})
    refused.expect(400)
    assert refused.message == (
        "the API version in the data (other/v1) does not match the expected API version "
        "(contract.example.com/v1)"
    )
    mismatched = await api.post(widgets, {**a_widget(), "kind": "Gadget"})
    mismatched.expect(422)
    assert mismatched.message == (
        'Gadget.contract.example.com "one" is invalid: kind: Invalid value: "Gadget": '
        "must be Widget"
    )


async def test_objects_may_be_sent_as_yaml(api: Api, widgets: str) -> None:
    text = yaml.safe_dump(a_widget(spec={"size": 3})).encode()
    reply = await api.send("POST", widgets, text, "application/yaml")
    assert reply.expect(201)["spec"] == {"size": 3, "color": "red"}


async def test_other_formats_are_not_read(api: Api, widgets: str) -> None:
    refused = await api.send("POST", widgets, b"<widget/>", "text/xml")
    refused.expect(415)
    assert refused.reason == "UnsupportedMediaType"
    (await api.post(widgets, a_widget())).expect(201)
    (await api.send("PATCH", f"{widgets}/one", {"spec": {}}, "application/json")).expect(415)


async def test_other_formats_are_not_written(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    refused = await api.with_headers(Accept="text/html").get(f"{widgets}/one")
    refused.expect(406)
    assert refused.reason == "NotAcceptable"


async def test_a_body_beyond_three_mebibytes_is_too_large(api: Api, widgets: str) -> None:
    refused = await api.post(widgets, a_widget(annotations={"a": "x" * (3 * MEBIBYTE + 1)}))
    refused.expect(413)
    assert refused.reason == "RequestEntityTooLarge"
    assert refused.message == f"Request entity too large: limit is {3 * MEBIBYTE}"


async def test_an_object_beyond_one_and_a_half_mebibytes_is_not_stored(
    api: Api, widgets: str
) -> None:
    """A real server passes on the error of etcd as a 500; the simulated one answers 413."""
    free: JsonObject = {"text": "x" * (MEBIBYTE * 8 // 5)}
    refused = await api.post(widgets, a_widget(spec={"size": 1, "free": free}))
    refused.expect(413, 500)
    assert "too large" in refused.message
    (await api.get(f"{widgets}/one")).expect(404)


async def test_annotations_have_a_limit_of_their_own(api: Api, widgets: str) -> None:
    refused = await api.post(widgets, a_widget(annotations={"a": "x" * (256 * 1024 + 1)}))
    refused.expect(422)
    assert "metadata.annotations: Too long: may not be more than 262144 bytes" in refused.message


async def test_deep_nesting_is_stored_or_refused_but_never_ends_the_server(
    api: Api, widgets: str
) -> None:
    for depth, statuses in ((200, (201,)), (20_000, (400,))):
        body = (
            (
                b'{"apiVersion":"contract.example.com/v1","kind":"Widget","metadata":{"name":"deep-%d"},'
                b'"spec":{"size":1,"free":' % depth
            )
            + b'{"a":' * depth
            + b"1"
            + b"}" * depth
            + b"}}"
        )
        (await api.send("POST", widgets, body)).expect(*statuses)
    (await api.get("/healthz")).expect(200)


async def test_a_method_a_path_does_not_take_is_refused(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    refused = await api.delete(f"{widgets}/one/status")
    refused.expect(405)
    assert refused.reason == "MethodNotAllowed"
    assert refused.message == (
        'delete is not supported on resources of kind "widgets.contract.example.com"'
    )


async def test_a_method_a_built_in_kind_does_not_take_is_refused(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    refused = await api.put(path, a_config_map())
    refused.expect(405)
    assert refused.message == "the server does not allow this method on the requested resource"


async def test_unknown_paths_are_plain_text(api: Api) -> None:
    for path in (
        "/apis/nobody.example.com/v1/things",
        "/apis/nobody.example.com",
        "/apis/contract.example.com/v9/widgets",
        "/nonsense",
    ):
        refused = await api.get(path)
        assert refused.status == 404
        assert refused.raw == b"404 page not found\n"


async def test_an_unknown_resource_of_a_built_in_group_is_a_status(api: Api) -> None:
    refused = await api.get("/api/v1/nonsense")
    refused.expect(404)
    assert refused.message == "the server could not find the requested resource"
    assert refused.details == {}


async def test_an_unknown_subresource_is_not_found(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    (await api.get(f"{widgets}/one/scale")).expect(404)


async def test_an_escaped_slash_does_not_reach_another_object(api: Api, widgets: str) -> None:
    (await api.post(widgets, a_widget())).expect(201)
    (await api.get(f"{widgets}/one%2Fother")).expect(404)
    (await api.get(f"{widgets}/%2e%2e")).expect(404)


async def test_health_endpoints_answer_ok(api: Api) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        reply = await api.get(path)
        assert (reply.status, reply.raw) == (200, b"ok")
