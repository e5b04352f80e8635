"""Projects and their planes: neighbours.md 2.1 and 2.2."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson
import pytest

from compute_sim_planes.api_server.authz.identity import Tokens, User, authenticated
from compute_sim_planes.api_server.http.transport import Transport, read_body
from compute_sim_planes.client.errors import ApiError, NotFoundError
from compute_sim_planes.client.rest import Client, Resource
from compute_sim_planes.conditions import find_condition, is_condition_true
from compute_sim_planes.faults.injection import FaultyTransport, Injector
from compute_sim_planes.faults.links import Link
from compute_sim_planes.history import History, RecordingTransport, Request
from compute_sim_planes.json_types import (
    JsonObject,
    JsonValue,
    integer_at,
    object_at,
    objects_at,
    string_at,
    strings_at,
)
from compute_sim_planes.milo.kinds import (
    CLAIMS,
    DEFINITIONS,
    FINALIZER,
    GRANT_POLICIES,
    GRANTS,
    NAMESPACES,
    PROJECTS,
    REGISTRATIONS,
)
from compute_sim_planes.milo.paths import PlanePath, parse_target, project_path
from compute_sim_planes.milo.plane_transports import PerPlaneTransport
from compute_sim_planes.milo.planes import MiloParts
from compute_sim_planes.milo.projects.controller import derive_poll
from compute_sim_planes.milo.projects.purge import BUILTIN, is_permanent
from compute_sim_planes.milo.router import derive_project_user
from compute_sim_planes.milo.simulation import Milo
from compute_sim_planes.milo.testing import (
    a_claim,
    a_grant_policy,
    a_registration,
    verdict_of,
)
from compute_sim_planes.time.clock import VirtualClock, run

START: Final = datetime(2026, 6, 20, 9, 0, 0, tzinfo=UTC)
MOMENT: Final = timedelta(seconds=1)
CONFIGS: Final = Resource("", "v1", "configmaps", "ConfigMap")
BINDINGS: Final = Resource(
    "rbac.authorization.k8s.io",
    "v1",
    "clusterrolebindings",
    "ClusterRoleBinding",
    is_namespaced=False,
)
GADGETS: Final = Resource("test.example.com", "v1", "gadgets", "Gadget")
WIDGETS: Final = "test.example.com/widgets"
JANE: Final = authenticated("jane")


def in_milo(body: Callable[[Milo, VirtualClock], Awaitable[None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        tokens = Tokens({"jane's": JANE})
        milo = Milo(MiloParts(clock, clock, tokens=tokens))
        try:
            await milo.start()
            await body(milo, clock)
        finally:
            await milo.close()

    run(main, seed=1, start=START)


def a_config(name: str = "a", **metadata: JsonValue) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", **metadata},
    }


def a_definition() -> JsonObject:
    schema: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: JsonObject = {"name": "v1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.test.example.com"},
        "spec": {
            "group": "test.example.com",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def names_of(objects: list[JsonObject]) -> list[str]:
    return [string_at(one, "metadata", "name") for one in objects]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/api/v1/namespaces?limit=5", PlanePath(None, "/api/v1/namespaces?limit=5")),
        (project_path("p"), PlanePath("p", "/")),
        (f"{project_path('p')}?a=b", PlanePath("p", "/?a=b")),
        (f"{project_path('p')}/api/v1/pods?a=b", PlanePath("p", "/api/v1/pods?a=b")),
        (f"{project_path('a/b c')}/apis", PlanePath("a/b c", "/apis")),
        (f"{PROJECTS.path()}/p", PlanePath(None, f"{PROJECTS.path()}/p")),
        (f"{PROJECTS.path()}/p/status", PlanePath(None, f"{PROJECTS.path()}/p/status")),
        (f"{project_path('p')}s/api", PlanePath(None, f"{project_path('p')}s/api")),
    ],
)
def test_a_target_leads_to_the_root_or_into_one_project(target: str, expected: PlanePath) -> None:
    assert parse_target(target) == expected


def test_a_project_becomes_ready_with_its_finalizer_and_two_namespaces() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        project = await milo.add_project("acme")
        assert strings_at(project, "metadata", "finalizers") == [FINALIZER]
        ready = find_condition(project, "Ready")
        assert (string_at(ready, "reason"), string_at(ready, "message")) == (
            "Ready",
            "Project is ready",
        )
        listed = (await milo.client("acme").list(NAMESPACES)).items
        assert names_of(listed) == ["default", "milo-system"]
        assert clock.now() - START < timedelta(seconds=5)

    in_milo(body)


def test_planes_share_versions_and_kinds_and_nothing_else() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        for name in ("one", "two"):
            await milo.add_project(name)
        one, two = milo.client("one"), milo.client("two")
        uids = [
            string_at(await plane.get(NAMESPACES, "default"), "metadata", "uid")
            for plane in (one, two, milo.client())
        ]
        assert len(set(uids)) == 3
        made = await one.create(CONFIGS, a_config())
        assert await two.get(CONFIGS, "a", "default") is None
        assert await milo.client().get(CONFIGS, "a", "default") is None
        later = await two.create(CONFIGS, a_config())
        assert int(string_at(later, "metadata", "resourceVersion")) > int(
            string_at(made, "metadata", "resourceVersion")
        )
        with pytest.raises(NotFoundError):
            await one.list(GADGETS)
        await milo.client().create(DEFINITIONS, a_definition())
        await clock.sleep(MOMENT)
        assert (await one.list(GADGETS)).items == (await two.list(GADGETS)).items == []

    in_milo(body)


def test_a_definition_written_into_a_project_serves_nothing() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        await milo.add_project("acme")
        await milo.client("acme").create(DEFINITIONS, a_definition())
        await clock.sleep(MOMENT)
        with pytest.raises(NotFoundError):
            await milo.client("acme").list(GADGETS)

    in_milo(body)


def test_a_project_that_does_not_exist_answers_like_an_empty_one() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        del clock
        absent = milo.client("never-made")
        assert (await absent.list(CONFIGS)).items == []
        assert (await absent.list(NAMESPACES)).items == []
        assert (await absent.list(BINDINGS)).items == []
        assert await absent.get(NAMESPACES, "default") is None
        with pytest.raises(NotFoundError) as caught:
            await absent.create(CONFIGS, a_config())
        assert caught.value.details["kind"] == "namespaces"

    in_milo(body)


@pytest.mark.spec("OU-02")
def test_a_fresh_project_answers_the_first_request_for_every_kind() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        del clock
        for resource in (CONFIGS, NAMESPACES, BINDINGS, CLAIMS):
            # A plane needs no Project, and no earlier request, to answer.
            assert (await milo.client("one").list(resource)).items == []
            path = f"{project_path('two')}{resource.path()}?watch=true&timeoutSeconds=1"
            answer = await milo.connect().request("GET", path, {}, None)
            assert answer.status == 200
            await answer.close()
        await milo.add_project("three")
        assert await milo.client("three").create(CONFIGS, a_config())

    in_milo(body)


def test_rights_are_looked_at_in_a_project_that_nothing_was_asked_of_before() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        del clock
        with pytest.raises(ApiError) as caught:
            await milo.client("one", user=JANE).list(CONFIGS)
        assert caught.value.status == 403

    in_milo(body)


def a_binding() -> JsonObject:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
    }


def test_rights_are_read_from_the_root_only() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        del clock
        await milo.add_project("acme")
        as_jane = milo.client("acme", user=JANE)
        await milo.client("acme").create(BINDINGS, a_binding())
        with pytest.raises(ApiError) as caught:
            await as_jane.list(CONFIGS)
        assert caught.value.status == 403
        assert not await may_list(milo)
        await milo.client().create(BINDINGS, a_binding())
        assert (await as_jane.list(CONFIGS)).items == []
        assert await may_list(milo)

    in_milo(body)


async def may_list(milo: Milo) -> bool:
    """Whether a project's plane authorizes jane."""
    asked: JsonObject = {"verb": "list", "resource": "configmaps", "namespace": "default"}
    review: JsonObject = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": "jane", "resourceAttributes": asked},
    }
    path = f"{project_path('acme')}/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = await milo.connect().request("POST", path, {}, orjson.dumps(review))
    document: JsonValue = orjson.loads(await read_body(answer))
    return object_at(document, "status").get("allowed") is True


