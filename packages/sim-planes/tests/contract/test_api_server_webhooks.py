"""Validating webhooks: reviews they get, refusals, and failures to answer."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import orjson
import pytest
import pytest_asyncio
from aiohttp import web

from compute_sim_planes.api_server.testing import (
    Api,
    a_config_map,
    a_widget,
    eventually,
    metadata_of,
    uid_of,
)
from compute_sim_planes.certificates import ServerFiles
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
Respond = Callable[[JsonObject], JsonObject]


def allow(request: JsonObject) -> JsonObject:
    del request
    return {"allowed": True}


@dataclass
class FakeWebhook:
    """A webhook that records reviews and returns a configured response."""

    url: str
    authority: bytes
    respond: Respond = allow
    delay: float = 0.0
    requests: list[JsonObject] = field(default_factory=list)

    def configuration(
        self,
        name: str,
        namespace: str,
        rules: list[JsonObject] | None = None,
        **options: JsonValue,
    ) -> JsonObject:
        webhook: JsonObject = {
            "name": f"{name}.example.com",
            "clientConfig": {
                "url": f"{self.url}/validate",
                "caBundle": base64.b64encode(self.authority).decode(),
            },
            "rules": [*(rules or [a_rule()])],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            # Other tests share a real server: only this test's namespace may be matched.
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        }
        webhook |= options
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [webhook],
        }

    async def answer(self, request: web.Request) -> web.Response:
        review: JsonObject = orjson.loads(await request.read())
        asked = object_at(review, "request")
        self.requests.append(asked)
        await asyncio.sleep(self.delay)
        response: JsonObject = {"uid": asked["uid"], **self.respond(asked)}
        answer: JsonObject = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        }
        return web.Response(body=orjson.dumps(answer), content_type="application/json")


def a_rule(*operations: str, resource: str = "widgets") -> JsonObject:
    return {
        "operations": [*(operations or ("CREATE", "UPDATE"))],
        "apiGroups": ["contract.example.com"],
        "apiVersions": ["v1"],
        "resources": [resource],
    }


@pytest_asyncio.fixture
async def webhook(server_files: ServerFiles) -> AsyncIterator[FakeWebhook]:
    fake = FakeWebhook("", server_files.authority.read_bytes())
    app = web.Application()
    app.router.add_post("/validate", fake.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_files.context())
    await site.start()
    fake.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        await runner.cleanup()


@pytest.fixture
def guard() -> str:
    """A name for a configuration that no other test uses."""
    return f"contract-{secrets.token_hex(4)}"


@pytest_asyncio.fixture
async def configured(api: Api, guard: str) -> AsyncIterator[None]:
    """Remove the configuration afterwards: on a shared server it would affect other tests."""
    yield
    await api.delete(f"{CONFIGURATIONS}/{guard}")


def distinct(webhook: FakeWebhook, field_name: str) -> list[str]:
    """Values of a field without repeats: after a stale read a real server reviews again."""
    return list(dict.fromkeys(string_at(asked, field_name) for asked in webhook.requests))


async def install(api: Api, configuration: JsonObject, webhook: FakeWebhook, widgets: str) -> None:
    """On a real server a configuration takes effect a moment after its creation."""
    (await api.post(CONFIGURATIONS, configuration)).expect(201)
    probe = a_widget("probe")

    async def asked() -> None:
        while not webhook.requests:
            await api.post(widgets, probe, dryRun="All")
            await asyncio.sleep(0.05)

    await asyncio.wait_for(asked(), 20)
    webhook.requests.clear()


@pytest.mark.usefixtures("configured")
async def test_a_webhook_is_asked_with_everything_it_needs(
    api: Api, widgets: str, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    await install(api, webhook.configuration(guard, namespace), webhook, widgets)
    made = (await api.post(widgets, a_widget(), fieldManager="us")).expect(201)
    (asked,) = webhook.requests
    gvk: JsonObject = {"group": "contract.example.com", "version": "v1", "kind": "Widget"}
    gvr: JsonObject = {"group": "contract.example.com", "version": "v1", "resource": "widgets"}
    assert asked["kind"] == asked["requestKind"] == gvk
    assert asked["resource"] == asked["requestResource"] == gvr
    assert asked["operation"] == "CREATE"
    assert asked["name"] == "one"
    assert asked["namespace"] == namespace
    assert asked["dryRun"] is False
    assert asked["oldObject"] is None
    assert string_at(asked, "userInfo", "username") == "contract-admin"
    assert object_at(asked, "options")["kind"] == "CreateOptions"
    assert object_at(asked, "options")["fieldManager"] == "us"
    shown = object_at(asked, "object")
    assert shown["spec"] == {"size": 1, "color": "red"}
    assert uid_of(shown) == uid_of(made)
    webhook.requests.clear()
    (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
    asked = webhook.requests[-1]
    assert asked["operation"] == "UPDATE"
    assert object_at(asked, "oldObject")["spec"] == {"size": 1, "color": "red"}
    assert object_at(asked, "object")["spec"] == {"size": 2, "color": "red"}


@pytest.mark.usefixtures("configured")
async def test_a_refusal_carries_the_words_of_the_webhook(
    api: Api, widgets: str, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    await install(api, webhook.configuration(guard, namespace), webhook, widgets)
    webhook.respond = lambda _: {
        "allowed": False,
        "status": {"code": 422, "reason": "Invalid", "message": "size must be even"},
    }
    refused = await api.post(widgets, a_widget())
    refused.expect(422)
    assert refused.reason == "Invalid"
    assert refused.message == (
        f'admission webhook "{guard}.example.com" denied the request: size must be even'
    )
    (await api.get(f"{widgets}/one")).expect(404)
    webhook.respond = lambda _: {"allowed": False}
    silent = await api.post(widgets, a_widget())
    silent.expect(400)
    assert silent.message == (
        f'admission webhook "{guard}.example.com" denied the request without explanation'
    )


@pytest.mark.usefixtures("configured")
async def test_warnings_reach_the_client(
    api: Api, widgets: str, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    await install(api, webhook.configuration(guard, namespace), webhook, widgets)
    webhook.respond = lambda _: {"allowed": True, "warnings": ["maxReplicas is ignored"]}
    reply = await api.post(widgets, a_widget())
    reply.expect(201)
    assert reply.warnings == ('299 - "maxReplicas is ignored"',)


@pytest.mark.usefixtures("configured")
async def test_only_the_operations_and_resources_of_its_rules_reach_a_webhook(
    api: Api, widgets: str, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    rules = [a_rule("CREATE", "DELETE")]
    await install(api, webhook.configuration(guard, namespace, rules), webhook, widgets)
    (await api.post(widgets, a_widget())).expect(201)
    (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
    (await api.merge(f"{widgets}/one/status", {"status": {"phase": "Up"}})).expect(200)
    (await api.post(f"/api/v1/namespaces/{namespace}/configmaps", a_config_map())).expect(201)
    (await api.delete(f"{widgets}/one")).expect(200)
    assert distinct(webhook, "operation") == ["CREATE", "DELETE"]
    deletion = webhook.requests[-1]
    assert deletion["object"] is None
    assert metadata_of(object_at(deletion, "oldObject"))["name"] == "one"
    assert object_at(deletion, "options")["kind"] == "DeleteOptions"


@pytest.mark.usefixtures("configured")
async def test_a_status_is_reviewed_where_the_rules_name_it(
    api: Api, widgets: str, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    rules = [a_rule("CREATE"), a_rule("UPDATE", resource="widgets/status")]
    await install(api, webhook.configuration(guard, namespace, rules), webhook, widgets)
    (await api.post(widgets, a_widget())).expect(201)
    (await api.merge(f"{widgets}/one", {"spec": {"size": 2}})).expect(200)
    (await api.merge(f"{widgets}/one/status", {"status": {"phase": "Up"}})).expect(200)
    assert distinct(webhook, "subResource") == ["", "status"]


@pytest.mark.usefixtures("configured")
async def test_selectors_narrow_what_a_webhook_sees(
    api: Api, widgets: str, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    configuration = webhook.configuration(
        guard,
        namespace,
        objectSelector={"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
    )
    await install(api, configuration, webhook, widgets)
    (await api.post(widgets, a_widget("skipped", labels={"skip": "yes"}))).expect(201)
    (await api.post(widgets, a_widget("seen"))).expect(201)
    elsewhere = widgets.replace(namespace, "default")
    (await api.post(elsewhere, a_widget(guard))).expect(201)
    (await api.delete(f"{elsewhere}/{guard}")).expect(200)
    assert distinct(webhook, "name") == ["seen"]


@pytest.mark.usefixtures("configured")
async def test_a_webhook_that_is_away_fails_the_request(
    api: Api, widgets: str, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    configuration = webhook.configuration(guard, namespace)
    client = object_at(objects_at(configuration, "webhooks")[0], "clientConfig")
    client["url"] = "https://127.0.0.1:1/validate"
    (await api.post(CONFIGURATIONS, configuration)).expect(201)
    refused = await eventually(
        lambda: api.post(widgets, a_widget(), dryRun="All"), lambda response: response.status == 500
    )
    assert refused.reason == "InternalError"
    assert refused.message.startswith(
        f'Internal error occurred: failed calling webhook "{guard}.example.com": '
        "failed to call webhook: "
    )
    assert "127.0.0.1:1" in refused.message


@pytest.mark.usefixtures("configured")
async def test_a_webhook_that_is_away_may_be_ignored(
    api: Api, widgets: str, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    configuration = webhook.configuration(guard, namespace, failurePolicy="Ignore")
    await install(api, configuration, webhook, widgets)
    webhook.respond = lambda _: {"uid": "somebody else's", "allowed": False}
    (await api.post(widgets, a_widget())).expect(201)


@pytest.mark.usefixtures("configured")
async def test_a_slow_webhook_is_not_waited_for_beyond_its_time(
    api: Api, widgets: str, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    configuration = webhook.configuration(guard, namespace, timeoutSeconds=1)
    await install(api, configuration, webhook, widgets)
    webhook.delay = 3
    refused = await api.post(widgets, a_widget())
    refused.expect(500)
    assert "context deadline exceeded" in refused.message


@pytest.mark.usefixtures("configured")
async def test_an_untrusted_certificate_is_refused(
    api: Api,
    widgets: str,
    namespace: str,
    webhook: FakeWebhook,
    guard: str,
    other_authority: bytes,
) -> None:
    webhook.authority = other_authority
    configuration = webhook.configuration(guard, namespace)
    (await api.post(CONFIGURATIONS, configuration)).expect(201)
    refused = await eventually(
        lambda: api.post(widgets, a_widget(), dryRun="All"), lambda response: response.status == 500
    )
    assert "failed to call webhook" in refused.message
    assert webhook.requests == []


@pytest.mark.usefixtures("configured")
async def test_a_configuration_comes_with_defaults(
    api: Api, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    made = (await api.post(CONFIGURATIONS, webhook.configuration(guard, namespace))).expect(201)
    (entry,) = objects_at(made, "webhooks")
    assert entry["failurePolicy"] == "Fail"
    assert entry["matchPolicy"] == "Equivalent"
    assert entry["timeoutSeconds"] == 10
    assert entry["objectSelector"] == {}
    assert objects_at(entry, "rules")[0]["scope"] == "*"


async def test_side_effects_must_be_declared(
    api: Api, namespace: str, webhook: FakeWebhook, guard: str
) -> None:
    configuration = webhook.configuration(guard, namespace)
    del objects_at(configuration, "webhooks")[0]["sideEffects"]
    refused = await api.post(CONFIGURATIONS, configuration)
    refused.expect(422)
    assert "webhooks[0].sideEffects: Required value" in refused.message
