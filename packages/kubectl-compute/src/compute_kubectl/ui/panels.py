"""`why`, `timeline` and `tree` of one Workload, of one of its cities or Instances, as JSON. Pure.

The documents are those of `-o json`; a city or an Instance narrows them to what concerns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime

from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.explain.diagnosis import CityDiagnosis, Diagnosis, Verdict
from compute_kubectl.explain.explain import Subject, explain
from compute_kubectl.render import words
from compute_kubectl.render.documents import document_of
from compute_kubectl.render.layout import clean, quote_word
from compute_kubectl.render.view_documents import timeline_document, tree_document
from compute_kubectl.snapshot.objects import SeenInstance
from compute_kubectl.snapshot.planes import Snapshot
from compute_kubectl.ui.documents import moment
from compute_kubectl.ui.view import chains_of
from compute_kubectl.views.timeline import Moment, derive_timeline, mark_gaps
from compute_kubectl.views.tree import Node, derive_tree


class PanelError(Exception):
    """What was asked for is not in the snapshot."""


@dataclass(frozen=True, slots=True)
class PanelSubject:
    """What a panel is about: a Workload, its placement in a city on a cell, or an Instance there.

    Two cells of a city have Instances of one name, so that a name alone does not choose one.
    """

    workload: str
    placement: str = ""
    city: str = ""
    cell: str = ""
    instance: str = ""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> PanelSubject:
        """The subject of a query; a parameter that is missing narrows nothing."""
        return cls(*(parameters.get(one.name, "") for one in fields(cls)))

    def has(self, placement: str, city: str, cell: str) -> bool:
        pairs = ((self.placement, placement), (self.city, city), (self.cell, cell))
        return all(asked in {"", given} for asked, given in pairs)


def panel_document(
    kind: str, snapshot: Snapshot, now: datetime, parameters: Mapping[str, str]
) -> JsonObject:
    """The panel `kind` for the Workload, city and Instance that the parameters name."""
    asked = PanelSubject.of(parameters)
    diagnosis = explain(snapshot, now, Subject(asked.workload))
    if not diagnosis.cities and diagnosis.verdict in {Verdict.NOT_FOUND, Verdict.NOT_VISIBLE}:
        raise PanelError(f"workload {clean(asked.workload)} is not visible any more")
    subject = Subject(asked.workload, diagnosis.uid)
    others = frozenset(snapshot.cells) - {asked.cell} if asked.cell else frozenset[str]()
    match kind:
        case "why":
            return _why(snapshot, diagnosis, asked)
        case "timeline":
            timeline = derive_timeline(snapshot, now, subject)
            if asked.instance:
                kept = (one for one in timeline.moments if _concerns(one, asked, others))
                timeline = replace(timeline, moments=mark_gaps(tuple(kept)))
            return timeline_document(timeline)
        case "tree":
            tree = derive_tree(snapshot, now, subject)
            if asked.instance and tree.root is not None:
                tree = replace(tree, root=_pruned(tree.root, asked, others))
            return tree_document(tree)
        case _:
            raise PanelError("there is no such panel")


def _why(snapshot: Snapshot, diagnosis: Diagnosis, asked: PanelSubject) -> JsonObject:
    chosen = tuple(one for one in diagnosis.cities if asked.has(one.placement, one.city, one.cell))
    narrowed = replace(diagnosis, cities=chosen)
    document = document_of(narrowed)
    listed = document["cities"]
    turns = [_turn(one) for one in chosen]
    if isinstance(listed, list):
        cities: list[JsonValue] = [
            {**one, "turn": turn}
            for one, turn in zip(listed, turns, strict=True)
            if isinstance(one, dict)
        ]
        document["cities"] = cities
    document["headline"] = clean(words.headline(diagnosis))
    name = asked.instance or asked.workload
    kind = "instance" if asked.instance else "workload"
    namespace = quote_word(diagnosis.namespace)
    document["command"] = f"kubectl compute why {kind} {quote_word(name)} -n {namespace}"
    document["instance"] = _instance(snapshot, diagnosis, asked) if asked.instance else None
    return document


def _turn(city: CityDiagnosis) -> str:
    return clean(words.turn_of(city.finding, city.actionability)) if city.finding else ""


def _instance(snapshot: Snapshot, diagnosis: Diagnosis, asked: PanelSubject) -> JsonObject:
    """Conditions and gates of an Instance on the plane nearest to it."""
    for place, chain in chains_of(snapshot, diagnosis).items():
        plane, _, instances = chain.instances
        for one in instances if asked.has(*place) else ():
            if one.meta.name == asked.instance:
                return _instance_document(plane, one)
    raise PanelError(f"instance {clean(asked.instance)} is not there any more")


def _instance_document(plane: str, one: SeenInstance) -> JsonObject:
    conditions: list[JsonValue] = [
        {
            "type": clean(each.type),
            "status": clean(each.status),
            "reason": clean(each.reason),
            "message": clean(each.message),
            "since": moment(each.since),
        }
        for each in one.conditions
    ]
    return {
        "name": clean(one.meta.name),
        "plane": clean(plane),
        "gates": [clean(each) for each in one.gates],
        "conditions": conditions,
    }


def _concerns(one: Moment, asked: PanelSubject, others: frozenset[str]) -> bool:
    """Whether a moment is of the Instance or its claim, and not of its namesake on another cell."""
    named = one.object.name in {asked.instance, f"instance-{asked.instance}"}
    return named and one.plane not in others


def _pruned(node: Node, asked: PanelSubject, others: frozenset[str]) -> Node | None:
    """The node with the branches that lead to the Instance; None where there are none."""
    if node.object.plane in others:
        return None
    if node.object.kind == "Instance" and node.object.name == asked.instance:
        return node
    below = (_pruned(one, asked, others) for one in node.children)
    kept = tuple(one for one in below if one is not None)
    return replace(node, children=kept) if kept else None
