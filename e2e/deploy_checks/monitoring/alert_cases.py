"""The alerts that each incident fires on each cluster; a day without incidents fires none.

A case lists all its alerts: an alert that also fires for the fault of another system would call the
wrong team.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from e2e.deploy_checks.monitoring import incidents
from e2e.deploy_checks.monitoring.alert_runs import AlertCase, fired
from e2e.deploy_checks.monitoring.recording import ScrapeRecording
from e2e.deploy_checks.monitoring.rules import load_scrape_interval
from e2e.deploy_checks.monitoring.scraping import ExposedMeasures, parse_exposition
from e2e.world.scenario import DFW, MANAGEMENT, ORD, Needs, World

QUOTA: Final = Needs(has_quota=True)
BOTH: Final = Needs(cells=(DFW, ORD), has_quota=True)
WITH_DATA: Final = Needs(has_quota=True, reads_data=True)

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
            MANAGEMENT: fired(
                "ComputeDeploymentsWithoutCell warning", "ComputeCellHalfHeard warning"
            ),
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
                "ComputeObjectsQuarantined critical",
                "ComputeObjectsQuarantined warning",
                "ComputeCellHalfHeard warning",
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
        incidents.a_cell_does_not_hear_that_its_project_is_suspended,
        QUOTA,
        {
            MANAGEMENT: fired(
                "ComputeSuspensionUnconfirmed critical",
                "ComputeDeploymentsWithoutCell warning",  # the order could not be delivered
                "ComputeCellHalfHeard warning",
            )
        },
    ),
    AlertCase(
        incidents.a_cell_takes_slots_of_another,
        BOTH,
        {
            MANAGEMENT: fired("ComputeMisplacedClaims critical", "ComputeCellHalfHeard warning"),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
    AlertCase(
        incidents.a_cell_claims_for_nothing,
        BOTH,
        {
            MANAGEMENT: fired("ComputeUnbackedClaims warning", "ComputeCellHalfHeard warning"),
            DFW.name: fired("ComputeNoLeader critical"),
        },
    ),
    AlertCase(
        incidents.a_site_is_not_heard,
        BOTH,
        {
            MANAGEMENT: fired("ComputeCellUnreachable critical"),
            ORD.name: fired("ComputeNoLeader critical"),
        },
    ),
    AlertCase(
        incidents.all_sites_are_not_heard,
        BOTH,
        {
            MANAGEMENT: fired("ComputeCellsWithheld critical"),
            DFW.name: fired("ComputeNoLeader critical"),
            ORD.name: fired("ComputeNoLeader critical"),
        },
    ),
    AlertCase(
        incidents.a_site_comes_and_goes,
        BOTH,
        {
            MANAGEMENT: fired("ComputeCellUnreachable critical", "ComputeCellFlapping warning"),
        },
        # From the third time on a cell counts as heard only after five minutes of renewals, when
        # everything else has been at rest for long.
        breaks=(
            "(projection) sent update Instance",
            "(federation) sent update WorkloadDeployment",
            "(events) sent patch Event",
            "projection looked at",
        ),
    ),
    AlertCase(
        incidents.autoscalers_have_no_metrics,
        QUOTA,
        {DFW.name: fired("ComputeAutoscalersFailing warning")},
    ),
    AlertCase(
        incidents.karmada_distributes_no_dependencies,
        WITH_DATA,
        {
            MANAGEMENT: fired("ComputeDependenciesNotPropagated critical"),
            DFW.name: fired("ComputeReferencedDataStuck warning"),
        },
    ),
    AlertCase(
        incidents.a_cell_refuses_the_copies,
        WITH_DATA,
        {DFW.name: fired("ComputeReferencedDataStuck warning")},
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


# The pod provider runs on kopf and the wall clock and is part of no simulated run: what it counts
# is counted here, and exposed as it exposes it.
OF_PROVIDER: Final = fired("ComputeInstancesNotStopping warning")


def record_a_pod_that_does_not_end() -> ScrapeRecording:
    """An hour of a pod provider whose first stuck teardown is counted after ten minutes."""
    measures, recording = ExposedMeasures("compute-pod-provider"), ScrapeRecording()
    every = load_scrape_interval()
    try:
        for scrape in range(timedelta(hours=1) // every):
            if scrape == timedelta(minutes=10) // every:
                measures.count("compute_pod_provider_stuck_teardowns_total")
            exposed = measures.metrics.render().decode()
            recording.add(dict(parse_exposition(exposed, "provider")))
    finally:
        measures.metrics.shut_down()
    return recording


def case_of(body: Callable[[World], Awaitable[None]]) -> AlertCase:
    return next(story for story in ALERT_CASES if story.body is body)
