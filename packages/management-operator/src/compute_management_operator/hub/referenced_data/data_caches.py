"""The kinds that are cached for referenced data, on projects and on the hub.

Templates are decoded only while referenced data is delivered: they are the largest part of a
deployment, and no other index reads them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypedDict

from compute_api_types import labels
from compute_management_operator.hub.decoders import DEPLOYMENT_DECODER
from compute_management_operator.hub.indexes import index_by_namespace
from compute_management_operator.hub.referenced_data import distribution
from compute_management_operator.hub.referenced_data.references import (
    IN_NAMESPACE,
    KINDS,
    OPTIONAL,
    REFERENCE,
    index_by_optional,
    index_by_reference,
)
from compute_management_operator.planes import DEPLOYMENT
from compute_operator_kit.cache.indexers import metadata_index
from compute_operator_kit.client.interface import Selector
from compute_operator_kit.controller.registration import ControllerSetup
from compute_operator_kit.core.keys import Role
from compute_operator_kit.core.partial_decoder import PartialDecoder
from compute_operator_kit.planes.engaged_plane import CachedKind, OnDemand

COMPANIONS: Final = Selector(labels=f"{labels.REFERENCED_DATA}={labels.IS_REFERENCED_DATA}")
IN_TEMPLATES: Final = OnDemand(triggers=(DEPLOYMENT,), index=REFERENCE)


class _Runtime(TypedDict, total=False):
    sandbox: object


class _NamingTemplateSpec(TypedDict, total=False):
    runtime: _Runtime
    volumes: object


class _NamingTemplate(TypedDict, total=False):
    spec: _NamingTemplateSpec


class _NamingDeploymentSpec(TypedDict, total=False):
    cityCode: object
    placementName: object
    scaleSettings: object
    workloadRef: object
    template: _NamingTemplate


class _NamingDeployment(TypedDict, total=False):
    spec: _NamingDeploymentSpec
    status: object


NAMING_DECODER: Final = PartialDecoder(_NamingDeployment)
"""A deployment with the parts of its template that name objects."""


def cached_kinds() -> tuple[CachedKind, ...]:
    deployments = CachedKind(
        Role.PROJECT,
        DEPLOYMENT,
        indexes={REFERENCE: index_by_reference, OPTIONAL: index_by_optional},
        decoder=NAMING_DECODER,
    )
    copies = CachedKind(
        Role.HUB, DEPLOYMENT, indexes=distribution.INDEXES, decoder=DEPLOYMENT_DECODER
    )
    sources = tuple(CachedKind(Role.PROJECT, kind, on_demand=IN_TEMPLATES) for kind in KINDS)
    companions = tuple(
        CachedKind(
            Role.HUB,
            kind,
            selector=COMPANIONS,
            indexes={IN_NAMESPACE: metadata_index(index_by_namespace)},
        )
        for kind in KINDS
    )
    return (deployments, copies, *sources, *companions)


def read_templates(setup: ControllerSetup) -> ControllerSetup:
    """A setup of another controller with a cache of deployments that decodes what the indexes here
    read: a store has one decoder.
    """
    kinds = tuple(
        replace(one, decoder=NAMING_DECODER) if _holds_templates(one) else one
        for one in setup.cached_kinds
    )
    return replace(setup, cached_kinds=kinds)


def _holds_templates(one: CachedKind) -> bool:
    return one.role is Role.PROJECT and one.kind == DEPLOYMENT
