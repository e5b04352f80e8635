"""The alerts that each incident fires on each cluster; a day without incidents fires none.

A case lists all its alerts: an alert that also fires for the fault of another system would call the
wrong team.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from e2e.deploy_checks.monitoring import incidents
from e2e.deploy_checks.monitoring.alert_runs import AlertCase, fired
from e2e.world.scenario import DFW, MANAGEMENT, ORD, Needs, World

QUOTA: Final = Needs(has_quota=True)
BOTH: Final = Needs(cells=(DFW, ORD), has_quota=True)

ALERT_CASES: Final = (
    AlertCase(incidents.a_day_without_trouble, BOTH),
    AlertCase(
        incidents.the_hub_is_away,
        QUOTA,
        {
            MANAGEMENT: fired(
                "ComputeHubDown critical",
                "ComputeFederationLagHigh warning",
                "ComputeFinalizersHeld warning",
            ),
            DFW.name: fired("ComputeCellHubDown warning", "ComputeWritebackLagHigh warning"),
        },
        # The resync reconciles a key once while it is blocked on its plane.
        breaks=("past the cap",),
    ),
    AlertCase(
        incidents.a_project_is_away,
        QUOTA,
        {
            MANAGEMENT: fired(
                "ComputeProjectionLagHigh warning", "ComputeProjectsNotEngaged warning"
            )
        },
    ),
    AlertCase(
        incidents.a_project_is_over_its_budget,
        QUOTA,
        {MANAGEMENT: fired("ComputeCacheLimited warning")},
    ),
    AlertCase(
        incidents.quota_cannot_be_asked,
        QUOTA,
        {DFW.name: fired("ComputeQuotaBackendUnavailable critical")},
    ),
    AlertCase(
        incidents.quota_is_not_enforced,
        Needs(),
        {
            DFW.name: fired(
                "ComputeQuotaEnforcementOff warning",
                stays=("ComputeQuotaEnforcementOff warning",),
            )
        },
    ),
    AlertCase(
        incidents.a_link_comes_and_goes, QUOTA, {MANAGEMENT: fired("ComputeWatchFlapping warning")}
    ),
    AlertCase(
        incidents.a_cell_has_no_operator,
        QUOTA,
        {
            MANAGEMENT: fired("ComputeDeploymentsWithoutCell warning"),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
    AlertCase(
        incidents.the_lease_cannot_be_taken,
        Needs(has_quota=True, expects_errors=True),
        {MANAGEMENT: fired("ComputeNoLeader critical")},
    ),
    AlertCase(
        incidents.another_controller_fights_over_an_object,
        QUOTA,
        {MANAGEMENT: fired("ComputeControllerReconcileStorm warning")},
    ),
    AlertCase(
        incidents.a_webhook_on_the_hub_is_broken,
        QUOTA,
        {MANAGEMENT: fired("ComputeReconcileErrors warning", "ComputeFederationLagHigh warning")},
    ),
    AlertCase(
        incidents.a_certificate_is_not_renewed,
        QUOTA,
        {MANAGEMENT: fired("ComputeCertificateExpiring critical")},
    ),
    AlertCase(
        incidents.objects_on_the_hub_say_what_cannot_be,
        Needs(cells=(DFW, ORD), has_quota=True, expects_errors=True),
        {
            MANAGEMENT: fired(
                "ComputeObjectsQuarantined critical", "ComputeObjectsQuarantined warning"
            ),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
    AlertCase(
        incidents.a_name_on_the_hub_is_taken,
        QUOTA,
        {MANAGEMENT: fired("ComputeIdentityConflict warning")},
    ),
    AlertCase(
        incidents.two_cells_serve_one_city,
        Needs(cells=(DFW, incidents.ORD_WITHOUT_CITY), has_quota=True),
        {MANAGEMENT: fired("ComputeCityAmbiguous critical")},
    ),
    AlertCase(
        incidents.a_cell_takes_slots_of_another,
        BOTH,
        {
            MANAGEMENT: fired("ComputeMisplacedClaims critical"),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
    AlertCase(
        incidents.a_cell_claims_for_nothing,
        BOTH,
        {
            MANAGEMENT: fired("ComputeUnbackedClaims warning"),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
    AlertCase(
        incidents.a_crowd_vanished_unseen,
        QUOTA,
        {
            MANAGEMENT: fired("ComputeMassDeleteRefused critical"),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
)


def case_of(body: Callable[[World], Awaitable[None]]) -> AlertCase:
    return next(story for story in ALERT_CASES if story.body is body)
