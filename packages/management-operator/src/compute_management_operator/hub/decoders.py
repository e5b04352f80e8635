"""Partial decoders of Workload and WorkloadDeployment, which leave out the template.

Indexes, mapping functions and reconciles that copy nothing read only these members; decoding the
template, the largest part of both kinds, would take most of their time.
"""

from __future__ import annotations

from typing import Final, TypedDict

from compute_operator_kit.core.partial_decoder import PartialDecoder


class _TemplateSpec(TypedDict, total=False):
    networkInterfaces: object


class _Template(TypedDict, total=False):
    spec: _TemplateSpec


class _WorkloadSpec(TypedDict, total=False):
    placements: object
    template: _Template


class _Workload(TypedDict, total=False):
    spec: _WorkloadSpec
    status: object


class _DeploymentSpec(TypedDict, total=False):
    cityCode: object
    placementName: object
    replicas: object
    scaleSettings: object
    workloadRef: object


class _Deployment(TypedDict, total=False):
    spec: _DeploymentSpec
    status: object


WORKLOAD_DECODER: Final = PartialDecoder(_Workload)
DEPLOYMENT_DECODER: Final = PartialDecoder(_Deployment)
