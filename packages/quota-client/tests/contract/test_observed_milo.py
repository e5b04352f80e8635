"""Replays recorded exchanges with a real Milo on the fake and compares what both say.

Compared are codes, reasons, messages, conditions and allocations. UIDs, versions, times and the
names of buckets belong to one run and are translated from the recording's to the replay's. What a
quota library never meets (Projects' lives, webhooks, discovery) is left to the simulated planes.
"""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Final, cast

import httpx
import pytest
from pydantic import JsonValue

from compute_quota_client.testing import SERVER, FakeQuota

RECORDING: Final = Path(__file__).parents[1] / "data" / "milo.json"
# First and last exchange of the story of one project's quota: registrations to refused requests.
STORY: Final = range(9, 43)
PROJECT_FREE: Final = (3, 4)  # 2 is a 429 while a storage started: a fault, no habit
UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
VERSION: Final = re.compile(r"(ResourceVersion in record) \(\d+\)")

Json = dict[str, JsonValue]


def exchanges() -> list[Json]:
    document = json.loads(RECORDING.read_text("utf-8"))
    return cast("list[Json]", document["exchanges"])  # the file is ours, and its shape fixed


def obj(value: JsonValue) -> Json:
    assert isinstance(value, dict)
    return value


def items(value: JsonValue) -> list[Json]:
    assert isinstance(value, list)
    return [obj(one) for one in value]


def comparable(body: JsonValue) -> JsonValue:
    """What of an answer is compared: the words, not the numbers of one run."""
    if not isinstance(body, dict):
        return body
    if "items" in body:
        return [comparable(one) for one in items(body["items"])]
    kept: Json = {key: body[key] for key in ("kind", "reason", "message", "code") if key in body}
    if "message" in body:
        kept["message"] = VERSION.sub(r"\1", UID.sub("<uid>", str(body["message"])))
    if body.get("kind") == "Status":
        details = obj(body.get("details") or {})
        kept["details"] = {key: details[key] for key in sorted(details) if key != "uid"}
    if "spec" in body:
        kept["spec"] = body["spec"]
        kept["status"] = status(body.get("status"), str(body.get("kind")))
        kept["metadata"] = metadata(obj(body["metadata"]))
        if body.get("kind") == "ResourceClaim":
            kept["generation"] = obj(body["metadata"])["generation"]
    return kept


def metadata(content: Json) -> Json:
    kept = ("name", "namespace", "annotations", "labels")
    return {key: content[key] for key in kept if key in content}


def status(content: JsonValue, kind: str) -> JsonValue:
    if not isinstance(content, dict):
        return None
    if kind == "AllowanceBucket":
        counted = ("limit", "allocated", "available", "claimCount", "grantCount")
        # Absent while no grant counts.
        return {
            **{key: content[key] for key in counted},
            "contributingGrantRefs": content.get("contributingGrantRefs") or [],
        }
    kept: Json = {"observedGeneration": content.get("observedGeneration")}
    kept["conditions"] = [
        {
            **{key: one[key] for key in ("type", "status", "reason", "message")},
            # Not when, but whether it ever changed.
            "changed": not str(one["lastTransitionTime"]).startswith("1970"),
        }
        for one in items(content.get("conditions") or [])
    ]
    kept["allocations"] = [
        {key: value for key, value in one.items() if key != "lastTransitionTime"}
        for one in items(content.get("allocations") or [])
    ]
    return kept


