"""`docs/spec/neighbours.md` 1.6: the interpreter."""

from __future__ import annotations

import operator
import re
from functools import partial

import pytest
from karmada_builders.documents import GADGETS, a_customization
from karmada_builders.fixture import COUNTING, WEB, StackFixture, is_refused

from compute_sim_planes.client.errors import ApiError
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, objects_at, string_at
from compute_sim_planes.karmada.kinds import CUSTOMIZATIONS

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def aggregate(body: str) -> str:
    """A script that returns the object with the status that `body` computes."""
    return f"""
function AggregateStatus(desiredObj, statusItems)
  desiredObj.metadata.managedFields = nil
  desiredObj.spec = nil
  local status = {{}}
  {body}
  desiredObj.status = status
  return desiredObj
end
"""


async def deliver(karmada: StackFixture, **scripts: str) -> None:
    await karmada.interpret(**scripts)
    await karmada.place("dfw-1")
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(lambda: karmada.copy("dfw-1"))


async def hub_status(karmada: StackFixture) -> JsonObject:
    return object_at(await karmada.template(), "status")


async def reflected(karmada: StackFixture) -> JsonValue:
    work = await karmada.work("dfw-1")
    entries = objects_at(work, "status", "manifestStatuses")
    return entries[0].get("status") if entries else None


async def test_a_reflection_that_returns_nil_is_retried_until_there_is_a_status(
    karmada: StackFixture,
) -> None:
    script = "function ReflectStatus(observedObj) return observedObj.status end"
    await deliver(karmada, statusReflection=script)
    await karmada.stays(lambda: reflected(karmada), lambda status: status is None)
    await karmada.report("dfw-1", {"phase": "Told"})
    await karmada.eventually(lambda: reflected(karmada), lambda status: status == {"phase": "Told"})


async def test_without_a_reflection_the_whole_status_is_reflected(karmada: StackFixture) -> None:
    await deliver(karmada, statusAggregation=COUNTING)
    await karmada.report("dfw-1", {"phase": "Told", "more": {"of": "it"}})
    await karmada.eventually(
        lambda: reflected(karmada),
        lambda status: status == {"phase": "Told", "more": {"of": "it"}},
    )


async def test_without_an_aggregation_hub_status_is_never_written(karmada: StackFixture) -> None:
    await deliver(karmada, healthInterpretation="function InterpretHealth(o) return true end")
    await karmada.report("dfw-1", {"phase": "Told"})
    await karmada.eventually(lambda: reflected(karmada), lambda status: status is not None)
    await karmada.stays(lambda: hub_status(karmada), lambda status: status == {})


async def test_a_foreign_write_to_hub_status_stays_until_the_next_aggregation(
    karmada: StackFixture,
) -> None:
    await deliver(karmada, statusAggregation=COUNTING)
    await karmada.report("dfw-1", {"phase": "First"})
    await karmada.eventually(
        lambda: hub_status(karmada), lambda status: status.get("phase") == "First"
    )
    patch: JsonObject = {"status": {"phase": "Foreign"}}
    await karmada.hub.patch(GADGETS, WEB, patch, namespace=karmada.namespace, subresource="status")
    await karmada.stays(
        lambda: hub_status(karmada), lambda status: status.get("phase") == "Foreign"
    )
    await karmada.report("dfw-1", {"phase": "Second"})
    await karmada.eventually(
        lambda: hub_status(karmada), lambda status: status.get("phase") == "Second"
    )


async def test_a_field_name_with_a_path_character_fails_aggregation(karmada: StackFixture) -> None:
    whole = """
function AggregateStatus(desiredObj, statusItems)
  desiredObj.status = { phase = "Aggregated" }
  return desiredObj
end
"""
    await karmada.interpret(statusAggregation=whole)
    await karmada.place("dfw-1")
    gadget = karmada.gadget()
    object_at(gadget, "spec")["a|b"] = {"c": "d"}
    await karmada.make(karmada.policy(), gadget)
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    await karmada.report("dfw-1", {"phase": "Told"})
    await karmada.eventually(lambda: reflected(karmada), lambda status: status is not None)
    await karmada.stays(lambda: hub_status(karmada), lambda status: status == {})


async def test_spec_and_managed_fields_left_out_keep_aggregation_and_the_object_whole(
    karmada: StackFixture,
) -> None:
    await karmada.interpret(statusAggregation=COUNTING)
    await karmada.place("dfw-1")
    gadget = karmada.gadget()
    object_at(gadget, "spec")["a|b"] = {"c": "d"}
    await karmada.make(karmada.policy(), gadget)
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    await karmada.report("dfw-1", {"phase": "Told"})
    await karmada.eventually(
        lambda: hub_status(karmada), lambda status: status.get("phase") == "Told"
    )
    existing = await karmada.template()
    assert object_at(existing, "spec") == object_at(gadget, "spec")
    assert object_at(existing, "metadata", "labels").keys() > {"topology.datum.net/city-code"}