async def who_am_i(milo: Milo, target: str, headers: dict[str, str]) -> JsonObject:
    review: JsonObject = {"kind": "SelfSubjectReview"}
    review["apiVersion"] = "authentication.k8s.io/v1"
    path = f"{target}/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = await milo.router.request("POST", path, headers, orjson.dumps(review))
    document: JsonValue = orjson.loads(await read_body(answer))
    return object_at(document, "status", "userInfo")


def test_inside_a_project_a_user_carries_which_one_it_is() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        del clock
        headers = {"Authorization": "Bearer jane's", "Content-Type": "application/json"}
        inside = await who_am_i(milo, project_path("acme"), headers)
        assert string_at(inside, "username") == "jane"
        assert object_at(inside, "extra") == {
            "iam.miloapis.com/parent-api-group": ["resourcemanager.miloapis.com"],
            "iam.miloapis.com/parent-type": ["Project"],
            "iam.miloapis.com/parent-name": ["acme"],
        }
        assert object_at(await who_am_i(milo, "", headers), "extra") == {}
        answer = await milo.router.request(
            "GET", f"{project_path('acme')}/api/v1/configmaps", {"Authorization": "Bearer x"}, None
        )
        assert answer.status == 401

    in_milo(body)


def test_the_extras_of_a_project_cannot_be_brought_along() -> None:
    forged = User("jane", extra=(("iam.miloapis.com/parent-name", ("rich",)), ("a", ("b",))))
    extra = dict(derive_project_user(forged, "acme").extra)
    assert extra["iam.miloapis.com/parent-name"] == ("acme",)
    assert extra["a"] == ("b",)


