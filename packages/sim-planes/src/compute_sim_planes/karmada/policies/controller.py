"""The policy controller: claims and releases objects when policies change or are deleted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from compute_sim_planes.client.informer import Informer
from compute_sim_planes.client.rest import Resource
from compute_sim_planes.client.workqueue import NamespacedName, namespaced_name
from compute_sim_planes.json_types import JsonObject, object_at, objects_at, string_at
from compute_sim_planes.karmada.claims import claim_of
from compute_sim_planes.karmada.hub import Hub, claim_id_of
from compute_sim_planes.karmada.kinds import (
    CLUSTER_POLICY_FINALIZER,
    POLICIES,
    POLICY_FINALIZER,
)
from compute_sim_planes.karmada.metadata import (
    finalizers_of,
    is_desired_state_changed,
    is_terminating,
    without_finalizer,
)
from compute_sim_planes.karmada.policies.admission import complete_policy
from compute_sim_planes.karmada.policies.detector import Detector
from compute_sim_planes.karmada.policies.matching import match_selectors
from compute_sim_planes.karmada.retry_queue import RetryQueue
from compute_sim_planes.karmada.templates import TemplateKey, Templates


@dataclass(frozen=True, slots=True)
class _PolicyKey:
    resource: Resource
    key: NamespacedName


class PolicyController:
    """Reconciles policies of both kinds."""

    def __init__(
        self, hub: Hub, templates: Templates, detector: Detector, tasks: asyncio.TaskGroup
    ) -> None:
        self._hub = hub
        self._templates = templates
        self._detector = detector
        self._queue = RetryQueue(self._reconcile, tasks, "policies", hub.options)

    def start(self) -> None:
        for informer in (self._hub.policies, self._hub.cluster_policies):
            self._listen(informer)

    def _listen(self, informer: Informer) -> None:
        resource = informer.resource

        def on_change(before: JsonObject | None, after: JsonObject | None) -> None:
            if after is not None and (before is None or is_desired_state_changed(before, after)):
                self._templates.name_kinds(after)
                self._queue.add(_PolicyKey(resource, namespaced_name(after)))

        informer.listen(on_change)

    async def _reconcile(self, policy_key: _PolicyKey) -> timedelta | None:
        is_near = policy_key.resource == POLICIES
        informer = self._hub.policies if is_near else self._hub.cluster_policies
        policy = informer.get(policy_key.key.name, policy_key.key.namespace)
        if policy is None:
            return None
        if is_terminating(policy):
            await self._release_all(policy)
            finalizer = POLICY_FINALIZER if is_near else CLUSTER_POLICY_FINALIZER
            if finalizer in finalizers_of(policy):
                desired = without_finalizer(policy, finalizer)
                await self._hub.client.update(policy_key.resource, desired)
            return None
        completed = complete_policy(None, policy, self._hub.identities)
        if completed != policy:
            # The hub has no admission of Karmada's: complete the policy here.
            await self._hub.client.update(policy_key.resource, completed)
            return None
        await self._sync_claims(policy)
        return None

    async def _release_all(self, policy: JsonObject) -> None:
        """Remove the policy's claims; bindings, Works and copies stay."""
        permanent_id = claim_of(policy).permanent_id
        for resource, existing in self._claimed(policy):
            await self._detector.release(resource, existing, permanent_id)

    async def _sync_claims(self, policy: JsonObject) -> None:
        permanent_id = claim_of(policy).permanent_id
        for resource, existing in self._claimed(policy):
            if match_selectors(existing, policy):
                self._detector.enqueue(TemplateKey(resource, namespaced_name(existing)))
            else:
                await self._detector.release(resource, existing, permanent_id)
        self._detector.enqueue_waiting(policy)

    def _claimed(self, policy: JsonObject) -> list[tuple[Resource, JsonObject]]:
        """All objects of a policy: by its bindings, because its selectors may have changed, and by
        its selectors, because an object may have no binding yet.
        """
        permanent_id = claim_of(policy).permanent_id
        claimed: dict[TemplateKey, JsonObject] = {}
        for binding in self._hub.bindings.find(claim_id_of, permanent_id):
            claimed.update(self._template_of(object_at(binding, "spec", "resource")))
        for resource in self._selected(policy):
            for template in self._templates.find(resource, permanent_id):
                claimed[TemplateKey(resource, namespaced_name(template))] = template
        return [(one.resource, template) for one, template in claimed.items()]

    def _template_of(self, reference: JsonObject) -> dict[TemplateKey, JsonObject]:
        resource = self._templates.find_kind(
            string_at(reference, "apiVersion"), string_at(reference, "kind")
        )
        if resource is None:
            return {}
        key = NamespacedName(string_at(reference, "namespace"), string_at(reference, "name"))
        template = self._templates.get(TemplateKey(resource, key))
        return {} if template is None else {TemplateKey(resource, key): template}

    def _selected(self, policy: JsonObject) -> list[Resource]:
        kinds = {
            (string_at(one, "apiVersion"), string_at(one, "kind"))
            for one in objects_at(policy, "spec", "resourceSelectors")
        }
        known = (self._templates.find_kind(*kind) for kind in sorted(kinds))
        return [resource for resource in known if resource is not None]
