"""The resource detector: finds the policy of every object, claims the object, writes its binding.

```
claimed ─► policy still selects it ─► binding updated     no ─► frozen: nothing is sent any more
unclaimed ─► a policy selects it ─► claimed ─► binding    none ─► one retry, then waiting
```
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.client.informer import Informer
from compute_sim_planes.client.rest import Resource
from compute_sim_planes.client.workqueue import namespaced_name
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.karmada.bindings.resource_binding import (
    derive_binding,
    has_other_owner,
    update_binding,
)
from compute_sim_planes.karmada.claims import (
    Claim,
    claim_of,
    find_claim,
    with_claim,
    without_claim,
)
from compute_sim_planes.karmada.event_recorder import EventText
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.kinds import BINDINGS
from compute_sim_planes.karmada.metadata import (
    is_desired_state_changed,
    is_terminating,
    name_of,
    namespace_of,
)
from compute_sim_planes.karmada.names import derive_binding_name, is_propagated
from compute_sim_planes.karmada.policies.matching import choose_policy, match_selectors
from compute_sim_planes.karmada.retry_queue import RequeueError, RetryQueue
from compute_sim_planes.karmada.templates import TemplateKey, Templates

COMPONENT: Final = "resource-detector"
_OTHER_OWNER: Final = (
    "failed to update binding due to different owner reference UID, will try again later after "
    "binding is garbage collected, see https://github.com/karmada-io/karmada/issues/2090"
)


class Detector:
    """Reconciles objects of all kinds that policies select."""

    def __init__(self, hub: Hub, templates: Templates, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._templates = templates
        self._waiting: set[TemplateKey] = set()
        self._queue = RetryQueue(self._reconcile, tasks, "detector", hub.options)
        templates.on_informer_started(self._listen)

    def enqueue(self, template: TemplateKey) -> None:
        self._queue.add(template)

    def enqueue_waiting(self, policy: JsonObject) -> None:
        """Enqueue the waiting objects that a new or changed policy selects."""
        for template in [*self._waiting]:
            existing = self._templates.get(template)
            if existing is not None and match_selectors(existing, policy):
                self._waiting.discard(template)
                self.enqueue(template)

    async def release(self, resource: Resource, existing: JsonObject, permanent_id: str) -> None:
        """Remove a policy's claim from an object and its binding; the binding first, so that a
        retry still finds the object by its claim.
        """
        name = derive_binding_name(string_at(existing, "kind"), name_of(existing))
        binding = self._hub.bindings.get(name, namespace_of(existing))
        for kind, one in ((BINDINGS, binding), (resource, existing)):
            claim = find_claim(one) if one is not None else None
            if one is not None and claim is not None and claim.permanent_id == permanent_id:
                await self._hub.client.update(kind, without_claim(one))

    def _listen(self, informer: Informer) -> None:
        resource = informer.resource

        def on_change(before: JsonObject | None, after: JsonObject | None) -> None:
            changed = after or before
            # Cluster-scoped objects have bindings of another kind, which is not simulated.
            if (
                changed is None
                or not namespace_of(changed)
                or not is_propagated(namespace_of(changed))
            ):
                return
            # A change of the aggregated status does not concern members.
            if before is None or after is None or is_desired_state_changed(before, after):
                self.enqueue(TemplateKey(resource, namespaced_name(changed)))

        informer.listen(on_change)

    async def _reconcile(self, template: TemplateKey) -> timedelta | None:
        existing = self._templates.get(template)
        if existing is None:
            # The hub's garbage collector deletes its binding.
            self._waiting.discard(template)
            return None
        claim = find_claim(existing)
        if claim is not None:
            await self._sync_claimed(template.resource, existing, claim)
            return None
        policy = self._choose(existing)
        if policy is not None:
            self._waiting.discard(template)
            await self._apply(template.resource, existing, policy)
        elif template not in self._waiting:
            # Object and policy may have been created at the same time: retry once.
            self._waiting.add(template)
            raise RequeueError("no matched propagation policy")
        return None

    def _choose(self, existing: JsonObject) -> JsonObject | None:
        namespace = namespace_of(existing)
        near = self._hub.policies.find(namespace_of, namespace)
        return choose_policy(existing, near) or choose_policy(
            existing, self._hub.cluster_policies.items()
        )

    async def _sync_claimed(self, resource: Resource, existing: JsonObject, claim: Claim) -> None:
        policies = self._hub.policies if claim.namespace else self._hub.cluster_policies
        policy = policies.get(claim.name, claim.namespace)
        if policy is None:
            # The policy was deleted before its controller saw this claim.
            await self.release(resource, existing, claim.permanent_id)
        elif is_terminating(policy):
            raise RequeueError(f"policy {claim.name!r} is being deleted")
        elif match_selectors(existing, policy):
            await self._apply(resource, existing, policy)

    async def _apply(self, resource: Resource, existing: JsonObject, policy: JsonObject) -> None:
        claim = claim_of(policy)
        shown = f"{claim.namespace}/{claim.name}" if claim.namespace else claim.name
        what = "policy" if claim.namespace else "cluster policy"
        if not claim.permanent_id:
            raise RequeueError(f"policy {shown!r} has no permanent id yet")
        try:
            has_changed = await self._bind(resource, existing, policy, claim)
        except (ApiError, RequeueError) as failure:
            cause = failure.message if isinstance(failure, ApiError) else str(failure)
            message = f"Apply {what}({shown}) failed: {cause}"
            self._record_event(
                existing, EventText(COMPONENT, "Warning", "ApplyPolicyFailed", message)
            )
            raise
        if has_changed:
            message = f"Apply {what}({shown}) succeed"
            self._record_event(
                existing, EventText(COMPONENT, "Normal", "ApplyPolicySucceed", message)
            )

    async def _bind(
        self, resource: Resource, existing: JsonObject, policy: JsonObject, claim: Claim
    ) -> bool:
        if find_claim(existing) != claim:
            existing = await self._hub.client.update(resource, with_claim(existing, claim))
        name = derive_binding_name(string_at(existing, "kind"), name_of(existing))
        binding = self._hub.bindings.get(name, namespace_of(existing))
        if binding is None:
            desired = derive_binding(existing, policy, claim, self._hub.identities.uid())
            await self._hub.client.create(BINDINGS, desired)
            return True
        if has_other_owner(binding, existing):
            raise RequeueError(_OTHER_OWNER)
        desired = update_binding(binding, existing, policy, claim)
        if desired == binding:
            return False
        await self._hub.client.update(BINDINGS, desired)
        return True

    def _record_event(self, about: JsonObject, event: EventText) -> None:
        self._hub.events.record(about, event)