async def test_applied_is_nil_and_never_false_and_such_an_item_has_no_status(
    karmada: StackFixture,
) -> None:
    script = aggregate(
        """
  status.applied = tostring(statusItems[1].applied)
  status.hasStatus = tostring(statusItems[1].status ~= nil)
  status.message = statusItems[1].appliedMessage
"""
    )
    await karmada.interpret(statusAggregation=script)
    await karmada.place("dfw-1")
    await karmada.make(karmada.policy(), karmada.gadget())
    await karmada.arrives(lambda: karmada.copy("dfw-1"))
    await karmada.report("dfw-1", {"phase": "Told"})
    await karmada.eventually(
        lambda: hub_status(karmada), lambda status: status.get("hasStatus") == "true"
    )
    # The member refuses the next change: its Work is not applied, and still has a status.
    existing = await karmada.arrives(lambda: karmada.copy("dfw-1"))
    labels = {**object_at(existing, "metadata", "labels"), "karmada.io/managed": None}
    await karmada.hub.patch(
        GADGETS,
        WEB,
        {"metadata": {"annotations": {"work.karmada.io/conflict-resolution": "abort"}}},
        namespace=karmada.namespace,
    )
    await karmada.arrives(
        lambda: karmada.copy("dfw-1"),
        lambda existing: (
            string_at(existing, "metadata", "annotations", "work.karmada.io/conflict-resolution")
            == "abort"
        ),
    )
    await karmada.members["dfw-1"].patch(
        GADGETS, WEB, {"metadata": {"labels": labels}}, namespace=karmada.namespace
    )
    await karmada.edit({"spec": {"size": 2}})
    work = await karmada.arrives(lambda: karmada.work("dfw-1"), is_refused)
    assert objects_at(work, "status", "manifestStatuses")[0].get("status") is not None
    status = await karmada.eventually(
        lambda: hub_status(karmada), lambda status: status.get("applied") == "nil"
    )
    assert status.get("hasStatus") == "false"
    assert "already exists in the cluster" in string_at(status, "message")


async def test_globals_persist_between_calls(karmada: StackFixture) -> None:
    script = aggregate("calls = (calls or 0) + 1; status.calls = calls")
    await deliver(karmada, statusAggregation=script)
    for phase in ("a", "b", "c", "d"):
        await karmada.report("dfw-1", {"phase": phase})
        await karmada.eventually(
            partial(reflected, karmada), partial(operator.eq, {"phase": phase})
        )
    await karmada.eventually(
        lambda: hub_status(karmada),
        lambda status: isinstance(calls := status.get("calls"), int) and calls > 1,
    )


async def test_now_is_a_date_without_a_second_argument(karmada: StackFixture) -> None:
    script = aggregate('status.now = os.date("!%Y-%m-%dT%H:%M:%SZ")')
    await deliver(karmada, statusAggregation=script)
    await karmada.eventually(
        lambda: hub_status(karmada),
        lambda status: TIME.fullmatch(string_at(status, "now")) is not None,
    )


async def test_empty_maps_and_lists_vanish_from_the_result(karmada: StackFixture) -> None:
    script = aggregate("status.empty = {}; status.deep = { kept = 1, empty = {} }; status.kept = 1")
    await deliver(karmada, statusAggregation=script)
    status = await karmada.eventually(lambda: hub_status(karmada), bool)
    assert status == {"kept": 1, "deep": {"kept": 1}}


async def test_a_second_customization_of_a_rule_for_a_kind_is_refused(
    karmada: StackFixture,
) -> None:
    await karmada.interpret(statusAggregation=COUNTING)
    second = a_customization("gadget-too", {"statusAggregation": COUNTING})
    with pytest.raises(ApiError, match="conflicting with InterpreterOperation") as refusal:
        await karmada.hub.create(CUSTOMIZATIONS, second)
    assert refusal.value.status == 403
    assert await karmada.hub.get(CUSTOMIZATIONS, "gadget-too") is None
    # Another rule for the same kind does not conflict.
    script = "function InterpretHealth(o) return true end"
    await karmada.hub.create(
        CUSTOMIZATIONS, a_customization("gadget-too", {"healthInterpretation": script})
    )
    await karmada.hub.delete(CUSTOMIZATIONS, "gadget-too")
