"""The detector: finds the policy of every object, claims it, and writes its binding.

```
claimed ─► its policy still selects it? ─► binding follows   no ─► frozen: nothing is sent any more
unclaimed ─► a policy selects it ─► claimed ─► binding       none ─► one retry, then waiting
```
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from compute_sim_planes.client import Resource
from compute_sim_planes.client_errors import ApiError
from compute_sim_planes.json_types import JsonObject, string_at
from compute_sim_planes.karmada.bindings import derive_binding, has_other_owner, renew_binding
from compute_sim_planes.karmada.claims import (
    Claim,
    claim_of,
    find_claim,
    with_claim,
    without_claim,
)
from compute_sim_planes.karmada.events import Said
from compute_sim_planes.karmada.hub import Hub
from compute_sim_planes.karmada.informer import Informer
from compute_sim_planes.karmada.kinds import BINDINGS
from compute_sim_planes.karmada.matching import choose_policy, match_selectors
from compute_sim_planes.karmada.metadata import (
    is_going,
    is_respecified,
    name_of,
    namespace_of,
)
from compute_sim_planes.karmada.names import derive_binding_name, is_propagated
from compute_sim_planes.karmada.retrying import NotYetError, Retrying
from compute_sim_planes.karmada.templates import TemplateKey, Templates
from compute_sim_planes.keyed_work import key_of

COMPONENT: Final = "resource-detector"
_OTHER_OWNER: Final = (
    "failed to update binding due to different owner reference UID, will try again later after "
    "binding is garbage collected, see https://github.com/karmada-io/karmada/issues/2090"
)


class Detector:
    """Over all kinds that policies name."""

    def __init__(self, hub: Hub, templates: Templates, tasks: asyncio.TaskGroup) -> None:
        self._hub = hub
        self._templates = templates
        self._waiting: set[TemplateKey] = set()
        self._queue = Retrying(self._look, tasks, "detector", hub.knobs)
        templates.on_begun(self._listen)

    def enqueue(self, template: TemplateKey) -> None:
        self._queue.add(template)

    def enqueue_waiting(self, policy: JsonObject) -> None:
        """A policy is new or has changed: whatever waits for one like it is looked at again."""
        for template in [*self._waiting]:
            found = self._templates.get(template)
            if found is not None and match_selectors(found, policy):
                self._waiting.discard(template)
                self.enqueue(template)

    async def release(self, resource: Resource, found: JsonObject, permanent_id: str) -> None:
        """Takes a policy's claim off an object and its binding, the binding first: while the object
        carries it, a retry still finds it.
        """
        name = derive_binding_name(string_at(found, "kind"), name_of(found))
        binding = self._hub.bindings.get(name, namespace_of(found))
        for kind, one in ((BINDINGS, binding), (resource, found)):
            claim = find_claim(one) if one is not None else None
            if one is not None and claim is not None and claim.permanent_id == permanent_id:
                await self._hub.client.update(kind, without_claim(one))

    def _listen(self, informer: Informer) -> None:
        resource = informer.resource

        def on_change(before: JsonObject | None, after: JsonObject | None) -> None:
            found = after or before
            # Objects without a namespace have bindings of another kind, which nobody here needs.
            if found is None or not namespace_of(found) or not is_propagated(namespace_of(found)):
                return
            # Aggregated status is no reason to send anything down again.
            if before is None or after is None or is_respecified(before, after):
                self.enqueue(TemplateKey(resource, key_of(found)))

        informer.listen(on_change)

    async def _look(self, template: TemplateKey) -> timedelta | None:
        found = self._templates.get(template)
        if found is None:
            # Its binding goes with it: the hub's garbage collector sees to that.
            self._waiting.discard(template)
            return None
        claim = find_claim(found)
        if claim is not None:
            await self._follow_claim(template.resource, found, claim)
            return None
        policy = self._choose(found)
        if policy is not None:
            self._waiting.discard(template)
            await self._apply(template.resource, found, policy)
        elif template not in self._waiting:
            # Object and policy may have come at the same time: one more look.
            self._waiting.add(template)
            raise NotYetError("no matched propagation policy")
        return None

    def _choose(self, found: JsonObject) -> JsonObject | None:
        namespace = namespace_of(found)
        near = self._hub.policies.find(namespace_of, namespace)
        return choose_policy(found, near) or choose_policy(
            found, self._hub.cluster_policies.items()
        )

    async def _follow_claim(self, resource: Resource, found: JsonObject, claim: Claim) -> None:
        policies = self._hub.policies if claim.namespace else self._hub.cluster_policies
        policy = policies.get(claim.name, claim.namespace)
        if policy is None:
            # It went before it could see that this object was its own.
            await self.release(resource, found, claim.permanent_id)
        elif is_going(policy):
            raise NotYetError(f"policy {claim.name!r} is being deleted")
        elif match_selectors(found, policy):
            await self._apply(resource, found, policy)

    async def _apply(self, resource: Resource, found: JsonObject, policy: JsonObject) -> None:
        claim = claim_of(policy)
        shown = f"{claim.namespace}/{claim.name}" if claim.namespace else claim.name
        what = "policy" if claim.namespace else "cluster policy"
        if not claim.permanent_id:
            raise NotYetError(f"policy {shown!r} has no permanent id yet")
        try:
            has_changed = await self._bind(resource, found, policy, claim)
        except (ApiError, NotYetError) as failure:
            told = failure.message if isinstance(failure, ApiError) else str(failure)
            message = f"Apply {what}({shown}) failed: {told}"
            self._say(found, Said(COMPONENT, "Warning", "ApplyPolicyFailed", message))
            raise
        if has_changed:
            message = f"Apply {what}({shown}) succeed"
            self._say(found, Said(COMPONENT, "Normal", "ApplyPolicySucceed", message))

    async def _bind(
        self, resource: Resource, found: JsonObject, policy: JsonObject, claim: Claim
    ) -> bool:
        if find_claim(found) != claim:
            found = await self._hub.client.update(resource, with_claim(found, claim))
        name = derive_binding_name(string_at(found, "kind"), name_of(found))
        binding = self._hub.bindings.get(name, namespace_of(found))
        if binding is None:
            wanted = derive_binding(found, policy, claim, self._hub.identities.uid())
            await self._hub.client.create(BINDINGS, wanted)
            return True
        if has_other_owner(binding, found):
            raise NotYetError(_OTHER_OWNER)
        wanted = renew_binding(binding, found, policy, claim)
        if wanted == binding:
            return False
        await self._hub.client.update(BINDINGS, wanted)
        return True

    def _say(self, about: JsonObject, said: Said) -> None:
        self._hub.events.say(about, said)
