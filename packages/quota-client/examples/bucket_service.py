"""Bucket service: a kopf operator that claims quota for every Bucket and releases it with it.

A Bucket that became ready without a grant would use storage that its project does not have; one
that is gone and still claims would take it from the next. Run it in a pod:
`kopf run bucket_service.py`.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Final

import kopf

from compute_quota_client import (
    Claim,
    Denied,
    Foreign,
    Granted,
    Invalid,
    Mismatch,
    Pending,
    ProjectQuota,
    QuotaClient,
    QuotaError,
    Releasing,
    project_ref,
)

BUCKETS: Final = "buckets.storage.example.com"
GIB: Final = "storage.example.com/gib"
OWNER: Final = {"storage.example.com/region": "lhr"}
WITHIN: Final = timedelta(seconds=5)
AGAIN: Final = 30.0  # a denial is final: the next claim is a new one, half a minute later


def connect() -> QuotaClient:
    """In a pod by its service account, elsewhere by the kubeconfig that the environment names."""
    kubeconfig = os.environ.get("QUOTA_KUBECONFIG")
    if kubeconfig:
        return QuotaClient.from_kubeconfig(kubeconfig)
    return QuotaClient.in_cluster(os.environ.get("QUOTA_SERVER"))


def a_claim(project: str, name: str, uid: str, size: int) -> Claim:
    """The claim of one Bucket: its name is the Bucket's, its subject the Bucket's UID."""
    return Claim(
        namespace="default",
        name=f"bucket-{name}",
        requests={GIB: size},
        consumer=project_ref(project),
        owner=OWNER,
        subject={"storage.example.com/bucket-uid": uid},
    )


async def claim(quota: ProjectQuota, wanted: Claim, again: float = AGAIN) -> str:
    """The message of the grant; anything else is an error that kopf handles.

    Raises:
        kopf.TemporaryError: not now; called again later.
        kopf.PermanentError: never, without a change of the Bucket or of the claim.
    """
    try:
        verdict = await quota.claim_and_wait(wanted, within=WITHIN)
        match verdict:
            case Granted(message=message):
                return message
            case Pending() | Releasing():
                raise kopf.TemporaryError("its quota is not decided yet", delay=1)
            case Denied(found=found, message=message) | Invalid(found=found, message=message):
                # What fitted of it would stay reserved until it is released.
                await quota.release(wanted.namespace, wanted.name, uid=found.uid)
                raise kopf.TemporaryError(message, delay=again)
            case Mismatch() | Foreign():
                raise kopf.PermanentError(f"claim {wanted.name} is not of this Bucket")
    except QuotaError as error:
        raise kopf.TemporaryError(str(error), delay=5) from error


def register(
    registry: kopf.OperatorRegistry, quota: QuotaClient, project: str, again: float = AGAIN
) -> None:
    """Adds the handlers; kopf repeats each until it succeeds, also after a restart."""
    of_project = quota.project(project)

    @kopf.on.create(BUCKETS, registry=registry)
    async def on_create(
        name: str, uid: str, spec: kopf.Spec, patch: kopf.Patch, **_: object
    ) -> None:
        wanted = a_claim(project, name, uid, int(spec["sizeGiB"]))
        try:
            message = await claim(of_project, wanted, again)
        except kopf.TemporaryError as waiting:
            patch.status.update(phase="Waiting", message=str(waiting))
            raise
        patch.status.update(phase="Ready", message=message)

    @kopf.on.delete(BUCKETS, registry=registry)
    async def on_delete(name: str, uid: str, **_: object) -> None:
        # The size is no part of what a claim is recognised by.
        gone = a_claim(project, name, uid, 1)
        try:
            await of_project.release(
                gone.namespace, gone.name, owner=gone.owner, subject=gone.subject
            )
        except QuotaError as error:  # the finalizer stays until it is released
            raise kopf.TemporaryError(str(error), delay=5) from error


if os.environ.get("QUOTA_PROJECT"):  # under `kopf run`; tests register handlers themselves
    register(kopf.get_default_registry(), connect(), os.environ["QUOTA_PROJECT"])
