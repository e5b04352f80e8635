from __future__ import annotations

import asyncio
import logging

from compute_operator_kit.core.tasks import SupervisedTasks
from compute_operator_kit.telemetry.logs import bound_keys, gather_keys


async def test_a_task_started_inside_a_reconcile_does_not_have_its_log_keys() -> None:
    crew = SupervisedTasks("alpha")
    keys: list[dict[str, object]] = []

    async def work() -> None:
        record = logging.LogRecord("kit", logging.INFO, "", 0, "Engaging plane", None, None)
        keys.append(gather_keys(record))

    with bound_keys(controller="discovery", reconcileID="1"):
        crew.start(work(), "start")
    await asyncio.sleep(0)
    await crew.stop()
    assert keys == [{}]


async def test_a_task_that_crashed_is_started_again_until_the_crew_stops() -> None:
    crew = SupervisedTasks("alpha")
    starts: list[int] = []

    async def work() -> None:
        starts.append(len(starts))
        if len(starts) < 3:
            raise LookupError("a bug")
        await asyncio.Event().wait()

    def again() -> None:
        crew.start(work(), "reflector", on_crash=again)

    again()
    while len(starts) < 3:  # noqa: ASYNC110 - only the log shows a crash
        await asyncio.sleep(0)
    assert len(crew) == 1
    await crew.stop()
    again()  # too late: nothing may run for a thing that is gone
    assert len(crew) == 0
    assert starts == [0, 1, 2]
