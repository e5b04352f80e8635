"""Runs the commands of the how-tos on planes like those they describe.

```
milo · management · hub · dfw-1 · ord-1 · acme    the demo's planes and operators, by context
iad-1 · single                                    clusters without anything of ours
```

`kubectl` is a standard one; home and working directory are the run's folder, with `deploy/` as it
ships and the files that an installation has. Pods do not run: a Deployment counts as rolled out
once it was applied. A kubectl command without output counts as failed. Nothing outside the folder
is changed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final, Protocol

import orjson
import yaml

from compute_api_types.wire import JsonObject, JsonValue
from compute_kubeconfig.strict_yaml import parse_document
from e2e.demo.backend import PROJECT_NAMESPACES, UserClient
from e2e.demo.environment import SYSTEM, TREE, EmbeddedEnvironment
from e2e.demo.predecessor import OPERATORS, install_predecessor
from e2e.harness.access.waiting import until
from e2e.harness.processes.process import Command, ManagedProcess
from e2e.harness.stack.kubectl import NO_KUBECTL, find_kubectl
from e2e.world.documents import a_placement, a_workload
from e2e.world.kinds import INSTANCE
from e2e.world.objects import name_of, objects_at, text_at, value_at
from e2e.world.port import ORD, PlaneRequest

FRESH: Final = ("iad-1", "single")
# Context names in the how-tos, and the demo's names of the planes.
NAMES: Final = {"milo": "root", "management": "home"}
PATIENCE: Final = timedelta(minutes=2)
ROLLED_EVERY: Final = timedelta(seconds=1)
DIGEST: Final = "sha256:" + "0" * 64
SWITCH: Final = "docs/howto/migrate-from-go.md"
LAST: Final = (
    "docs/howto/decommission-a-cell.md",
    "docs/howto/runbooks/decommission-cell.md",
    SWITCH,
)
Say = Callable[[str], None]
# kubectl exits with 0 if a selector matches nothing, so a command that shows nothing would pass;
# `--ignore-not-found` permits that. The output is passed on to a pipe, a file or a variable.
PRINTING: Final = """kubectl() {
  local printed status=0
  printed=$(command kubectl "$@"; code=$?; echo .; exit $code) || status=$?
  printed=${printed%.}
  printf %s "$printed"
  case " $* " in *" --ignore-not-found "*) return $status;; esac
  if [ $status -eq 0 ] && [ -z "$printed" ]; then
    echo "kubectl $*: printed nothing" >&2
    return 1
  fi
  return $status
}
"""
# Objects that a page reads and the planes do not create.
A_POD: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "compute-management-operator-0", "namespace": "compute-system"},
    "spec": {"containers": [{"name": "operator", "image": f"registry.example.net/x@{DIGEST}"}]},
}
A_WARNING: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Event",
    "involvedObject": {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Instance",
        "namespace": "default",
        "name": "web-default-dfw-0",
    },
    "type": "Warning",
    "message": "as an operator writes it",
}
# Pages that look for an event of the hub, and its reason.
EVENTS: Final = {
    "ComputeMisplacedClaims.md": "MisplacedClaimRemoved",
    "ComputeObjectsQuarantined.md": "Quarantined",
    "ComputeUnbackedClaims.md": "UnbackedClaims",
}


class ShownCommand(Protocol):
    """One command or file on a page (`tools.doc_blocks.Shown`)."""

    @property
    def page(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def note(self) -> str: ...


def run_how_tos(shown: Sequence[ShownCommand], say: Say) -> list[str]:
    """Runs commands page by page, pages that delete something last; returns the failures."""
    wanted = [one for one in shown if one.kind in {"script", "inline", "file"}]
    if not wanted:
        return []
    kubectl = find_kubectl()
    if kubectl is None:
        for one in wanted:
            say(f"{one.place}: not run, {NO_KUBECTL}")
        return []
    return asyncio.run(_run(wanted, kubectl, say))


async def _run(wanted: Sequence[ShownCommand], kubectl: Path, say: Say) -> list[str]:
    async with AsyncExitStack() as stack:
        environment = await stack.enter_async_context(EmbeddedEnvironment(_no_progress))
        world = HowToEnvironment(environment, kubectl)
        await world.open(stack)
        failures: list[str] = []
        for page, commands in _by_page(wanted):
            await world.prepare(page)
            for one in commands:
                failures += await world.run(one, say)
    return failures


def _no_progress(done: int, total: int, what: str) -> None:
    """Progress of the planes' start, which is not shown."""