def test_an_impersonated_user_in_a_project_has_its_extras_too() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        del clock
        path = f"{project_path('acme')}/apis/authentication.k8s.io/v1/selfsubjectreviews"
        headers = {
            "Impersonate-User": "john",
            "Impersonate-Extra-iam.miloapis.com%2fparent-name": "rich",
        }
        review: JsonObject = {"kind": "SelfSubjectReview"}
        review["apiVersion"] = "authentication.k8s.io/v1"
        answer = await milo.connect().request("POST", path, headers, orjson.dumps(review))
        document: JsonValue = orjson.loads(await read_body(answer))
        info = object_at(document, "status", "userInfo")
        assert string_at(info, "username") == "john"
        assert strings_at(info, "extra", "iam.miloapis.com/parent-name") == ["acme"]

    in_milo(body)


def test_a_deleted_project_is_purged_and_goes_and_its_plane_still_answers() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        await milo.add_project("acme")
        acme = milo.client("acme")
        default = await acme.get(NAMESPACES, "default")
        await acme.create(CONFIGS, a_config())
        began = clock.now()
        await milo.client().delete(PROJECTS, "acme")
        while await milo.client().get(PROJECTS, "acme") is not None:
            await clock.sleep(timedelta(milliseconds=100))
        assert timedelta(seconds=5) < clock.now() - began < timedelta(seconds=7)
        assert (await acme.list(CONFIGS)).items == []
        assert await acme.get(NAMESPACES, "default") == default
        assert await acme.get(NAMESPACES, "milo-system") is None

    in_milo(body)


def test_a_purge_waits_for_finalizers_and_reports_them() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        await milo.add_project("acme")
        acme = milo.client("acme")
        await acme.create(CONFIGS, a_config(finalizers=["test.example.com/held"]))
        await milo.client().delete(PROJECTS, "acme")
        await clock.sleep(timedelta(minutes=10))
        project = await milo.client().get(PROJECTS, "acme") or {}
        assert is_condition_true(project, "Ready")
        cleanup = find_condition(project, "ResourceCleanup")
        assert string_at(cleanup, "reason") == "CleanupAwaitingCompletion"
        assert string_at(cleanup, "message").endswith('configmaps "a" still exists')
        await acme.patch(CONFIGS, "a", {"metadata": {"finalizers": None}}, namespace="default")
        # Checked every 30 s after the first minute.
        await clock.sleep(timedelta(seconds=31))
        assert await milo.client().get(PROJECTS, "acme") is None

    in_milo(body)


