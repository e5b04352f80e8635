"""The pure half of `bench -- chain`: stages from versions, shares from stages, ranks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson

from bench._chain_stages import STAGES, Journey, Sightings, percentile, sights_of
from compute_api_types.wire import JsonObject, JsonValue
from e2e.backends.real.recording import RecordedVersion
from e2e.world.kinds import CLAIM, DEPLOYMENT, INSTANCE, WORKLOAD, Kind

START = datetime(2026, 3, 1, tzinfo=UTC)


def a_version(
    seconds: float, plane: str, kind: Kind, name: str, document: JsonObject | None = None
) -> RecordedVersion:
    at, raw = START + timedelta(seconds=seconds), orjson.dumps(document or {})
    return RecordedVersion(at, plane, kind, f"bench/{name}", 1, b"", raw)


def saying(*conditions: str, gates: tuple[str, ...] = ()) -> JsonObject:
    said: list[JsonValue] = [{"type": one, "status": "True"} for one in conditions]
    held: list[JsonValue] = [{"name": gate} for gate in gates]
    return {
        "status": {"conditions": said},
        "spec": {"controller": {"schedulingGates": held}},
    }


def a_whole_life() -> list[RecordedVersion]:
    deployment, instance = "web-default-dfw", "web-default-dfw-0"
    return [
        a_version(0.1, "p1", DEPLOYMENT, deployment),
        a_version(0.2, "hub", DEPLOYMENT, deployment),
        a_version(0.5, "dfw-1", DEPLOYMENT, deployment),
        a_version(0.6, "dfw-1", INSTANCE, instance, saying(gates=("Quota",))),
        a_version(0.7, "p1", CLAIM, f"instance-{instance}"),
        a_version(0.8, "p1", CLAIM, f"instance-{instance}", saying("Granted")),
        a_version(0.9, "dfw-1", INSTANCE, instance, saying()),
        a_version(1.0, "hub", INSTANCE, instance, saying("Ready")),
        a_version(1.1, "p1", INSTANCE, instance, saying("Ready")),
        a_version(1.2, "p1", WORKLOAD, "web", saying("Available")),
    ]


def looked_at(records: list[RecordedVersion]) -> Sightings:
    sightings = Sightings(sights_of("p1", "hub", "dfw-1", "DFW"))
    sightings.read(records)
    return sightings


def test_a_whole_life_has_every_stage_in_order() -> None:
    journey = Journey(START, looked_at(a_whole_life()).of("web"))
    assert journey.is_whole
    seconds = [round(journey.seconds_to(stage), 3) for stage in STAGES]
    assert seconds == [0.1, 0.2, 0.5, 0.6, 0.9, 1.0, 1.1, 1.2]


def test_what_is_not_karmadas_and_not_quotas_is_ours() -> None:
    journey = Journey(START, looked_at(a_whole_life()).of("web"))
    assert round(journey.karmada, 3) == 0.3
    assert round(journey.quota, 3) == 0.1
    assert round(journey.ours, 3) == 0.7


def test_a_stage_counts_when_it_is_first_seen() -> None:
    again = a_version(5.0, "p1", INSTANCE, "web-default-dfw-0", saying("Ready"))
    journey = Journey(START, looked_at([*a_whole_life(), again]).of("web"))
    assert round(journey.seconds_to("projection"), 3) == 1.1


def test_a_life_under_way_is_not_whole() -> None:
    assert not Journey(START, looked_at(a_whole_life()[:-1]).of("web")).is_whole


def test_percentiles_are_by_nearest_rank() -> None:
    values = [float(number) for number in range(1, 11)]
    assert percentile(values, 0.5) == 5.0
    assert percentile(values, 0.9) == 9.0
    assert percentile(values, 0.99) == 10.0
    assert percentile([3.0], 0.5) == 3.0
