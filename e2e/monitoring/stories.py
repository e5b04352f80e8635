"""Which trouble raises which alert on which cluster, and that a day without any raises none.

What a story raises is all that it raises: an alert that fires for a neighbour's trouble calls the
wrong person.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from e2e.monitoring import troubles
from e2e.monitoring.playing import Story, fired
from e2e.world import DFW, MANAGEMENT, ORD, Needs, World

QUOTA: Final = Needs(has_quota=True)
BOTH: Final = Needs(cells=(DFW, ORD), has_quota=True)

STORIES: Final = (
    Story(troubles.a_day_without_trouble, BOTH),
    Story(
        troubles.the_hub_is_away,
        QUOTA,
        {
            MANAGEMENT: fired(
                "ComputeHubDown critical",
                "ComputeFederationLagHigh warning",
                "ComputeFinalizersHeld warning",
            ),
            DFW.name: fired("ComputeCellHubDown warning", "ComputeWritebackLagHigh warning"),
        },
        # A key waits for its plane, and is looked at once meanwhile by the resync.
        breaks=("past the cap",),
    ),
    Story(
        troubles.a_project_is_away,
        QUOTA,
        {
            MANAGEMENT: fired(
                "ComputeProjectionLagHigh warning", "ComputeProjectsNotEngaged warning"
            )
        },
    ),
    Story(
        troubles.a_project_is_over_its_budget,
        QUOTA,
        {MANAGEMENT: fired("ComputeCacheLimited warning")},
    ),
    Story(
        troubles.quota_cannot_be_asked,
        QUOTA,
        {DFW.name: fired("ComputeQuotaBackendUnavailable critical")},
    ),
    Story(
        troubles.quota_is_not_enforced,
        Needs(),
        {
            DFW.name: fired(
                "ComputeQuotaEnforcementOff warning",
                stays=("ComputeQuotaEnforcementOff warning",),
            )
        },
    ),
    Story(
        troubles.a_link_comes_and_goes, QUOTA, {MANAGEMENT: fired("ComputeWatchFlapping warning")}
    ),
    Story(
        troubles.a_cell_has_no_operator,
        QUOTA,
        {
            MANAGEMENT: fired("ComputeDeploymentsWithoutCell warning"),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
    Story(
        troubles.nobody_can_take_the_lease,
        Needs(has_quota=True, expects_errors=True),
        {MANAGEMENT: fired("ComputeNoLeader critical")},
    ),
    Story(
        troubles.somebody_fights_over_an_object,
        QUOTA,
        {MANAGEMENT: fired("ComputeControllerReconcileStorm warning")},
    ),
    Story(
        troubles.a_webhook_on_the_hub_is_broken,
        QUOTA,
        {MANAGEMENT: fired("ComputeReconcileErrors warning", "ComputeFederationLagHigh warning")},
    ),
    Story(
        troubles.a_certificate_is_not_renewed,
        QUOTA,
        {MANAGEMENT: fired("ComputeCertificateExpiring critical")},
    ),
    Story(
        troubles.objects_on_the_hub_say_what_cannot_be,
        Needs(cells=(DFW, ORD), has_quota=True, expects_errors=True),
        {
            MANAGEMENT: fired(
                "ComputeObjectsQuarantined critical", "ComputeObjectsQuarantined warning"
            ),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
    Story(
        troubles.a_place_on_the_hub_is_somebody_elses,
        QUOTA,
        {MANAGEMENT: fired("ComputeIdentityConflict warning")},
    ),
    Story(
        troubles.two_cells_serve_one_city,
        Needs(cells=(DFW, troubles.UNTOLD), has_quota=True),
        {MANAGEMENT: fired("ComputeCityAmbiguous critical")},
    ),
    Story(
        troubles.a_cell_takes_slots_of_another,
        BOTH,
        {
            MANAGEMENT: fired("ComputeMisplacedClaims critical"),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
    Story(
        troubles.a_cell_claims_for_nothing,
        BOTH,
        {
            MANAGEMENT: fired("ComputeUnbackedClaims warning"),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
    Story(
        troubles.a_crowd_vanished_unseen,
        QUOTA,
        {
            MANAGEMENT: fired("ComputeMassDeleteRefused critical"),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
)


def story_of(body: Callable[[World], Awaitable[None]]) -> Story:
    return next(story for story in STORIES if story.body is body)