class Replay:
    """The fake, asked what the real one was asked."""

    def __init__(self) -> None:
        self.fake = FakeQuota()
        self.fake.add_project("obs")
        self._client = httpx.AsyncClient(transport=self.fake.transport, base_url=SERVER)
        self._uids: dict[str, str] = {}

    async def ask(self, request: Json) -> httpx.Response:
        body = request.get("body")
        content = None if body is None else self._translated(json.dumps(body)).encode()
        headers = {str(key): str(value) for key, value in obj(request.get("headers") or {}).items()}
        if body is not None:
            headers["Content-Type"] = str(request["contentType"])
        return await self._client.request(
            str(request["method"]), str(request["path"]), content=content, headers=headers
        )

    def learn(self, recorded: JsonValue, replayed: JsonValue) -> None:
        """Remembers which UID of the replay stands for which of the recording."""
        if isinstance(recorded, dict) and isinstance(replayed, dict):
            old, new = obj(recorded.get("metadata") or {}), obj(replayed.get("metadata") or {})
            if "uid" in old and "uid" in new:
                self._uids[str(old["uid"])] = str(new["uid"])

    def _translated(self, text: str) -> str:
        return UID.sub(lambda match: self._uids.get(match[0], match[0]), text)


def body_of(response: httpx.Response) -> JsonValue:
    try:
        decoded: JsonValue = response.json()
    except ValueError:
        return response.text
    return decoded


@pytest.mark.spec("Q-20")
async def test_the_fake_answers_as_the_real_milo_did() -> None:
    replay, recorded = Replay(), exchanges()
    compared = 0
    for number in STORY:
        exchange = recorded[number]
        if "watch" in exchange:
            # The state the real one came to: the fake has to come to it, too.
            await asyncio.sleep(1)
            last = items(exchange["events"])[-1]["object"]
            meta = obj(obj(last)["metadata"])
            where = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
            path = str(exchange["watch"])
            if where and where not in path:
                head, _, resource = path.rpartition("/")
                path = f"{head}{where}/{resource}"
            response = await replay.ask({"method": "GET", "path": f"{path}/{meta['name']}"})
            assert comparable(body_of(response)) == comparable(last), exchange["what"]
        else:
            response = await replay.ask(obj(exchange["request"]))
            answer = obj(exchange["response"])
            assert response.status_code == answer["code"], exchange["what"]
            assert comparable(body_of(response)) == comparable(answer["body"]), exchange["what"]
            replay.learn(answer["body"], body_of(response))
        compared += 1
    assert compared == len(STORY)


@pytest.mark.spec("Q-20")
async def test_a_plane_that_was_not_created_answers_as_the_real_one_did() -> None:
    replay, recorded = Replay(), exchanges()
    for number in PROJECT_FREE:
        exchange = recorded[number]
        request, answer = obj(exchange["request"]), obj(exchange["response"])
        response = await replay.ask(request)
        assert response.status_code == answer["code"], exchange["what"]
        assert comparable(body_of(response)) == comparable(answer["body"]), exchange["what"]
        for header, value in obj(answer["headers"]).items():
            assert response.headers[header] == value


@pytest.mark.spec("Q-20")
async def test_the_names_of_buckets_are_the_real_ones() -> None:
    recorded = exchanges()
    real = {
        str(obj(one["metadata"])["name"])
        for one in items(obj(obj(recorded[21]["response"])["body"])["items"])
    }
    replay = Replay()
    for number in (9, 11, 13):
        await replay.ask(obj(recorded[number]["request"]))
    await asyncio.sleep(1)
    response = await replay.ask(obj(recorded[21]["request"]))
    assert {one["metadata"]["name"] for one in response.json()["items"]} == real


@pytest.mark.spec("Q-20")
async def test_a_claim_goes_through_the_states_the_real_one_went_through() -> None:
    recorded = exchanges()
    for created, watched in ((13, 14), (19, 20)):
        replay = Replay()
        for number in (9, 11, *((15,) if created == 19 else ())):
            await replay.ask(obj(recorded[number]["request"]))
        claim = obj(recorded[created]["request"])
        await replay.ask(claim)
        await asyncio.sleep(1)
        name = str(obj(obj(obj(claim)["body"])["metadata"])["name"])
        seen = [comparable(state) for state in replay.fake.states_of_claim("obs", "default", name)]
        real = [comparable(event["object"]) for event in items(recorded[watched]["events"])]
        assert seen == real
