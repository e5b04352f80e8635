"""`why`: where a Workload stands; `why --all`: one line for each that is not Ready."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Final

from compute_api_types.wire import JsonValue
from compute_kubectl.commands import flags
from compute_kubectl.commands.exits import NOT_JUDGED, NOT_READY, READY, USAGE, CommandError
from compute_kubectl.commands.session import Session
from compute_kubectl.explain.diagnosis import Diagnosis, Verdict
from compute_kubectl.explain.explain import Subject, explain
from compute_kubectl.explain.overview import explain_all
from compute_kubectl.render.documents import API_VERSION, document_of
from compute_kubectl.render.overview import render_overview
from compute_kubectl.render.text import render_why
from compute_kubectl.snapshot.planes import Snapshot

EXAMPLES: Final = """\
  kubectl compute why web -n shop
  kubectl compute why instance web-main-ord-1
  kubectl compute why --all
  kubectl compute why web -o json
  kubectl compute why web --save ./web-snapshot
  kubectl compute why web --offline ./web-snapshot
"""
KINDS: Final = {
    "workload": "workload",
    "workloads": "workload",
    "workloaddeployment": "workloaddeployment",
    "workloaddeployments": "workloaddeployment",
    "wd": "workloaddeployment",
    "instance": "instance",
    "instances": "instance",
}
_CODES: Final = {
    Verdict.READY: READY,
    Verdict.WAITING: NOT_READY,
    Verdict.DELETING: NOT_READY,
    Verdict.NOT_VISIBLE: NOT_JUDGED,
    Verdict.NOT_FOUND: USAGE,
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "subject", nargs="*", metavar="[KIND] NAME", help="a Workload, or KIND NAME"
    )
    parser.add_argument("--all", action="store_true", help="every Workload that is not Ready")
    flags.add_reading_flags(parser)


def run(session: Session) -> int:
    kind, name = _subject(session)
    if not name:
        return _run_all(session)
    snapshot = session.snapshot(name if kind == "workload" else "")
    workload, deployment = _find_workload(snapshot, kind, name)
    answer = explain(snapshot, session.now, Subject(workload))
    if deployment:
        answer = _of_deployment(answer, deployment)
    if session.wants_json:
        session.show_json(document_of(answer))
    else:
        session.terminal.show_painted(render_why(answer, session.terminal.width))
    return _CODES[answer.verdict]


def _subject(session: Session) -> tuple[str, str]:
    words: list[str] = list(session.options.subject)
    if session.flag("all"):
        if words:
            raise CommandError("why: give a NAME or --all, not both")
        return "workload", ""
    if len(words) == 1 and "/" in words[0]:
        words = words[0].split("/", 1)
    if len(words) == 1:
        return "workload", words[0]
    if len(words) == 2 and words[0].lower() in KINDS:
        return KINDS[words[0].lower()], words[1]
    raise CommandError("why: give the NAME of a Workload, KIND NAME, or --all; see --help")


def _find_workload(snapshot: Snapshot, kind: str, name: str) -> tuple[str, str]:
    """The Workload of a deployment or an Instance, and the deployment."""
    if kind == "workload":
        return name, ""
    deployment = name
    if kind == "instance":
        planes = [snapshot.project.instances, snapshot.hub.instances]
        planes += [snapshot.cells[cell].instances for cell in sorted(snapshot.cells)]
        found = (one for listing in planes for one in listing if one.meta.name == name)
        instance = next(found, None)
        if instance is None:
            raise _not_found(snapshot, "instance", name)
        deployment = instance.deployment_name
    for listing in (snapshot.project.deployments, snapshot.hub.deployments):
        for one in listing:
            if one.meta.name == deployment and one.workload_name:
                return one.workload_name, deployment
    raise _not_found(snapshot, kind, name)


def _not_found(snapshot: Snapshot, kind: str, name: str) -> CommandError:
    project = snapshot.project
    listing = project.instances if kind == "instance" else project.deployments
    if not listing.proves_absence:
        state = listing.access.value if listing.detail == "" else listing.detail
        return CommandError(f"{kind} {name!r} could not be looked for: {state}", NOT_JUDGED)
    return CommandError(f'{kind} "{name}" not found in namespace "{snapshot.namespace}"')


def _of_deployment(answer: Diagnosis, deployment: str) -> Diagnosis:
    """The answer about one deployment alone."""
    cities = tuple(one for one in answer.cities if one.deployment == deployment)
    if not cities:
        return answer
    waiting = next((one for one in cities if one.finding is not None), None)
    if waiting is None:
        return replace(answer, cities=cities, verdict=Verdict.READY, finding=None)
    return replace(
        answer,
        cities=cities,
        verdict=waiting.verdict,
        finding=waiting.finding,
        age=waiting.age,
        actionability=waiting.actionability,
    )


def _run_all(session: Session) -> int:
    snapshot = session.snapshot()
    session.readable_project(snapshot)
    answers = explain_all(snapshot, session.now)
    waiting = [one for one in answers if one.verdict is not Verdict.READY]
    if session.wants_json:
        items: list[JsonValue] = [document_of(one) for one in waiting]
        session.show_json({"apiVersion": API_VERSION, "kind": "DiagnosisList", "items": items})
    else:
        lines = render_overview(snapshot, answers, session.terminal.width)
        session.terminal.show_painted(lines)
    return NOT_READY if waiting else READY
