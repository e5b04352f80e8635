"""`cities`: cells, deployments and Instances per city, and what waits there."""

from __future__ import annotations

import argparse
from typing import Final

from compute_kubectl.commands import flags
from compute_kubectl.commands.exits import NOT_JUDGED, NOT_READY, READY, CommandError
from compute_kubectl.commands.session import Session
from compute_kubectl.read.questions import Scope
from compute_kubectl.render.view_documents import cities_document
from compute_kubectl.render.views import render_cities
from compute_kubectl.snapshot.access import Access
from compute_kubectl.views.cities import City, derive_cities

EXAMPLES: Final = """\
  kubectl compute cities -n shop
  kubectl compute cities --all-projects --hub-context hub
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all-projects", action="store_true", help="of every project, by the hub")
    flags.add_reading_flags(parser)


def run(session: Session) -> int:
    everything = session.flag("all_projects")
    snapshot = session.snapshot(scope=Scope.CITIES, all_projects=everything)
    if not everything:
        session.readable_project(snapshot)
    elif snapshot.hub.deployments.access is not Access.READ:
        listing = snapshot.hub.deployments
        detail = f" ({listing.detail})" if listing.detail else ""
        raise CommandError(
            f"--all-projects needs the hub, which is: {listing.access.value}{detail}; "
            "give --hub-context",
            NOT_JUDGED,
        )
    cities = derive_cities(snapshot, session.now, all_projects=everything)
    if session.wants_json:
        session.show_json(cities_document(cities))
    else:
        session.terminal.show(render_cities(cities, session.terminal.width))
    return READY if all(_is_well(one) for one in cities.cities) else NOT_READY


def _is_well(city: City) -> bool:
    return city.ready >= city.desired and all(one.is_ready for one in city.clusters)
