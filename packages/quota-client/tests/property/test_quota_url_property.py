"""Whatever a tenant calls things, a request stays under its project's own prefix."""

import asyncio

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute_quota_client import (
    Claim,
    QuotaClient,
    QuotaProjectNotFoundError,
    QuotaSettings,
    QuotaUsageError,
    project_ref,
)
from compute_quota_client._urls import plane_urls
from compute_quota_client.testing import SERVER

# Mostly what could lead a path astray, some ordinary names, and any text at all.
TRICKY = st.sampled_from(
    [
        *("", ".", "..", "../..", "%2e%2e", "%2f", "a/b", "a%2Fb", "/", "//", "?", "a?b=c", "#"),
        *("a#b", "\\", "a\\b", "\n", "a\n", "\x00", "å", "ⓐ", "．．", "a.b", "a..b", "-", "A"),
        *(" ", "a b", ";", "@", "a@b", ":", "http://x", "xn--a", "default"),
        *("a" * 63, "a" * 64, "a" * 253, "a" * 254),
    ]
)
NAMES = (
    TRICKY
    | st.text(max_size=12)
    | st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?", fullmatch=True)
    | st.lists(TRICKY, min_size=2, max_size=4).map("/".join)
)
SETTINGS = st.sampled_from(
    [
        QuotaSettings(),
        QuotaSettings(base_path="/gate/milo"),
        QuotaSettings(plane="direct"),
        QuotaSettings(plane="direct", base_path="/gate"),
    ]
)


def prefix_of(settings: QuotaSettings, project: str) -> str:
    base = settings.base_path
    if settings.plane == "direct":
        return base
    return f"{base}/apis/resourcemanager.miloapis.com/v1alpha1/projects/{project}/control-plane"


@pytest.mark.spec("Q-03", "S14")
@given(SETTINGS, NAMES, NAMES, NAMES)
def test_any_names_make_a_usage_error_or_a_path_under_the_prefix(
    settings: QuotaSettings, project: str, namespace: str, name: str
) -> None:
    try:
        urls = plane_urls(SERVER, settings, project)
        built = [urls.claim(namespace, name), urls.claims_in(namespace), urls.namespace(namespace)]
    except QuotaUsageError:
        return
    claims = "/apis/quota.miloapis.com/v1alpha1"
    prefix = prefix_of(settings, project)
    paths = [url.raw_path.decode() for url in built]
    assert paths == [
        f"{prefix}{claims}/namespaces/{namespace}/resourceclaims/{name}",
        f"{prefix}{claims}/namespaces/{namespace}/resourceclaims",
        f"{prefix}/api/v1/namespaces/{namespace}",
    ]
    for url in built:
        assert (url.scheme, url.host, url.query, url.fragment) == ("https", "milo.test", b"", "")
        assert not {".", "..", ""} & set(url.raw_path.decode().split("/")[1:])


async def ask(project: str, namespace: str, name: str, transport: httpx.MockTransport) -> None:
    async with QuotaClient(SERVER, transport=transport) as quota:
        plane = quota.project(project)
        await plane.read(namespace, name)
        await plane.namespace_uid(namespace)
        await plane.release(namespace, name, uid="u")
        await plane.adopt(
            namespace, name, owner={"o": "w"}, old_subject={"s": "1"}, new_subject={"s": "2"}
        )
        claim = Claim(namespace, name, {"a/b": 1}, project_ref("acme"))
        await plane.claim(claim)


@pytest.mark.spec("Q-03")
@given(NAMES, NAMES, NAMES)
def test_no_request_leaves_for_another_path(project: str, namespace: str, name: str) -> None:
    sent: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.url)
        return httpx.Response(404)

    # Names that are names end in the create of the last step, which meets a 404: no such project.
    with pytest.raises((QuotaUsageError, QuotaProjectNotFoundError)) as ended:
        asyncio.run(ask(project, namespace, name, httpx.MockTransport(answer)))
    assert sent == [] if ended.type is QuotaUsageError else len(sent) == 6
    prefix = prefix_of(QuotaSettings(), project)
    assert all(url.raw_path.decode().startswith(f"{prefix}/") for url in sent)
    assert all(url.host == "milo.test" for url in sent)
