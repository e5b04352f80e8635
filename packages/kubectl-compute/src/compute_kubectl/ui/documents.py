"""The page's view as JSON. Every text is cleaned as on a terminal: one line, no control characters.

The page inserts texts as text nodes only; cleaning here keeps bidirectional overrides and escape
sequences out of what a user copies from it.
"""

from __future__ import annotations

from datetime import datetime

from compute_api_types.meta import format_timestamp
from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.render.layout import clean
from compute_kubectl.snapshot.planes import PlaneFacts
from compute_kubectl.ui.view import CellView, CityView, InstanceView, PageView, WorkloadView


def page_document(view: PageView) -> JsonObject:
    """Everything the page draws, but the moments of its reads."""
    contradictions: list[JsonValue] = [
        {"workload": clean(one.workload), "text": clean(one.text)} for one in view.contradictions
    ]
    return {
        "project": clean(view.project),
        "namespace": clean(view.namespace),
        "cities": [_city(one) for one in view.cities],
        "unplaced": [_workload(one) for one in view.unplaced],
        "contradictions": contradictions,
        "unread": [clean(one) for one in view.unread],
        "more": view.more,
    }


def plane_document(plane: PlaneFacts, since: datetime | None) -> JsonObject:
    """A plane, how reading it ended, and since when it has not been read."""
    return {
        "name": clean(plane.name),
        "role": plane.role.value,
        "state": plane.access.value,
        "detail": clean(plane.detail),
        "since": moment(since),
    }


def _city(one: CityView) -> JsonObject:
    place = one.place
    return {
        "code": clean(one.code),
        "name": clean(one.name),
        "latitude": place.latitude if place else None,
        "longitude": place.longitude if place else None,
        "state": one.state.value,
        "words": clean(one.words),
        "since": moment(one.since),
        "ready": one.ready,
        "total": one.total,
        "cells": [_cell(cell) for cell in one.cells],
        "workloads": [_workload(workload) for workload in one.workloads],
    }


def _cell(one: CellView) -> JsonObject:
    return {
        "name": clean(one.name),
        "state": one.state.value,
        "words": clean(one.words),
        "since": moment(one.since),
    }


def _workload(one: WorkloadView) -> JsonObject:
    return {
        "name": clean(one.name),
        "placement": clean(one.placement),
        "cell": clean(one.cell),
        "state": one.state.value,
        "words": clean(one.words),
        "ready": one.ready,
        "total": one.total,
        "stage": one.stage,
        "blocker": clean(one.blocker),
        "reason": clean(one.reason),
        "turn": clean(one.turn),
        "since": moment(one.since),
        "instances": [_instance(instance) for instance in one.instances],
        "more": one.more,
    }


def _instance(one: InstanceView) -> JsonObject:
    return {
        "name": clean(one.name),
        "state": one.state.value,
        "words": clean(one.words),
        "reason": clean(one.reason),
        "message": clean(one.message),
        "since": moment(one.since),
    }


def moment(one: datetime | None) -> str | None:
    return None if one is None else format_timestamp(one)
