"""What of a Workload and of a WorkloadDeployment is looked at without its template: by indexes, by
mapping functions, and by passes that copy nothing.
"""

from __future__ import annotations

from typing import Final, TypedDict

from compute_operator_kit.outline import Outline


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
    scaleSettings: object
    workloadRef: object


class _Deployment(TypedDict, total=False):
    spec: _DeploymentSpec
    status: object


WORKLOAD_OUTLINE: Final = Outline(_Workload)
DEPLOYMENT_OUTLINE: Final = Outline(_Deployment)
