"""Rules 23, 24 and 41: how an instance runs and how large it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compute_api_types.sizes import INSTANCE_TYPES
from compute_api_types.validation.attachments import volumes_by_name
from compute_api_types.validation.errors import forbidden, not_supported, required
from compute_api_types.validation.sandbox import review_sandbox
from compute_api_types.validation.virtual_machine import review_virtual_machine

if TYPE_CHECKING:
    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors


def review_runtime(template_spec: Node) -> Errors:
    runtime = template_spec.section("runtime")
    resources = runtime.section("resources")
    instance_type = resources.text("instanceType")
    if instance_type not in INSTANCE_TYPES:  # 23; a wire oddity: the path stops at `resources`
        yield not_supported(resources.path, instance_type, INSTANCE_TYPES)
    if resources.has("requests"):  # 24
        detail = "the instance type gives the size; there is no other sizing yet"
        yield forbidden(resources.path.field("requests"), detail)
    volumes = volumes_by_name(template_spec)
    if (sandbox := runtime.object("sandbox")) is not None:
        yield from review_sandbox(sandbox, volumes)
    if (machine := runtime.object("virtualMachine")) is not None:
        yield from review_virtual_machine(runtime, machine, volumes)
    if not runtime.has("sandbox") and not runtime.has("virtualMachine"):  # 41
        yield required(runtime.path, "must have a sandbox or a virtualMachine")
