"""Command that serves simulated planes: `python -m compute_sim_planes --plane hub --plane dfw`.

Prints the path of a kubeconfig with one context per plane once all planes are served, and runs
until SIGTERM or SIGINT. For benchmarks, the demo and trying things out; tests in virtual time use
planes in their own process instead.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compute_sim_planes.api_server.authz.identity import ADMIN, Tokens
from compute_sim_planes.api_server.authz.token_file import TokenFileError, read_token_file
from compute_sim_planes.api_server.http.server import HttpServer, PrefixRoutes
from compute_sim_planes.api_server.manifests import ManifestError, apply_manifests, read_manifests
from compute_sim_planes.api_server.plane import Plane, PlaneParts
from compute_sim_planes.kubeconfig import Context, write_kubeconfig
from compute_sim_planes.time.sources import SeededIdentities


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parsed command line."""

    planes: tuple[str, ...]
    port: int
    kubeconfig: Path | None
    manifests: tuple[Path, ...]
    token_file: Path | None
    plain_http: bool


def parse_arguments(words: Sequence[str]) -> Arguments:
    parser = argparse.ArgumentParser(prog="python -m compute_sim_planes", description=__doc__)
    parser.add_argument(
        "--plane", action="append", dest="planes", metavar="NAME",
        help="a plane to serve, under /planes/NAME; may be repeated (default: hub)",
    )  # fmt: skip
    parser.add_argument("--port", type=int, default=0, help="0 (default) takes any that is free")
    parser.add_argument(
        "--kubeconfig", type=Path, help="where to write it (default: a temporary file)"
    )
    parser.add_argument(
        "--apply", action="append", dest="manifests", type=Path, default=[], metavar="PATH",
        help="a manifest or a folder of them, applied to every plane before it is announced",
    )  # fmt: skip
    parser.add_argument(
        "--token-file", type=Path, metavar="CSV",
        help="further users: token,user,uid,\"group1,group2\" per line, as kube-apiserver reads it",
    )  # fmt: skip
    parser.add_argument("--plain-http", action="store_true", help="no TLS, for benchmarks")
    parsed = parser.parse_args(words)
    return Arguments(
        planes=tuple(parsed.planes or ("hub",)),
        port=parsed.port,
        kubeconfig=parsed.kubeconfig,
        manifests=tuple(parsed.manifests),
        token_file=parsed.token_file,
        plain_http=parsed.plain_http,
    )


async def serve(arguments: Arguments, folder: Path) -> None:
    """Run until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    admin_token = secrets.token_urlsafe(32)
    users = {} if arguments.token_file is None else read_token_file(arguments.token_file)
    tokens = Tokens({**users, admin_token: ADMIN})
    planes = [_make_plane(name, tokens) for name in arguments.planes]
    server, authority = _make_server(planes, folder, plain_http=arguments.plain_http)
    await server.start(arguments.port)
    try:
        for plane in planes:
            for path in arguments.manifests:
                await apply_manifests(plane.connect(), read_manifests(path))
        kubeconfig = arguments.kubeconfig or folder / "kubeconfig"
        write_kubeconfig(
            kubeconfig,
            [
                Context(plane.name, f"{server.url}/planes/{plane.name}", admin_token, authority)
                for plane in planes
            ],
        )
        sys.stdout.write(f"KUBECONFIG={kubeconfig}\n")
        sys.stdout.flush()
        await stopped.wait()
    finally:
        for plane in planes:
            await plane.close()
        await server.close()


def _make_plane(name: str, tokens: Tokens) -> Plane:
    identities = SeededIdentities(random.SystemRandom())
    return Plane(name, PlaneParts(tokens=tokens, identities=identities))


def _make_server(
    planes: list[Plane], folder: Path, *, plain_http: bool
) -> tuple[HttpServer, bytes | None]:
    routes = PrefixRoutes()
    for plane in planes:
        routes.add(f"/planes/{plane.name}", plane)
    if plain_http:
        return HttpServer(routes), None
    # Only here, so that planes without TLS need no cryptography package.
    from compute_sim_planes.certificates import make_server_files

    files = make_server_files(folder)
    return HttpServer(routes, tls=files.context()), files.authority.read_bytes()


def main() -> None:
    arguments = parse_arguments(sys.argv[1:])
    try:
        _run(arguments)
    except (ManifestError, TokenFileError, OSError) as error:
        # Wrong arguments or manifests: one line for the user, no traceback.
        sys.exit(str(error))


def _run(arguments: Arguments) -> None:
    with tempfile.TemporaryDirectory(prefix="sim-planes-") as folder:
        asyncio.run(serve(arguments, Path(folder)))


if __name__ == "__main__":
    main()
