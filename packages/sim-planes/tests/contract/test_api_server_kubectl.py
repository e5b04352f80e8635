"""Stock `kubectl` (get, describe, apply, patch, delete, wait) works against the server.

Skipped where no `kubectl` is on the PATH.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
import pytest_asyncio
import yaml

from compute_sim_planes.api_server.testing import Api, ServerAddress, a_config_map, a_widget
from compute_sim_planes.json_types import JsonObject
from compute_sim_planes.kubeconfig import Context, write_kubeconfig


@dataclass(frozen=True)
class Kubectl:
    """The program with the server's address and a namespace."""

    program: str
    environment: dict[str, str]
    namespace: str

    async def __call__(
        self, *words: str, stdin: JsonObject | None = None, fails: bool = False
    ) -> str:
        document = None if stdin is None else yaml.safe_dump(stdin).encode()
        # In a thread: on Python 3.11 asyncio's subprocesses leave one behind for a moment.
        ended = await asyncio.to_thread(
            subprocess.run,
            [self.program, "--namespace", self.namespace, *words],
            input=document,
            capture_output=True,
            env=self.environment,
            timeout=60,
            check=False,
        )
        assert (ended.returncode != 0) is fails, ended.stderr.decode()
        return (ended.stderr if fails else ended.stdout).decode()


@pytest_asyncio.fixture
async def kubectl(
    api_server: ServerAddress, namespace: str, tmp_path: Path
) -> AsyncIterator[Kubectl]:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("no kubectl on the PATH")
    path = tmp_path / "kubeconfig"
    context = Context("contract", api_server.url, api_server.token, api_server.authority)
    write_kubeconfig(path, [context])
    # Its own home: kubectl caches discovery there, by address.
    yield Kubectl(
        program,
        {"KUBECONFIG": str(path), "HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        namespace,
    )


@pytest.mark.usefixtures("widgets")
async def test_apply_creates_then_leaves_alone_then_changes(kubectl: Kubectl) -> None:
    created = await kubectl("apply", "-f", "-", stdin=a_widget())
    assert created == "widget.contract.example.com/one created\n"
    unchanged = await kubectl("apply", "-f", "-", stdin=a_widget())
    assert unchanged == "widget.contract.example.com/one unchanged\n"
    changed = await kubectl("apply", "-f", "-", stdin=a_widget(spec={"size": 2}))
    assert changed == "widget.contract.example.com/one configured\n"
    size = await kubectl("get", "widget", "one", "-o", "jsonpath={.spec.size}")
    assert size == "2"


@pytest.mark.usefixtures("widgets")
async def test_server_side_apply_reports_conflicts(kubectl: Kubectl) -> None:
    applied = await kubectl("apply", "--server-side", "-f", "-", stdin=a_widget())
    assert applied == "widget.contract.example.com/one serverside-applied\n"
    conflict = await kubectl(
        "apply", "--server-side", "--field-manager=other", "-f", "-",
        stdin=a_widget(spec={"size": 2}), fails=True,
    )  # fmt: skip
    assert 'conflict with "kubectl": .spec.size' in conflict


@pytest.mark.usefixtures("widgets")
async def test_apply_refuses_what_the_schema_does_not_know(kubectl: Kubectl) -> None:
    unknown = a_widget(spec={"size": 1, "surprise": 2})
    refused = await kubectl("apply", "-f", "-", stdin=unknown, fails=True)
    assert 'unknown field "spec.surprise"' in refused
    invalid = await kubectl("apply", "-f", "-", stdin=a_widget(spec={"size": 0}), fails=True)
    assert "spec.size in body should be greater than or equal to 1" in invalid


@pytest.mark.usefixtures("widgets")
async def test_get_prints_the_columns_of_the_kind(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=a_widget(spec={"size": 7}))
    head, row = (await kubectl("get", "wdgt")).splitlines()
    assert head.split() == ["NAME", "SIZE", "PHASE", "AGE"]
    assert row.split()[:3] == ["one", "7", "Pending"]
    wide = (await kubectl("get", "widgets", "-o", "wide")).splitlines()[0]
    assert wide.split() == ["NAME", "SIZE", "PHASE", "COLOR", "AGE"]
    existing: JsonObject = orjson.loads(await kubectl("get", "widget", "one", "-o", "json"))
    assert existing["kind"] == "Widget"
    assert await kubectl("get", "widgets", "-o", "name") == "widget.contract.example.com/one\n"


@pytest.mark.usefixtures("widgets")
async def test_describe_shows_fields_and_events(kubectl: Kubectl, api: Api, namespace: str) -> None:
    await kubectl("apply", "-f", "-", stdin=a_widget(spec={"size": 7}))
    uid = await kubectl("get", "widget", "one", "-o", "jsonpath={.metadata.uid}")
    event: JsonObject = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "one.1"},
        "involvedObject": {
            "apiVersion": "contract.example.com/v1",
            "kind": "Widget",
            "name": "one",
            "namespace": namespace,
            "uid": uid,
        },
        "reason": "Tested",
        "message": "it was tested",
        "type": "Normal",
        "count": 1,
    }
    (await api.post(f"/api/v1/namespaces/{namespace}/events", event)).expect(201)
    described = await kubectl("describe", "widget", "one")
    assert "Size:   7" in described
    assert "it was tested" in described


