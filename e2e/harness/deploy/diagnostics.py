"""The roles of `deploy/components/diagnostics`, and the binding of a user to one of them."""

from __future__ import annotations

from typing import Final, Literal

from compute_api_types.wire import JsonObject
from e2e.world.components import load_component
from e2e.world.objects import name_of

RBAC: Final = "rbac.authorization.k8s.io"
Side = Literal["project", "hub", "cell"]


def diagnostics_role(side: Side) -> JsonObject:
    """The shipped ClusterRole for a plane of that role."""
    (role,) = load_component(f"diagnostics/{side}")
    return role


def a_role_binding(role: JsonObject, user: str) -> JsonObject:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name_of(role)},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name_of(role)},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }
