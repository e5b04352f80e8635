"""Runs the commands of the how-tos in a world that is like the one they are about.

```
milo · management · hub · dfw-1 · ord-1 · acme    the demo's planes and operators, by context
iad-1 · single                                    clusters on which nothing of ours is yet
```

`kubectl` is the stock one; its home is the world's folder, and so is the folder that commands run
in, with `deploy/` as it ships and the files that an installation brings. Pods do not run here: a
Deployment counts as rolled out once it was applied. A kubectl command that prints nothing has
failed. Nothing outside the folder is touched.
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
from compute_operator_kit.strict_yaml import parse_document
from e2e.backends.port import ORD, Call
from e2e.demo.predecessor import OPERATORS, install_predecessor
from e2e.demo.scene import PLACES, Hands
from e2e.demo.stage import SYSTEM, TREE, Stage
from e2e.documents import a_placement, a_workload
from e2e.kinds import INSTANCE
from e2e.objects import name_of, objects_at, text_at, value_at
from e2e.planes.binaries import PLANES
from e2e.planes.process import Command, ManagedProcess
from e2e.planes.store import Store
from e2e.planes.waiting import until

FRESH: Final = ("iad-1", "single")
# What people call planes in the how-tos, and the demo's names of them.
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
# kubectl ends with 0 also where nothing matches a selector, and a page would show a command that
# shows nothing; `--ignore-not-found` states that this may be so. Its output goes on as it was, to a
# pipe, a file or a variable.
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
# What a page looks at and the world does not bring about by itself.
A_POD: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "compute-management-operator-0", "namespace": "compute-system"},
    "spec": {"containers": [{"name": "operator", "image": f"registry.example.net/x@{DIGEST}"}]},
}
A_WARNING: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "quarantined", "namespace": "default"},
    "involvedObject": {
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Instance",
        "namespace": "default",
        "name": "web-default-dfw-0",
    },
    "type": "Warning",
    "reason": "Quarantined",
    "message": "cell_unknown: no Cluster of that name",
}


class ShownCommand(Protocol):
    """One thing that a page shows (`tools.doc_blocks.Shown`)."""

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
    """What failed; what is shown is run page by page, those that take something away last."""
    wanted = [one for one in shown if one.kind in {"script", "inline", "file"}]
    if not wanted:
        return []
    kubectl = find_kubectl()
    if kubectl is None:
        for one in wanted:
            say(f"{one.place}: not run, no kubectl is to be had: `./dev planes` builds one")
        return []
    return asyncio.run(_run(wanted, kubectl, say))


def find_kubectl() -> Path | None:
    """The one that was built with the planes, else whichever the user has."""
    store = Store.of_user()
    built = next(store.path_of(binary) for binary in PLANES if binary.name == "kubectl")
    found = shutil.which("kubectl")
    return built if built.exists() else Path(found) if found else None


async def _run(wanted: Sequence[ShownCommand], kubectl: Path, say: Say) -> list[str]:
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(Stage(_tell_nobody))
        world = World(stage, kubectl)
        await world.open(stack)
        failures: list[str] = []
        for page, commands in _by_page(wanted):
            await world.prepare(page)
            for one in commands:
                failures += await world.run(one, say)
    return failures


def _tell_nobody(done: int, total: int, what: str) -> None:
    """How far the planes are: nobody waits at a screen."""


def _by_page(wanted: Sequence[ShownCommand]) -> Iterator[tuple[str, list[ShownCommand]]]:
    pages = dict.fromkeys(one.page for one in wanted)
    for page in sorted(
        pages, key=lambda page: (page in LAST, LAST.index(page) if page in LAST else 0)
    ):
        yield page, [one for one in wanted if one.page == page]


@dataclass(slots=True)
class World:
    """See the module's text."""

    stage: Stage
    kubectl: Path
    _fresh: JsonObject = field(default_factory=dict[str, JsonValue])
    # Whether a Deployment of ours that is applied starts its operator.
    _is_switching: bool = False

    @property
    def folder(self) -> Path:
        return self.stage.run.path / "howto"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / ".kube" / "config"

    async def open(self, stack: AsyncExitStack) -> None:
        """Planes on which nothing is, files that an installation brings, a Workload to look at."""
        (self.folder / ".kube").mkdir(parents=True)
        (self.folder / "deploy").symlink_to(TREE / "deploy")
        await self._open_fresh_planes(stack)
        self._write_kubeconfigs()
        self._write_files()
        rolling = asyncio.create_task(self._roll_out())
        stack.push_async_callback(_end, rolling)
        project = Hands(self.stage, PLACES[0].project, PLACES[0].namespace)
        await self.stage.set_grant(PLACES[0].project, 100)
        await project.create(a_workload("web", a_placement("default", "DFW")))

        async def is_shown() -> bool:
            """Instances come to the project by another way than the status that counts them."""
            return bool(await project.list(INSTANCE))

        await until("Instances of web in the project", is_shown, check=self.stage.check)

    async def prepare(self, page: str) -> None:
        """What must be so before a page is followed."""
        is_of_user = page.endswith("debug-a-workload.md")
        self._choose_context(PLACES[0].project if is_of_user else "single")
        if page.endswith("add-a-city.md"):
            cluster = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"}
            await self._apply(
                "hub", {**cluster, "metadata": {"name": "iad-1"}, "spec": {"syncMode": "Push"}}
            )
        if page.endswith("ComputeNoLeader.md"):
            await self._apply("management", A_POD)
        if page.endswith("ComputeObjectsQuarantined.md"):
            await self._apply("hub", A_WARNING)
        if page.endswith("runbooks/decommission-cell.md"):
            await self.stage.cut_off(ORD)  # it never returns
        if page == SWITCH:
            await install_predecessor(self.stage)
            self._is_switching = True

    async def run(self, one: ShownCommand, say: Say) -> list[str]:
        """Writes a file, or runs a command as a reader would; what went wrong."""
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
        # What a reader would type, so a shell it is; the text is our own.
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

    # --- furnishing ------------------------------------------------------------------------------

    async def _open_fresh_planes(self, stack: AsyncExitStack) -> None:
        path = self.stage.run.path / "fresh.kubeconfig"
        words = [word for name in FRESH for word in ("--plane", name)]
        arguments = ("-m", "compute_sim_planes", "--kubeconfig", str(path), *words)
        command = Command(
            "fresh-planes", Path(sys.executable), arguments, {"PYTHONPATH": str(TREE)}
        )

        async def announced() -> bool:
            return path.exists() and bool(path.read_text("utf-8"))

        planes = ManagedProcess(command, self.stage.run, announced)
        stack.push_async_callback(planes.stop)
        await planes.up()
        self._fresh = yaml.safe_load(path.read_text("utf-8"))

    def _write_kubeconfigs(self) -> None:
        """One for people with every context, and one per far plane for the command of 8.1."""
        own: JsonObject = yaml.safe_load(self.stage.kubeconfig.read_text("utf-8"))
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
        """Certificates that an installation brings; a page may make others over them."""
        pki = self.stage.run.path / "pki"
        for name in ("tls.crt", "webhook.crt"):
            shutil.copy(pki / "server.crt", self.folder / name)
        for name in ("tls.key", "webhook.key"):
            shutil.copy(pki / "server.key", self.folder / name)
        shutil.copy(pki / "ca.crt", self.folder / "ca.crt")

    def _accompany(self, overlay: Path) -> None:
        """What an overlay of the page names beside itself."""
        for name in ("hub", "milo"):
            shutil.copy(self.folder / "ca.crt", overlay / f"{name}-ca.crt")

    async def _apply(self, context: str, document: JsonObject) -> None:
        script = f"{self.kubectl} --context {context} apply --server-side -f -"
        done = await asyncio.to_thread(self._shell, script, orjson.dumps(document).decode())
        if done.returncode:
            raise RuntimeError(f"preparing a how-to: {done.stderr}")

    # --- pods that do not run --------------------------------------------------------------------

    async def _roll_out(self) -> None:
        """Says of every Deployment what a cluster says once its pods are ready."""
        while True:
            for context in ("management", "dfw-1"):
                plane = NAMES.get(context, context)
                await self._roll_out_on(plane)
            await asyncio.sleep(ROLLED_EVERY.total_seconds())

    async def _roll_out_on(self, plane: str) -> None:
        path = "/apis/apps/v1/deployments"
        listed = await self.stage.send(plane, "kubelet", Call("GET", path))
        for found in objects_at(listed.body, "items"):
            generation = value_at(found, "metadata", "generation")
            if value_at(found, "status", "observedGeneration") == generation:
                continue
            await self._launch(plane, found)
            count = value_at(found, "spec", "replicas") or 1
            counters = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            status: JsonObject = {
                "observedGeneration": generation,
                **dict.fromkeys(counters, count),
            }
            namespace, name = (text_at(found, "metadata", key) for key in ("namespace", "name"))
            target = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status"
            merge = "application/merge-patch+json"
            await self.stage.send(
                plane, "kubelet", Call("PATCH", target, {"status": status}, merge)
            )

    async def _launch(self, plane: str, deployment: JsonObject) -> None:
        """The operator of a Deployment of ours, with the configuration that was applied beside it;
        only where a page is about its coming.
        """
        where, operator, config = OPERATORS.get(name_of(deployment), ("", "", ""))
        if not self._is_switching or where != plane:
            return
        if value_at(deployment, "spec", "replicas") == 0:
            await self.stage.halt(operator)
            return
        target = f"/api/v1/namespaces/{SYSTEM}/configmaps/{config}"
        found = await self.stage.send(plane, "kubelet", Call("GET", target))
        applied = parse_document(text_at(found.body, "data", "config.yaml"))
        await self.stage.launch(operator, applied)


async def _end(task: asyncio.Task[None]) -> None:
    """Ends what never ends by itself; what it failed of is the cause of what failed after it."""
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
