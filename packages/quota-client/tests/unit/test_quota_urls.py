import pytest

from compute_quota_client import Claim, QuotaClient, QuotaSettings, QuotaUsageError, project_ref
from compute_quota_client._urls import origin_of, plane_urls
from compute_quota_client.testing import FakeQuota, a_claim

PLANE = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/acme/control-plane"
CLAIMS = "/apis/quota.miloapis.com/v1alpha1"


@pytest.mark.spec("Q-02")
def test_the_url_of_a_claim_is_exactly_the_long_form() -> None:
    urls = plane_urls("https://milo.example.com:6443", QuotaSettings(), "acme")
    prefix = f"https://milo.example.com:6443{PLANE}"
    claim = urls.claim("default", "bucket-logs")
    assert str(claim) == f"{prefix}{CLAIMS}/namespaces/default/resourceclaims/bucket-logs"
    assert str(urls.claims()) == f"{prefix}{CLAIMS}/resourceclaims"
    assert str(urls.claims_in("default")) == f"{prefix}{CLAIMS}/namespaces/default/resourceclaims"
    assert str(urls.namespace("default")) == f"{prefix}/api/v1/namespaces/default"


@pytest.mark.spec("Q-02")
@pytest.mark.parametrize(
    ("server", "origin"),
    [
        ("https://milo.example.com/apis/some/other/path?x=1#y", "https://milo.example.com"),
        ("https://milo.example.com:8443/", "https://milo.example.com:8443"),
        ("https://[2001:db8::1]:6443/clusters/root", "https://[2001:db8::1]:6443"),
    ],
)
def test_the_path_of_the_kubeconfigs_server_is_dropped(server: str, origin: str) -> None:
    assert origin_of(server) == origin


@pytest.mark.parametrize(
    "server",
    ["http://milo", "milo.example.com", "https://", "https://user@host", "https://h:99999", ""],
)
def test_a_server_that_is_not_a_plain_https_address_is_refused(server: str) -> None:
    with pytest.raises(QuotaUsageError, match="server"):
        origin_of(server)


@pytest.mark.spec("Q-02")
@pytest.mark.parametrize("base_path", ["/gate/milo", "gate/milo/"])
def test_a_base_path_is_put_in_front(base_path: str) -> None:
    urls = plane_urls("https://milo", QuotaSettings(base_path=base_path), "acme")
    assert urls.claims().path == f"/gate/milo{PLANE}{CLAIMS}/resourceclaims"


@pytest.mark.spec("Q-02")
def test_a_direct_plane_is_the_server_itself() -> None:
    settings = QuotaSettings(plane="direct", base_path="/gate")
    assert plane_urls("https://milo", settings, "acme").claims().path == (
        f"/gate{CLAIMS}/resourceclaims"
    )


@pytest.mark.parametrize(
    "base_path", ["/a/../b", "/a?b", "/a#b", "/%2e%2e", "/a b", "/.hidden", "/a//b"]
)
def test_a_base_path_that_could_lead_elsewhere_is_refused(base_path: str) -> None:
    with pytest.raises(ValueError, match="base_path"):
        QuotaSettings(base_path=base_path)


@pytest.mark.spec("Q-02")
async def test_requests_go_exactly_there(fake: FakeQuota, quota: QuotaClient) -> None:
    await quota.project("acme").claim(a_claim())
    get, create = (exchange.url for exchange in fake.requests)
    assert get.path == f"{PLANE}{CLAIMS}/namespaces/default/resourceclaims/bucket-logs"
    assert create.path == f"{PLANE}{CLAIMS}/namespaces/default/resourceclaims"


@pytest.mark.spec("Q-03")
@pytest.mark.parametrize(
    "name", ["org/proj", "..", ".", "", "a%2fb", "A", "a.b", "acme?x", "acme#x", "å", "a" * 64]
)
def test_a_project_that_is_not_a_dns_label_is_refused(fake: FakeQuota, name: str) -> None:
    with pytest.raises(QuotaUsageError, match="project"):
        fake.client().project(name)
    assert fake.requests == []


@pytest.mark.spec("Q-03")
async def test_bad_names_are_refused_before_anything_is_sent(
    fake: FakeQuota, quota: QuotaClient
) -> None:
    project = quota.project("acme")
    owner, subject = {"a": "b"}, {"c": "d"}
    with pytest.raises(QuotaUsageError, match="namespace"):
        await project.read("..", "name")
    with pytest.raises(QuotaUsageError, match="name"):
        await project.read("default", "../other")
    with pytest.raises(QuotaUsageError, match="name"):
        await project.release("default", "a/b", owner=owner, subject=subject)
    with pytest.raises(QuotaUsageError, match="name"):
        await project.adopt("default", "a?b", owner=owner, old_subject=subject, new_subject=subject)
    with pytest.raises(QuotaUsageError, match="name"):
        await project.namespace_uid("%2e%2e")
    assert fake.requests == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("user_agent", ""),
        ("user_agent", "a\r\nX-Injected: 1"),
        ("field_manager", "x" * 129),
        ("field_manager", "å"),
        ("plane", "elsewhere"),
    ],
)
def test_settings_refuse_what_cannot_be_sent(field: str, value: str) -> None:
    with pytest.raises(ValueError, match=field):
        QuotaSettings.model_validate({field: value})


def test_settings_refuse_what_they_do_not_know() -> None:
    with pytest.raises(ValueError, match="retries"):
        QuotaSettings.model_validate({"retries": 5})


async def test_settings_name_user_agent_and_field_manager_of_every_write(fake: FakeQuota) -> None:
    settings = QuotaSettings(user_agent="storage/1.0", field_manager="storage")
    wanted: Claim = a_claim()
    async with fake.client(settings) as quota:
        project = quota.project("acme")
        await project.claim(wanted)
        await project.adopt(
            wanted.namespace,
            wanted.name,
            owner=wanted.owner,
            old_subject=wanted.subject,
            new_subject=dict.fromkeys(wanted.subject, "uid-2"),
        )
    assert {exchange.headers["User-Agent"] for exchange in fake.requests} == {"storage/1.0"}
    writes = [one for one in fake.requests if one.method in {"POST", "PATCH"}]
    assert [one.url.params["fieldManager"] for one in writes] == ["storage", "storage"]


def test_project_refs_are_references_to_milo_projects() -> None:
    ref = project_ref("acme")
    assert (ref.api_group, ref.kind, ref.name) == (
        "resourcemanager.miloapis.com",
        "Project",
        "acme",
    )


@pytest.mark.spec("AT-22")
@pytest.mark.parametrize("character", ["\r", "\n", "\t", " ", "\u202e"])
def test_a_server_with_a_character_that_parsers_drop_is_refused(character: str) -> None:
    with pytest.raises(QuotaUsageError, match="visible ASCII"):
        origin_of(f"https://milo.exa{character}mple.com")
