"""What processes of a stack are started with: run folder, programs, ports, credentials.

A process gets its name, ports and readiness probe here; `plane.py` and `hub.py` define which
processes there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from e2e.harness.access.client import Endpoint
from e2e.harness.access.kubeconfig import Context, Credential, render_kubeconfig
from e2e.harness.planes.flags import StackSettings
from e2e.harness.planes.identities import ADMIN, Tokens
from e2e.harness.planes.node_slot import NodeSlot
from e2e.harness.planes.pki import Pki
from e2e.harness.processes.ports import Ports
from e2e.harness.processes.process import Command, ManagedProcess, Probe
from e2e.harness.programs.build import Programs


@dataclass(frozen=True, slots=True)
class StackRuntime:
    """The shared parts of one stack, and its processes."""

    settings: StackSettings
    programs: Programs
    ports: Ports
    pki: Pki
    tokens: Tokens
    processes: list[ManagedProcess] = field(default_factory=list)
    # Of planes that run pods.
    slots: Mapping[str, NodeSlot] = field(default_factory=dict[str, NodeSlot])
    # The plane with the ServiceAccounts that hub and Milo trust; empty without pods.
    issuer: str = ""

    def add(
        self, name: str, program: str, arguments: tuple[str, ...], ready: Probe
    ) -> ManagedProcess:
        return self.add_command(Command(name, self.programs[program], arguments), ready)

    def add_command(self, command: Command, ready: Probe) -> ManagedProcess:
        process = ManagedProcess(command, self.settings.run, ready)
        self.processes.append(process)
        return process

    def forget(self, name: str) -> None:
        """Removes a process that has ended, so that its name can be used again."""
        self.processes[:] = [process for process in self.processes if process.name != name]

    def check(self) -> None:
        """Raises if a process of the stack has ended."""
        for process in self.processes:
            process.check()

    def server_at(self, port: int) -> str:
        return f"https://{self.settings.address}:{port}"

    def endpoint(self, plane: str, port: int, user: str = ADMIN.user) -> Endpoint:
        return Endpoint(self.server_at(port), self.pki.authority, self.tokens.of(plane, user))

    def health_of(self, port: int) -> Endpoint:
        """Without a token: health paths are public, and a wrong token would be refused."""
        return Endpoint(self.server_at(port), self.pki.authority)

    def context(self, plane: str, port: int, credential: Credential | None = None) -> Context:
        return Context(
            plane, self.server_at(port), self.pki.authority, credential or self.pki.admin
        )

    def write_kubeconfig(self, plane: str, name: str, context: Context) -> None:
        self.settings.run.write_for_plane(plane, name, render_kubeconfig([context]))