def _by_page(wanted: Sequence[ShownCommand]) -> Iterator[tuple[str, list[ShownCommand]]]:
    pages = dict.fromkeys(one.page for one in wanted)
    for page in sorted(
        pages, key=lambda page: (page in LAST, LAST.index(page) if page in LAST else 0)
    ):
        yield page, [one for one in wanted if one.page == page]


@dataclass(slots=True)
class HowToEnvironment:
    """Planes and files for the commands."""

    environment: EmbeddedEnvironment
    kubectl: Path
    _fresh: JsonObject = field(default_factory=dict[str, JsonValue])
    # Whether applying one of our Deployments starts its operator.
    _is_switching: bool = False

    @property
    def folder(self) -> Path:
        return self.environment.run.path / "howto"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / ".kube" / "config"

    async def open(self, stack: AsyncExitStack) -> None:
        """Opens empty planes, writes the installation's files and creates a Workload."""
        (self.folder / ".kube").mkdir(parents=True)
        for name in ("deploy", "examples"):
            (self.folder / name).symlink_to(TREE / name)
        await self._open_fresh_planes(stack)
        self._write_kubeconfigs()
        self._write_files()
        rolling = asyncio.create_task(self._roll_out())
        stack.push_async_callback(_end, rolling)
        project = UserClient(
            self.environment, PROJECT_NAMESPACES[0].project, PROJECT_NAMESPACES[0].namespace
        )
        await self.environment.set_grant(PROJECT_NAMESPACES[0].project, 100)
        await project.create(a_workload("web", a_placement("default", "DFW")))

        async def is_shown() -> bool:
            """The projection reaches the project later than the status that counts it."""
            return bool(await project.list(INSTANCE))

        await until("Instances of web in the project", is_shown, check=self.environment.check)

    async def prepare(self, page: str) -> None:
        """Establishes what a page presupposes."""
        is_of_user = page.endswith(("debug-a-workload.md", "first-workload.md"))
        self._choose_context(PROJECT_NAMESPACES[0].project if is_of_user else "single")
        if page.endswith("add-a-city.md"):
            cluster = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"}
            await self._apply(
                "hub", {**cluster, "metadata": {"name": "iad-1"}, "spec": {"syncMode": "Push"}}
            )
        if page.endswith("ComputeNoLeader.md"):
            await self._apply("management", A_POD)
        if reason := EVENTS.get(page.rpartition("/")[2]):
            metadata: JsonObject = {"name": reason.lower(), "namespace": "default"}
            await self._apply("hub", {**A_WARNING, "metadata": metadata, "reason": reason})
        if page.endswith("runbooks/decommission-cell.md"):
            await self.environment.cut_off(ORD)  # a permanently lost cell
        if page == SWITCH:
            await install_predecessor(self.environment)
            self._is_switching = True

    async def run(self, one: ShownCommand, say: Say) -> list[str]:
        """Writes a file, or runs a command as a reader would; returns the problems."""
        if one.kind == "file":
            path = self.folder / one.note
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(one.text.replace("sha256:…", DIGEST), "utf-8")
            self._accompany(path.parent)
            return []
        say(f"{one.place}: {one.text.strip()}")
        done = await asyncio.to_thread(self._shell, one.text)
        if done.returncode == 0:
            return []
        words = (done.stderr or done.stdout).strip()
        return [f"{one.place}: exited {done.returncode}: {words}"]

    def _shell(self, script: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        # A reader types it into a shell; the text is our own.
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", PRINTING + script],
            cwd=self.folder,
            env=self._environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE.total_seconds(),
            check=False,
        )

    def _environment(self) -> Mapping[str, str]:
        ours = Path(sys.executable).parent
        path = (str(self.kubectl.parent), str(ours), os.environ.get("PATH", os.defpath))
        return {"PATH": os.pathsep.join(path), "HOME": str(self.folder)}

    # --- preparation -----------------------------------------------------------------------------

    async def _open_fresh_planes(self, stack: AsyncExitStack) -> None:
        path = self.environment.run.path / "fresh.kubeconfig"
        words = [word for name in FRESH for word in ("--plane", name)]
        arguments = ("-m", "compute_sim_planes", "--kubeconfig", str(path), *words)
        command = Command(
            "fresh-planes", Path(sys.executable), arguments, {"PYTHONPATH": str(TREE)}
        )

        async def announced() -> bool:
            return path.exists() and bool(path.read_text("utf-8"))

        planes = ManagedProcess(command, self.environment.run, announced)
        stack.push_async_callback(planes.stop)
        await planes.up()
        self._fresh = yaml.safe_load(path.read_text("utf-8"))

    def _write_kubeconfigs(self) -> None:
        """One for users with every context, and one per remote plane for the command of 8.1."""
        own: JsonObject = yaml.safe_load(self.environment.kubeconfig.read_text("utf-8"))
        contexts = {**_contexts_of(own), **_contexts_of(self._fresh)}
        for name, known_as in NAMES.items():
            contexts[name] = contexts.pop(known_as)
        _write_kubeconfig(self.kubeconfig, contexts)
        for name in ("hub", "milo"):
            for path in (f"{name}.yaml", f"{name}.kubeconfig", f"my/management/{name}.kubeconfig"):
                (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
                _write_kubeconfig(self.folder / path, {name: contexts[name]})

    def _choose_context(self, name: str) -> None:
        document = yaml.safe_load(self.kubeconfig.read_text("utf-8"))
        document["current-context"] = name
        self.kubeconfig.write_text(yaml.safe_dump(document), "utf-8")

    def _write_files(self) -> None:
        """Certificates of an installation; a page may overwrite them."""
        pki = self.environment.run.path / "pki"
        for name in ("tls.crt", "webhook.crt"):
            shutil.copy(pki / "server.crt", self.folder / name)
        for name in ("tls.key", "webhook.key"):
            shutil.copy(pki / "server.key", self.folder / name)
        shutil.copy(pki / "ca.crt", self.folder / "ca.crt")

    def _accompany(self, overlay: Path) -> None:
        """Writes the files that an overlay on a page refers to."""
        for name in ("hub", "milo"):
            shutil.copy(self.folder / "ca.crt", overlay / f"{name}-ca.crt")

    async def _apply(self, context: str, document: JsonObject) -> None:
        script = f"{self.kubectl} --context {context} apply --server-side -f -"
        done = await asyncio.to_thread(self._shell, script, orjson.dumps(document).decode())
        if done.returncode:
            raise RuntimeError(f"preparing a how-to: {done.stderr}")

    # --- Deployments without pods ----------------------------------------------------------------

    async def _roll_out(self) -> None:
        """Sets the status of every Deployment to that of a finished rollout."""
        while True:
            for context in ("management", "dfw-1"):
                plane = NAMES.get(context, context)
                await self._roll_out_on(plane)
            await asyncio.sleep(ROLLED_EVERY.total_seconds())

    async def _roll_out_on(self, plane: str) -> None:
        path = "/apis/apps/v1/deployments"
        listed = await self.environment.send(plane, "kubelet", PlaneRequest("GET", path))
        for deployment in objects_at(listed.body, "items"):
            generation = value_at(deployment, "metadata", "generation")
            if value_at(deployment, "status", "observedGeneration") == generation:
                continue
            await self._launch(plane, deployment)
            count = value_at(deployment, "spec", "replicas") or 1
            counters = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            status: JsonObject = {
                "observedGeneration": generation,
                **dict.fromkeys(counters, count),
            }
            namespace, name = (
                text_at(deployment, "metadata", key) for key in ("namespace", "name")
            )
            target = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status"
            merge = "application/merge-patch+json"
            await self.environment.send(
                plane, "kubelet", PlaneRequest("PATCH", target, {"status": status}, merge)
            )

    async def _launch(self, plane: str, deployment: JsonObject) -> None:
        """Starts the operator of one of our Deployments with the applied configuration, if the page
        is about it.
        """
        where, operator, config = OPERATORS.get(name_of(deployment), ("", "", ""))
        if not self._is_switching or where != plane:
            return
        if value_at(deployment, "spec", "replicas") == 0:
            await self.environment.halt(operator)
            return
        target = f"/api/v1/namespaces/{SYSTEM}/configmaps/{config}"
        config_map = await self.environment.send(plane, "kubelet", PlaneRequest("GET", target))
        applied = parse_document(text_at(config_map.body, "data", "config.yaml"))
        await self.environment.launch(operator, applied)


async def _end(task: asyncio.Task[None]) -> None:
    """Cancels an endless task; its own failure is raised as the cause of later ones."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


def _contexts_of(document: JsonObject) -> dict[str, tuple[JsonObject, JsonObject]]:
    """Cluster and user of each context."""
    clusters = {text_at(one, "name"): one for one in objects_at(document, "clusters")}
    users = {text_at(one, "name"): one for one in objects_at(document, "users")}
    return {
        text_at(one, "name"): (
            clusters[text_at(one, "context", "cluster")],
            users[text_at(one, "context", "user")],
        )
        for one in objects_at(document, "contexts")
    }


def _write_kubeconfig(path: Path, contexts: Mapping[str, tuple[JsonObject, JsonObject]]) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{**cluster, "name": name} for name, (cluster, _) in contexts.items()],
        "users": [{**user, "name": name} for name, (_, user) in contexts.items()],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name}} for name in contexts
        ],
        "current-context": next(iter(contexts)),
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document), "utf-8")
