"""Rules 25–28, 34 and 35: containers and the secrets that pull their images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compute_api_types.validation.attachments import review_attachments
from compute_api_types.validation.document import as_list
from compute_api_types.validation.errors import duplicate, forbidden, required
from compute_api_types.validation.names import review_name
from compute_api_types.validation.ports import review_ports

if TYPE_CHECKING:
    from compute_api_types.validation.attachments import Volumes
    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors


def review_sandbox(sandbox: Node, volumes: Volumes) -> Errors:
    if not as_list(sandbox.content.get("containers")):  # 25
        yield required(sandbox.path.field("containers"), "a sandbox runs at least one container")
    names: set[str] = set()
    for container in sandbox.elements("containers"):
        yield from _review_container(container, volumes)
        name = container.text("name")
        if name in names:  # 34, after all other checks of that container
            yield duplicate(container.path.field("name"), name)
        names.add(name)
    for secret in sandbox.elements("imagePullSecrets"):
        if not secret.text("name"):  # 35
            yield required(secret.path.field("name"), "the Secret that pulls the image")


def _review_container(container: Node, volumes: Volumes) -> Errors:
    yield from review_name(container, "a container has a name")  # 26
    if not container.text("image"):  # 27
        yield required(container.path.field("image"), "the image to run")
    if container.has("resources"):  # 28
        detail = "the instance type sizes the whole instance"
        yield forbidden(container.path.field("resources"), detail)
    yield from review_attachments(container, volumes)  # 29–31
    yield from review_ports(container)  # 32, 33