@pytest.mark.parametrize(
    ("resource", "metadata", "expected"),
    [
        ("namespaces", {"name": "kube-system"}, True),
        ("namespaces", {"name": "milo-system"}, False),
        # A real API server renews its lease and publishes its CA.
        ("leases", {"name": "apiserver-x", "namespace": "kube-system"}, True),
        ("configmaps", {"name": "kube-root-ca.crt", "namespace": "default"}, True),
        ("configmaps", {"name": "mine", "namespace": "default"}, False),
    ],
)
def test_a_purge_leaves_alone_what_a_server_makes_again(
    resource: str, metadata: JsonObject, *, expected: bool
) -> None:
    kinds = {one.plural: one for one in (NAMESPACES, *BUILTIN)}
    assert is_permanent(kinds[resource], {"metadata": metadata}) is expected


def test_a_purge_looks_every_five_seconds_and_after_a_minute_every_thirty() -> None:
    waits = [derive_poll(START, START + timedelta(seconds=age)) for age in (0, 59, 60, 600)]
    assert [wait.total_seconds() for wait in waits] == [5, 5, 30, 30]


def test_a_purge_goes_on_after_the_controllers_were_restarted() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        await milo.add_project("acme")
        await milo.client().delete(PROJECTS, "acme")
        await clock.sleep(timedelta(milliseconds=100))
        await milo.stop_controllers()
        await clock.sleep(timedelta(minutes=1))
        assert await milo.client().get(PROJECTS, "acme") is not None
        milo.start_controllers()
        await clock.sleep(timedelta(seconds=10))
        assert await milo.client().get(PROJECTS, "acme") is None

    in_milo(body)


def test_a_project_made_again_is_another_one_on_the_same_plane() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        first = await milo.add_project("acme")
        await milo.client().create(REGISTRATIONS, a_registration(WIDGETS))
        await milo.client().delete(PROJECTS, "acme")
        await clock.sleep(timedelta(seconds=30))
        second = await milo.add_project("acme")
        assert string_at(first, "metadata", "uid") != string_at(second, "metadata", "uid")
        acme = milo.client("acme")
        assert await acme.get(NAMESPACES, "milo-system") is not None
        await acme.create(CLAIMS, a_claim("acme", "c", {WIDGETS: 1}))
        await clock.sleep(MOMENT)
        existing = await acme.get(CLAIMS, "c", "default")
        assert verdict_of(existing) == ("False", "QuotaExceeded")

    in_milo(body)


def test_a_policy_of_the_root_grants_to_every_project_once() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        await milo.client().create(REGISTRATIONS, a_registration(WIDGETS))
        await milo.add_project("before")
        await milo.client().create(GRANT_POLICIES, a_grant_policy("usual", {WIDGETS: 10}))
        await clock.sleep(MOMENT)
        await milo.add_project("after")
        for project in ("before", "after"):
            plane = milo.client(project)
            grant = await plane.get(GRANTS, "usual", "milo-system") or {}
            assert string_at(grant, "spec", "consumerRef", "name") == project
            await plane.create(CLAIMS, a_claim(project, "c", {WIDGETS: 10}))
        await clock.sleep(MOMENT)
        for project in ("before", "after"):
            existing = await milo.client(project).get(CLAIMS, "c", "default")
            assert verdict_of(existing) == ("True", "QuotaAvailable")
        policy = await milo.client().get(GRANT_POLICIES, "usual") or {}
        assert is_condition_true(policy, "Ready")
        # A grant that is changed or deleted later is not restored.
        await milo.client("after").delete(GRANTS, "usual", namespace="milo-system")
        label: JsonObject = {"metadata": {"labels": {"a": "b"}}}
        await milo.client().patch(PROJECTS, "after", label)
        await clock.sleep(MOMENT)
        assert await milo.client("after").get(GRANTS, "usual", "milo-system") is None

    in_milo(body)


