"""How long the remembered UID of a project namespace holds, and by which anchor."""

from __future__ import annotations

from datetime import timedelta

import pytest

from compute_management_operator.hub.identity import ProjectNamespace
from compute_management_operator.hub.namespace_uids import NamespaceUids
from compute_management_operator.planes import DEPLOYMENT, NAMESPACE
from compute_operator_kit.cache.store import Store
from compute_operator_kit.core.keys import ObjectKey, PlaneName, Uid
from compute_operator_kit.core.objects import Absent, Metadata, ReceivedObject, Snapshot

PLANE = PlaneName("project-a")


class Project:
    """A project with a namespace that may be deleted, or recreated with another UID."""

    def __init__(self) -> None:
        self.uid: str | None = "first"
        self.asked = 0
        self.store = Store(PLANE, DEPLOYMENT)
        self.store.replace(set(), version=10, at=timedelta())
        self.namespaces = NamespaceUids(lambda _: self)  # type: ignore[arg-type,return-value]

    async def get(self, key: ObjectKey) -> Snapshot | Absent:
        assert key == ObjectKey(PLANE, NAMESPACE, "", "team")
        self.asked += 1
        if self.uid is None:
            return Absent()
        return Snapshot(key, Metadata("team", "", Uid(self.uid), "1"), b"{}")

    def put(self, name: str, version: int, uid: str = "") -> Metadata:
        """As a list brings it: the store has not reached its version."""
        made = Metadata(name, "team", Uid(uid or f"{name}-uid"), str(version))
        key = ObjectKey(PLANE, DEPLOYMENT, "team", name)
        self.store.put(ReceivedObject(Snapshot(key, made, b"{}")))
        return made

    def watch(self, name: str, version: int, uid: str = "") -> Metadata:
        made = self.put(name, version, uid)
        self.store.advance_to(version)
        return made

    def find(self, inhabitant: Metadata) -> Uid | None:
        return self.namespaces.confirmed(inhabitant, self.store)


@pytest.fixture
def project() -> Project:
    return Project()


async def test_nothing_is_proven_before_it_was_read(project: Project) -> None:
    assert project.find(project.watch("web", 11)) is None


async def test_what_lives_beside_a_witness_lives_in_the_same_namespace(project: Project) -> None:
    first = project.watch("web", 11)
    assert await project.namespaces.read_for(first, PLANE) == "first"
    second = project.watch("api", 12)

    assert project.find(first) == "first"
    assert project.find(second) == "first"
    assert project.asked == 1


async def test_a_witness_that_is_gone_proves_nothing(project: Project) -> None:
    await project.namespaces.read_for(project.watch("web", 11), PLANE)
    project.store.remove("team", "web")
    project.uid = "second"
    newcomer = project.watch("api", 14)

    assert project.find(newcomer) is None
    assert await project.namespaces.read_for(newcomer, PLANE) == "second"
    assert project.find(newcomer) == "second"


async def test_another_object_under_the_name_of_the_witness_proves_nothing(
    project: Project,
) -> None:
    await project.namespaces.read_for(project.watch("web", 11), PLANE)
    again = project.watch("web", 14, uid="another")

    assert project.find(again) is None


async def test_in_the_middle_of_a_list_no_object_is_an_anchor(project: Project) -> None:
    """The page that brings the newcomer comes before the word that the witness is gone."""
    await project.namespaces.read_for(project.watch("web", 11), PLANE)
    newcomer = project.put("api", 40)

    assert project.find(newcomer) is None

    project.store.replace({("team", "api")}, version=50, at=timedelta(seconds=1))
    assert project.find(newcomer) is None


async def test_a_namespace_that_is_back_makes_its_witness_forgotten(project: Project) -> None:
    first = project.watch("web", 11)
    await project.namespaces.read_for(first, PLANE)
    project.uid = None
    assert isinstance(await project.namespaces.read_for(first, PLANE), Absent)

    assert project.find(first) is None


async def test_a_change_that_is_being_stored_uses_a_live_anchor_alone(project: Project) -> None:
    await project.namespaces.read_for(project.watch("web", 11), PLANE)
    project.put("api", 12)
    assert project.namespaces.cached_if_anchored("team", project.store) == "first"

    project.store.remove("team", "web")
    assert project.namespaces.cached_if_anchored("team", project.store) is None
    assert project.namespaces.find_uid(ProjectNamespace(PLANE, "team")) == "first"
