"""Writer of the provider: carries out one plan with requests of the official client.

The one place that creates and deletes Pods and NetworkPolicies and writes status. A Pod is rendered
from the Instance as read live just before the POST, and every permission is asked again of that
read: a gate or a deletion between the plan and the POST starts nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from compute_api_types.v1alpha.instance import Instance
from compute_api_types.wire import JsonObject
from compute_operator_kit.core.errors import RejectedError
from compute_operator_kit.core.keys import Kind, ObjectKey, PlaneName, Uid
from compute_operator_kit.core.metrics import MetricsPort
from compute_operator_kit.intents.intents import RecordEvent
from compute_pod_provider import metrics as metric_names
from compute_pod_provider import plan as planning
from compute_pod_provider.answers import derive_cause, judge_answer
from compute_pod_provider.cluster.client import Answer, ClusterClient
from compute_pod_provider.instance_facts import ObservedInstance, object_at, read_instance, text_at
from compute_pod_provider.observe import InstanceKey, derive_version
from compute_pod_provider.options import PodOptions
from compute_pod_provider.plan import EventIntent, Memory, Observed, Plan, Post, PostResult
from compute_pod_provider.pod_facts import derive_controller_uid
from compute_pod_provider.render import render, render_policy
from compute_pod_provider.render.refusal import Refusal

INSTANCE: Final = Kind.of(Instance.RESOURCE)
HOME: Final = PlaneName("@home")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a plan: the memory of the next pass, and what the indexes must reach."""

    memory: Memory
    version: str = ""  # of the Instance after our write
    pod_uid: str = ""  # of a Pod that was created


class Applier:
    """See the module's text."""

    def __init__(
        self,
        client: ClusterClient,
        options: PodOptions,
        record: Callable[[RecordEvent], None],
        metrics: MetricsPort,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._options = options
        self._record = record
        self._metrics = metrics
        self._now = now

    async def apply(self, key: InstanceKey, observed: Observed, plan: Plan) -> Applied:
        """Deletes, creates, then reports; raises the kit's errors."""
        instance = observed.instance
        if plan.deletes_pod:
            logger.info("Deleting Pod", extra=_shown(key))
            await self._client.delete_pod(key.namespace, key.name, plan.deletes_pod)
        applied = Applied(plan.memory)
        if plan.creates_pod:
            applied = await self._create(key, instance, plan.memory)
        if plan.status is not None:
            body = plan.status
            written = await self._client.patch_status(key.namespace, key.name, body)
            version = "" if written is None else derive_version(written)
            applied = replace(applied, version=version)
        for event in plan.events:
            self.record(key, instance.uid, event)
        # Once per report: at rest nothing is written, and nothing counted.
        if plan.refused is not None and plan.status is not None:
            self._metrics.count(metric_names.REFUSALS, reason=plan.refused.value)
        if plan.lost is not None:
            self._metrics.count(metric_names.PODS_RECREATED, reason=plan.lost.value)
        return applied

    def record(self, key: InstanceKey, uid: str, event: EventIntent) -> None:
        subject = ObjectKey(HOME, INSTANCE, key.namespace, key.name)
        self._record(
            RecordEvent(
                subject, Uid(uid), event.reason, event.message, event.reason, type=event.type
            )
        )

    async def _create(self, key: InstanceKey, seen: ObservedInstance, memory: Memory) -> Applied:
        document = await self._client.read_instance(key.namespace, key.name)
        live = None if document is None else read_instance(document)
        if live is None or live.uid != seen.uid or not planning.may_create(live, self._options):
            return Applied(memory)
        rendered = render(live, self._options)
        if isinstance(rendered, Refusal):  # edited meanwhile: the next pass reports it
            return Applied(memory)
        refused = await self._ensure_policy(key, live)
        if refused is not None:
            return Applied(replace(memory, post=refused))
        logger.info("Creating Pod", extra=_shown(key))
        answer = await self._client.create_pod(key.namespace, rendered)
        if answer.code in {200, 201}:
            return self._created(key, live, memory, answer)
        if answer.code == 409 and answer.reason == "AlreadyExists":
            return await self._adopt(key, live, memory)
        return Applied(replace(memory, post=self._judge(answer, live, "")))

    def _judge(self, answer: Answer, live: ObservedInstance, of: str) -> Post:
        """The verdict that an answer without success is; raises where it is none."""
        result = judge_answer(answer.code, answer.message)
        if result is None:
            self._client.check(answer)
            raise RejectedError("Rejected", f"creating: {answer.code} {answer.reason}".strip())
        self._metrics.count(metric_names.REFUSALS, reason=result.value)
        cause = f"{of}{derive_cause(answer.message)}"
        return Post(result, cause, self._now(), live.generation)

    async def _ensure_policy(self, key: InstanceKey, live: ObservedInstance) -> Post | None:
        """The NetworkPolicy is there before the Pod, as the Instance is now; a Post: it is not."""
        wanted = render_policy(live, self._options)
        if wanted is None:
            return None
        existing = await self._client.read_network_policy(key.namespace, key.name)
        if existing is not None:
            if derive_controller_uid(existing) != live.uid:
                return Post(PostResult.TAKEN, "NetworkPolicy", self._now(), live.generation)
            if existing.get("spec") == wanted["spec"]:
                return None
            await self._delete_policy(key, existing)
        logger.info("Creating NetworkPolicy", extra=_shown(key))
        answer = await self._client.create_network_policy(key.namespace, wanted)
        return None if answer.code in {200, 201} else self._judge(answer, live, "NetworkPolicy: ")

    async def remove_policy(self, key: InstanceKey, uid: str) -> None:
        """After the Pod of a deleted Instance is gone: its successor finds the name free."""
        if not self._options.has_network_policies:
            return
        existing = await self._client.read_network_policy(key.namespace, key.name)
        if existing is not None and derive_controller_uid(existing) == uid:
            await self._delete_policy(key, existing)

    async def _delete_policy(self, key: InstanceKey, existing: JsonObject) -> None:
        uid = text_at(object_at(existing, "metadata"), "uid")
        await self._client.delete_network_policy(key.namespace, key.name, uid)

    def _created(
        self, key: InstanceKey, live: ObservedInstance, memory: Memory, answer: Answer
    ) -> Applied:
        uid = text_at(object_at(answer.document, "metadata"), "uid")
        created = EventIntent("Normal", planning.POD_CREATED, f'Pod "{key.name}" was created')
        self.record(key, live.uid, created)
        if memory.ungated_at is not None and not memory.recreations:
            waited = (self._now() - memory.ungated_at).total_seconds()
            self._metrics.observe(metric_names.START_SECONDS, waited)
        return Applied(replace(memory, made_uid=uid), pod_uid=live.uid)

    async def _adopt(self, key: InstanceKey, live: ObservedInstance, memory: Memory) -> Applied:
        """The name is taken: by our own Pod of a POST without answer, or by a foreign one."""
        document = await self._client.read_pod(key.namespace, key.name)
        if document is not None and derive_controller_uid(document) == live.uid:
            uid = text_at(object_at(document, "metadata"), "uid")
            return Applied(replace(memory, made_uid=uid), pod_uid=live.uid)
        post = Post(PostResult.TAKEN, "Pod", self._now(), live.generation)
        return Applied(replace(memory, post=post))


def _shown(key: InstanceKey) -> dict[str, str]:
    return {"Instance": f"{key.namespace}/{key.name}"}
