"""Which context of the user's kubeconfig is which plane, and its endpoint.

Contexts come from the kubeconfig and from flags alone: an object can name a cell, and a context of
that name must then exist in the user's own file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from compute_kubeconfig.access import Access as ServerAccess
from compute_kubeconfig.access import Material, read_material
from compute_kubeconfig.exec_plugins import ExecPluginError, run_plugin
from compute_kubeconfig.kubeconfig import Contexts, load_contexts, load_kubeconfig
from compute_kubeconfig.problems import FileError, UnreadableFileError
from compute_kubeconfig.tls import UnusableTlsError, share_client_context
from compute_kubectl.read.transport import Endpoint

HUB_CONTEXT: Final = "hub"
PLANES: Final = ("project", "hub", "cells")
EXEC_TIMEOUT: Final = timedelta(seconds=30)


class ContextError(Exception):
    """A kubeconfig or a context that cannot be used; the message names file, field and remedy."""


@dataclass(frozen=True, slots=True)
class PlaneChoice:
    """The flags that choose kubeconfig, contexts and planes."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    hub_context: str = ""
    cell_contexts: Mapping[str, str] = field(default_factory=dict[str, str])
    planes: tuple[str, ...] = PLANES


@dataclass(frozen=True, slots=True)
class PlaneEndpoints:
    """The endpoints that the kubeconfig gives; `hub` is None where no context names it.

    `unusable` has planes with a context that no flag names and that cannot be used, and why:
    they are shown as unreachable, and the others are read all the same.
    """

    namespace: str
    project: Endpoint | None
    hub: Endpoint | None = None
    cells: Mapping[str, Endpoint] = field(default_factory=dict[str, Endpoint])
    by_context: Mapping[str, Path] = field(default_factory=dict[str, Path])
    asks_cells: bool = True
    unusable: Mapping[str, str] = field(default_factory=dict[str, str])

    def cell(self, name: str) -> Endpoint | None:
        """The endpoint of a cell by flag, else by a context of its name; None where neither is.

        Raises:
            ContextError: the context of its name cannot be used.
        """
        given = self.cells.get(name)
        if given is not None or name not in self.by_context:
            return given
        return _endpoint(self.by_context[name], name)[0]


def find_endpoints(choice: PlaneChoice, environ: Mapping[str, str] | None = None) -> PlaneEndpoints:
    """The endpoints of the chosen contexts.

    Raises:
        ContextError: a file is refused, or has no context of that name.
    """
    files = _files(choice, os.environ if environ is None else environ)
    contexts = _contexts(files)
    by_context: dict[str, Path] = {}
    for path, one in contexts.items():
        for name in one.names:
            by_context.setdefault(name, path)
    current = choice.context or next((one.current for one in contexts.values() if one.current), "")
    if not current:
        raise ContextError(
            f"{', '.join(map(str, files))}: current-context is not set; give --context NAME"
        )
    project, namespace = _endpoint(_file_of(by_context, current, "--context"), current)
    hub_name = choice.hub_context or (HUB_CONTEXT if HUB_CONTEXT in by_context else "")
    hub, unusable = None, dict[str, str]()
    if hub_name and "hub" in choice.planes:
        try:
            hub = _endpoint(_file_of(by_context, hub_name, "--hub-context"), hub_name)[0]
        except ContextError as failure:
            if choice.hub_context:
                raise
            unusable[HUB_CONTEXT] = str(failure)
    cells = {
        cell: _endpoint(_file_of(by_context, name, "--cell-context"), name)[0]
        for cell, name in choice.cell_contexts.items()
        if "cells" in choice.planes
    }
    return PlaneEndpoints(
        namespace=choice.namespace or namespace or "default",
        project=project if "project" in choice.planes else None,
        hub=hub,
        cells=cells,
        by_context=by_context,
        asks_cells="cells" in choice.planes,
        unusable=unusable,
    )


def _files(choice: PlaneChoice, environ: Mapping[str, str]) -> list[Path]:
    if choice.kubeconfig:
        return [Path(choice.kubeconfig)]
    named = [Path(one) for one in environ.get("KUBECONFIG", "").split(os.pathsep) if one]
    if named:
        return named
    home = environ.get("HOME", "")
    if not home:
        raise ContextError("HOME is not set; give --kubeconfig FILE or set KUBECONFIG")
    return [Path(home) / ".kube" / "config"]


def _contexts(files: list[Path]) -> dict[Path, Contexts]:
    """The contexts of each file; as in kubectl, a listed file may be missing but not all."""
    found: dict[Path, Contexts] = {}
    for path in files:
        try:
            found[path] = load_contexts(path, allow_exec=True, is_personal=True)
        except UnreadableFileError as failure:
            if len(files) == 1:
                raise ContextError(f"{failure}; give --kubeconfig FILE or set KUBECONFIG") from None
        except FileError as failure:
            raise ContextError(str(failure)) from None
    if not found:
        raise ContextError(f"none of {', '.join(map(str, files))} can be read; set KUBECONFIG")
    return found


def _file_of(by_context: Mapping[str, Path], name: str, flag: str) -> Path:
    if name not in by_context:
        known = ", ".join(sorted(by_context)) or "none"
        raise ContextError(f"context {name!r} is not in the kubeconfig ({flag}); it has: {known}")
    return by_context[name]


def _endpoint(path: Path, context: str) -> tuple[Endpoint, str]:
    try:
        access = load_kubeconfig(path, context, allow_exec=True, is_personal=True)
        material = _material(access)
        tls = share_client_context(material.ca, material.identity)
    except FileError as failure:
        raise ContextError(str(failure)) from None
    except (ExecPluginError, UnusableTlsError) as failure:
        raise ContextError(f"{path}: context {context!r}: {failure}") from None
    headers = {"Authorization": f"Bearer {material.token}"} if material.token else {}
    return Endpoint(access.server, tls, headers, access.tls_server_name), access.namespace


def _material(access: ServerAccess) -> Material:
    read = read_material(access)
    if access.exec_command is None:
        return read
    printed = asyncio.run(run_plugin(access.exec_command, EXEC_TIMEOUT))
    return Material(
        ca=read.ca,
        token=printed.token or read.token,
        identity=printed.identity or read.identity,
        tls_server_name=read.tls_server_name,
        expires=printed.expires,
    )
