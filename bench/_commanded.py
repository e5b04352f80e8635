"""A process of simulated planes that is controlled by JSON commands, one per line."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Protocol

import orjson

from compute_sim_planes.api_server.http.server import HttpServer, PrefixRoutes
from compute_sim_planes.certificates import make_server_files
from compute_sim_planes.json_types import JsonObject, JsonValue, object_at, string_at
from compute_sim_planes.kubeconfig import Context, write_kubeconfig


class CommandedPlanes(Protocol):
    """The planes; every further public coroutine is a command."""

    token: str

    async def fill(self) -> None: ...

    def routes(self) -> PrefixRoutes: ...

    async def close(self) -> None: ...


async def serve(world: CommandedPlanes, folder: Path, contexts: Mapping[str, str]) -> None:
    """Serves until standard input closes; `contexts` are paths by kubeconfig context."""
    await world.fill()
    files = make_server_files(folder)
    server = HttpServer(world.routes(), tls=files.context())
    await server.start()
    # A collection over half a gigabyte of history takes seconds and frees nothing.
    gc.disable()
    authority = files.authority.read_bytes()
    for name, path in contexts.items():
        context = Context(name, f"{server.url}{path}", world.token, authority)
        write_kubeconfig(folder / f"{name}.yaml", [context])
    print("ready", flush=True)
    async for line in _lines():
        print(json.dumps(await _answer(world, line)), flush=True)
    await server.close()
    await world.close()


async def _answer(world: CommandedPlanes, line: bytes) -> JsonValue:
    command: JsonObject = orjson.loads(line)
    # The commands come from the benchmark.
    outcome = await getattr(world, string_at(command, "do"))(**object_at(command, "with"))
    result: JsonValue = outcome
    return result


async def _lines() -> AsyncIterator[bytes]:
    reader = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line
