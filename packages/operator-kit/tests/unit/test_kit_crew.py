from __future__ import annotations

import asyncio
import logging

from compute_operator_kit.crew import Crew
from compute_operator_kit.logs import bound_keys, gather_keys


async def test_a_task_started_inside_a_pass_does_not_carry_its_log_keys() -> None:
    crew = Crew("alpha")
    found: list[dict[str, object]] = []

    async def work() -> None:
        record = logging.LogRecord("kit", logging.INFO, "", 0, "Engaging plane", None, None)
        found.append(gather_keys(record))

    with bound_keys(controller="discovery", reconcileID="1"):
        crew.start(work(), "start")
    await asyncio.sleep(0)
    await crew.stop()
    assert found == [{}]


async def test_a_task_that_crashed_is_started_again_until_the_crew_stops() -> None:
    crew = Crew("alpha")
    starts: list[int] = []

    async def work() -> None:
        starts.append(len(starts))
        if len(starts) < 3:
            raise LookupError("a bug")
        await asyncio.Event().wait()

    def again() -> None:
        crew.start(work(), "reflector", on_crash=again)

    again()
    while len(starts) < 3:  # noqa: ASYNC110 - nobody tells about a crash but the log
        await asyncio.sleep(0)
    assert len(crew) == 1
    await crew.stop()
    again()  # too late: nothing may run for a thing that is gone
    assert len(crew) == 0
    assert starts == [0, 1, 2]
