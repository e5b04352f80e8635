"""What every process of a stack is started from: folder, programs, ports, credentials.

The place where a process gets its name, its ports and its probe; `plane.py` and `hub.py` say which
processes there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from e2e.planes.build import Programs
from e2e.planes.client import Endpoint
from e2e.planes.flags import Ground
from e2e.planes.identities import ADMIN, Tokens
from e2e.planes.kubeconfig import Context, Credential, render_kubeconfig
from e2e.planes.node.slot import Slot
from e2e.planes.pki import Pki
from e2e.planes.ports import Ports
from e2e.planes.process import Command, ManagedProcess, Probe


@dataclass(frozen=True, slots=True)
class Site:
    """The ground one stack stands on, and the processes that stand on it."""

    ground: Ground
    programs: Programs
    ports: Ports
    pki: Pki
    tokens: Tokens
    processes: list[ManagedProcess] = field(default_factory=list)
    # Of the planes that run pods.
    slots: Mapping[str, Slot] = field(default_factory=dict[str, Slot])
    # The plane whose ServiceAccounts hub and Milo believe; none where nobody runs as a pod.
    issuer: str = ""

    def add(
        self, name: str, program: str, arguments: tuple[str, ...], ready: Probe
    ) -> ManagedProcess:
        return self.add_command(Command(name, self.programs[program], arguments), ready)

    def add_command(self, command: Command, ready: Probe) -> ManagedProcess:
        process = ManagedProcess(command, self.ground.run, ready)
        self.processes.append(process)
        return process

    def forget(self, name: str) -> None:
        """It ended for good; the name is free."""
        self.processes[:] = [process for process in self.processes if process.name != name]

    def check(self) -> None:
        """Raises when any process of the stack died."""
        for process in self.processes:
            process.check()

    def server_at(self, port: int) -> str:
        return f"https://{self.ground.address}:{port}"

    def endpoint(self, plane: str, port: int, user: str = ADMIN.user) -> Endpoint:
        return Endpoint(self.server_at(port), self.pki.authority, self.tokens.of(plane, user))

    def health_of(self, port: int) -> Endpoint:
        """Health paths are open to nobody in particular, and a wrong token would be refused."""
        return Endpoint(self.server_at(port), self.pki.authority)

    def context(self, plane: str, port: int, credential: Credential | None = None) -> Context:
        return Context(
            plane, self.server_at(port), self.pki.authority, credential or self.pki.admin
        )

    def write_kubeconfig(self, plane: str, name: str, context: Context) -> None:
        self.ground.run.write_for_plane(plane, name, render_kubeconfig([context]))
