"""Discovery documents: the groups, versions and kinds of a plane, in both formats.

The older format has a document per group and version; aggregated discovery, which `kubectl` and
most clients request first, has all in one. Pure functions over the kinds of a catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from compute_sim_planes.api_server.kinds.kind import Kind
from compute_sim_planes.json_types import JsonArray, JsonObject, JsonValue

AGGREGATED_TYPE: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUBRESOURCE_VERBS: Final = ("get", "patch", "update")


def api_versions(address: str) -> JsonObject:
    """`GET /api`: the versions of the core group."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def api_group_list(kinds: Iterable[Kind]) -> JsonObject:
    """`GET /apis`: every group but the core one."""
    groups: JsonArray = [_group(name, served) for name, served in _by_group(kinds).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(kinds: Iterable[Kind], group: str) -> JsonObject | None:
    """`GET /apis/<group>`; None when the group is not served."""
    existing = _by_group(kinds).get(group)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, existing)} if existing else None


def api_resource_list(kinds: Iterable[Kind], group: str, version: str) -> JsonObject | None:
    """`GET /apis/<group>/<version>` and `GET /api/v1`; None when the version is not served."""
    served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not served:
        return None
    resources: JsonArray = []
    for kind in sorted(served, key=lambda kind: kind.plural):
        resources.append(_resource(kind))
        resources.extend(_subresource(kind, name) for name in subresources_of(kind))
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": resources,
    }


def aggregated_discovery(kinds: Iterable[Kind], *, core: bool) -> JsonObject:
    """`/api` (core) or `/apis` as aggregated discovery, all kinds in one document."""
    items: JsonArray = []
    for group, served in _by_group(kinds).items():
        if (group == "") is core:
            versions = order_versions({kind.version for kind in served})
            items.append(
                {
                    "metadata": {"name": group, "creationTimestamp": None},
                    "versions": [_aggregated_version(served, version) for version in versions],
                }
            )
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def subresources_of(kind: Kind) -> tuple[str, ...]:
    """All subresources of a kind, `status` first."""
    others = tuple(name for name in kind.subresources if name != "status")
    return ("status", *others) if kind.has_status else others


_VERSION: Final = re.compile(r"v(?P<major>[0-9]+)(?:(?P<stage>alpha|beta)(?P<minor>[0-9]*))?")
_STAGES: Final = {None: 2, "beta": 1, "alpha": 0}


def order_versions(versions: Iterable[str]) -> list[str]:
    """Stable before beta before alpha, newer before older; other names last."""
    return sorted(sorted(versions), key=_rank, reverse=True)


def _rank(version: str) -> tuple[int, int, int, int]:
    match = _VERSION.fullmatch(version)
    if match is None:
        return (0, 0, 0, 0)
    return (1, _STAGES[match["stage"]], int(match["major"]), int(match["minor"] or 0))


def _by_group(kinds: Iterable[Kind]) -> dict[str, list[Kind]]:
    groups: dict[str, list[Kind]] = {}
    for kind in sorted(kinds, key=lambda kind: (kind.group, kind.plural)):
        groups.setdefault(kind.group, []).append(kind)
    return groups


def _group(name: str, kinds: list[Kind]) -> JsonObject:
    versions: JsonArray = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in order_versions({kind.version for kind in kinds})
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource(kind: Kind) -> JsonObject:
    resource: JsonObject = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _strings(kind.verbs),
    }
    if kind.short_names:
        resource["shortNames"] = _strings(kind.short_names)
    if kind.categories:
        resource["categories"] = _strings(kind.categories)
    return resource


def _subresource(kind: Kind, name: str) -> JsonObject:
    return {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _strings(_SUBRESOURCE_VERBS),
    }


def _aggregated_version(kinds: list[Kind], version: str) -> JsonObject:
    resources: JsonArray = [_aggregated_resource(kind) for kind in kinds if kind.version == version]
    return {"version": version, "resources": resources, "freshness": "Current"}


def _aggregated_resource(kind: Kind) -> JsonObject:
    response: JsonObject = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    resource: JsonObject = {
        "resource": kind.plural,
        "responseKind": response,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _strings(kind.verbs),
    }
    if kind.short_names:
        resource["shortNames"] = _strings(kind.short_names)
    if kind.categories:
        resource["categories"] = _strings(kind.categories)
    subresources = subresources_of(kind)
    if subresources:
        verbs = _strings(_SUBRESOURCE_VERBS)
        resource["subresources"] = [
            {"subresource": name, "responseKind": response, "verbs": verbs} for name in subresources
        ]
    return resource


def _strings(values: Iterable[str]) -> list[JsonValue]:
    return [*values]