def test_a_default_grant_is_there_when_its_project_is_ready() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        del clock
        await milo.client().create(GRANT_POLICIES, a_grant_policy("usual", {WIDGETS: 10}))
        await milo.add_project("acme")
        assert await milo.client("acme").get(GRANTS, "usual", "milo-system") is not None

    in_milo(body)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("trigger", "constraints"), [{"expression": "true"}], "constraints"),
        (("trigger", "resource", "kind"), "Organization", "Organization"),
        (("target", "parentContext", "nameExpression"), "trigger.metadata.name + 'x'", "path"),
        (("target", "parentContext", "kind"), "Organization", "no plane"),
    ],
)
def test_a_policy_that_is_not_simulated_reports_it_and_grants_nothing(
    path: tuple[str, ...], value: JsonValue, message: str
) -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        policy = a_grant_policy("odd", {WIDGETS: 10})
        object_at(policy, "spec", *path[:-1])[path[-1]] = value
        await milo.client().create(GRANT_POLICIES, policy)
        await milo.add_project("acme")
        await clock.sleep(MOMENT)
        existing = await milo.client().get(GRANT_POLICIES, "odd") or {}
        ready = find_condition(existing, "Ready")
        assert string_at(ready, "status") == "False"
        assert message in string_at(ready, "message")
        assert (await milo.client("acme").list(GRANTS)).items == []

    in_milo(body)


def test_a_policy_that_rests_grants_nothing() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        policy = a_grant_policy("resting", {WIDGETS: 10})
        object_at(policy, "spec")["disabled"] = True
        await milo.client().create(GRANT_POLICIES, policy)
        await milo.add_project("acme")
        await clock.sleep(MOMENT)
        assert (await milo.client("acme").list(GRANTS)).items == []

    in_milo(body)


def test_a_project_stays_as_it_is_while_the_controllers_are_down() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        await milo.stop_controllers()
        spec: JsonObject = {"ownerRef": {"kind": "Organization", "name": "o"}}
        desired: JsonObject = {"apiVersion": PROJECTS.api_version, "kind": "Project"}
        await milo.client().create(
            PROJECTS, {**desired, "metadata": {"name": "acme"}, "spec": spec}
        )
        await clock.sleep(timedelta(hours=1))
        existing = await milo.client().get(PROJECTS, "acme") or {}
        assert not is_condition_true(existing, "Ready")
        # Its plane accepts writes already, where there is a namespace.
        namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace"}
        await milo.client("acme").create(NAMESPACES, {**namespace, "metadata": {"name": "n"}})
        milo.start_controllers()
        await clock.sleep(MOMENT)
        existing = await milo.client().get(PROJECTS, "acme") or {}
        assert is_condition_true(existing, "Ready")
        assert integer_at(find_condition(existing, "Ready"), "observedGeneration") == 1

    in_milo(body)


def test_a_root_that_is_away_refuses_and_projects_go_on() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        await milo.add_project("acme")
        milo.make_unavailable()
        with pytest.raises(ApiError) as caught:
            await milo.client().list(PROJECTS)
        assert caught.value.status == 503
        assert await milo.client("acme").get(NAMESPACES, "default") is not None
        await clock.sleep(timedelta(minutes=1))
        milo.make_available()
        assert is_condition_true((await milo.client().list(PROJECTS)).items[0], "Ready")

    in_milo(body)


def test_a_watch_of_a_plane_ends_when_it_goes_away() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        await milo.add_project("acme")
        acme: Client = milo.client("acme")
        version = (await acme.list(CONFIGS)).version
        seen: list[str] = []

        async def read() -> None:
            seen.extend([event.type async for event in acme.watch(CONFIGS, version)])

        reading = asyncio.create_task(read())
        await clock.sleep(MOMENT)
        await acme.create(CONFIGS, a_config())
        await clock.sleep(MOMENT)
        milo.make_unavailable("acme")
        await reading
        assert seen == ["ADDED"]

    in_milo(body)


def test_groups_of_a_project_are_those_of_the_root() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        del clock
        listings: list[list[str]] = []
        for prefix in ("", project_path("acme")):
            answer = await milo.connect().request("GET", f"{prefix}/apis", {}, None)
            document: JsonValue = orjson.loads(await read_body(answer))
            listings.append([string_at(group, "name") for group in objects_at(document, "groups")])
        assert listings[0] == listings[1]
        assert "events.k8s.io" not in listings[0]
        assert "apps" not in listings[0]

    in_milo(body)


def an_owned_config(owner: JsonObject, name: str) -> JsonObject:
    reference: JsonObject = {
        "apiVersion": string_at(owner, "apiVersion"),
        "kind": string_at(owner, "kind"),
        "name": string_at(owner, "metadata", "name"),
        "uid": string_at(owner, "metadata", "uid"),
    }
    return a_config(name, ownerReferences=[reference])


def test_children_of_a_kind_that_came_later_stay_until_the_collector_is_restarted() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        await milo.add_project("acme")
        acme = milo.client("acme")
        await milo.client().create(DEFINITIONS, a_definition())
        await clock.sleep(MOMENT)
        owner = await acme.create(CONFIGS, a_config("owner"))
        await acme.create(CONFIGS, an_owned_config(owner, "child"))
        late = an_owned_config(owner, "late")
        await acme.create(GADGETS, {**late, "apiVersion": "test.example.com/v1", "kind": "Gadget"})
        await acme.delete(CONFIGS, "owner", namespace="default")
        await clock.sleep(timedelta(minutes=1))
        assert await acme.get(CONFIGS, "child", "default") is None
        assert await acme.get(GADGETS, "late", "default") is not None
        await milo.stop_controllers()
        milo.start_controllers()
        await clock.sleep(MOMENT)
        assert await acme.get(GADGETS, "late", "default") is None

    in_milo(body)


def test_the_link_of_one_client_to_one_project_can_be_cut() -> None:
    async def body(milo: Milo, clock: VirtualClock) -> None:
        history, links = History(clock), dict[str, Link]()

        def wrap(project: str, inner: Transport) -> Transport:
            links[project] = Link()
            faulty = FaultyTransport(inner, Injector((), clock), plane=project, link=links[project])
            return RecordingTransport(faulty, history, plane=project, identity="operator")

        for name in ("one", "two"):
            await milo.add_project(name)
        transport = PerPlaneTransport(milo.connect(), wrap)
        one = Client(transport, manager="operator", prefix=project_path("one"))
        two = Client(transport, manager="operator", prefix=project_path("two"))
        root = Client(transport, manager="operator")
        await one.create(CONFIGS, a_config())
        await two.list(CONFIGS)
        await root.list(PROJECTS)
        links["one"].cut()
        with pytest.raises(ConnectionRefusedError):
            await one.list(CONFIGS)
        await two.list(CONFIGS)
        assert await milo.client("one").get(CONFIGS, "a", "default") is not None
        asked = [
            (one.address.plane, one.address.verb, one.address.resource)
            for one in history.of(Request)
        ]
        assert asked == [
            ("one", "create", "configmaps"),
            ("two", "list", "configmaps"),
            ("", "list", "projects"),
            ("one", "list", "configmaps"),
            ("two", "list", "configmaps"),
        ]

    in_milo(body)


def test_the_same_seed_gives_the_same_commits() -> None:
    def scenario(seed: int) -> list[str]:
        log: list[str] = []

        async def main(clock: VirtualClock) -> None:
            milo = Milo(MiloParts(clock, clock))
            try:
                await milo.start()
                root = milo.planes.root.state.store
                root.listen(lambda change: log.append(f"root {clock.now()} {change.after.raw!r}"))
                await milo.client().create(REGISTRATIONS, a_registration(WIDGETS))
                await milo.client().create(GRANT_POLICIES, a_grant_policy("g", {WIDGETS: 2}))
                for name in ("one", "two"):
                    await milo.add_project(name)
                    plane = milo.planes.at(name).state.store
                    plane.listen(lambda change: log.append(f"{clock.now()} {change.after.raw!r}"))
                    for claim in ("a", "b", "c"):
                        desired = a_claim(name, claim, {WIDGETS: 1})
                        await milo.client(name).create(CLAIMS, desired)
                await milo.client().delete(PROJECTS, "one")
                await clock.sleep(timedelta(minutes=2))
            finally:
                await milo.close()

        run(main, seed=seed, start=START)
        return log

    assert scenario(3) == scenario(3)
    assert len(scenario(3)) > 50