@pytest.mark.usefixtures("widgets")
async def test_patch_label_and_annotate(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=a_widget())
    await kubectl("patch", "widget", "one", "--type=merge", "-p", '{"spec":{"size":3}}')
    operations = [
        {"op": "test", "path": "/spec/size", "value": 3},
        {"op": "add", "path": "/spec/code", "value": "ABC"},
    ]
    text = orjson.dumps(operations).decode()
    await kubectl("patch", "widget", "one", "--type=json", "-p", text)
    await kubectl("label", "widget", "one", "team=a")
    await kubectl("annotate", "widget", "one", "note=b")
    existing: JsonObject = orjson.loads(await kubectl("get", "widget", "one", "-o", "json"))
    assert existing["spec"] == {"size": 3, "color": "red", "code": "ABC"}
    listed = await kubectl("get", "widgets", "-l", "team=a", "-o", "name")
    assert listed == "widget.contract.example.com/one\n"


@pytest.mark.usefixtures("widgets")
async def test_wait_sees_conditions_and_deletions(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=a_widget())
    waiting = asyncio.create_task(
        kubectl("wait", "--for=condition=Ready", "widget/one", "--timeout=20s")
    )
    await kubectl(
        "patch", "widget", "one", "--subresource=status", "--type=merge",
        "-p", '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}',
    )  # fmt: skip
    assert await waiting == "widget.contract.example.com/one condition met\n"
    going = asyncio.create_task(kubectl("wait", "--for=delete", "widget/one", "--timeout=20s"))
    await kubectl("delete", "widget", "one")
    await going


@pytest.mark.usefixtures("widgets")
async def test_delete_waits_for_the_object_to_go(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=a_widget())
    deleted = await kubectl("delete", "widget", "one")
    assert deleted.startswith('widget.contract.example.com "one" deleted')
    assert "NotFound" in await kubectl("get", "widget", "one", fails=True)
    await kubectl("delete", "widget", "one", "--ignore-not-found")


async def test_built_in_kinds_are_applied_and_changed(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=a_config_map(data={"a": "1", "b": "2"}))
    await kubectl("apply", "-f", "-", stdin=a_config_map(data={"a": "3"}))
    existing: JsonObject = orjson.loads(await kubectl("get", "configmap", "one", "-o", "json"))
    assert existing["data"] == {"a": "3"}


@pytest.mark.usefixtures("widgets")
async def test_explain_reads_the_schema(kubectl: Kubectl) -> None:
    explained = await kubectl("explain", "widget.spec")
    assert "size\t<integer> -required-" in explained


async def test_the_server_is_recognised(kubectl: Kubectl) -> None:
    assert "Server Version: v1." in await kubectl("version")
    resources = await kubectl("api-resources", "--api-group=apps", "-o", "name")
    assert "deployments.apps" in resources
