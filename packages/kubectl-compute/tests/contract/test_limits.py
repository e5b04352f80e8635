"""Limits and bad input: requests of many cities, contexts that cannot be used, odd terminals."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kubectl_worlds import Planes, block_instance, condition, part, settled
from served_planes import ServedPlanes, serve

from compute_api_types.wire import JsonObject
from compute_kubectl.__main__ import run
from compute_kubectl.commands.session import Ports
from compute_kubectl.commands.terminal import Terminal
from compute_kubectl.read.requests import SentRequest

CITIES = {f"C{number:02}": f"c{number:02}-1" for number in range(50)}
# docs/spec/kubectl-compute.md 4.
PROJECT_ALONE = 40
BASE, PER_CELL = 12, 6


def call(served: ServedPlanes, *words: str, width: int = 100) -> tuple[int, str, list[SentRequest]]:
    out = io.StringIO()
    sent: list[SentRequest] = []
    code = run(
        [*words, "-n", "shop"],
        {"KUBECONFIG": str(served.kubeconfig)},
        terminal=Terminal(out, out, width),
        ports=Ports(sent=sent.append),
    )
    return code, out.getvalue(), sent


def blocked_everywhere() -> Planes:
    """Every city waits for its network, which takes the most requests."""
    planes = settled(2, CITIES)
    for city in CITIES:
        pending = condition("Ready", "False", "SchedulingGatesPresent", "", 60)
        for ordinal in range(2):
            name = f"web-main-{city.lower()}-{ordinal}"
            block_instance(planes, name, pending, gates=("Network", "Quota"))
    return planes


@pytest.mark.spec("WY-19")
@pytest.mark.parametrize("contexts", [(), ("acme", "hub")], ids=["own contexts", "hub's proxy"])
def test_fifty_cities_stay_below_the_limit_of_requests(
    tmp_path: Path, contexts: tuple[str, ...]
) -> None:
    with serve(blocked_everywhere(), tmp_path, contexts=contexts) as served:
        code, text, sent = call(served, "why", "web", "--timeout", "60s")
        assert code == 1, text
        assert "0 of 50 cities ready" in text
        cells = [one for one in sent if one.plane not in {"project", "hub"}]
        assert {one.plane for one in cells} == set(CITIES.values())
        assert len(sent) - len(cells) <= BASE
        assert all(sum(one.plane == cell for one in cells) <= PER_CELL for cell in CITIES.values())
        code, text, sent = call(served, "why", "web", "--planes", "project")
        assert code == 1, text
        assert len(sent) <= PROJECT_ALONE
        assert {one.plane for one in sent} == {"project"}


def test_lists_are_read_by_pages_of_500(tmp_path: Path) -> None:
    planes = settled(12, CITIES)
    with serve(planes, tmp_path, contexts=("acme",)) as served:
        code, text, sent = call(served, "why", "web", "--timeout", "60s")
    assert code == 0, text
    assert "600/600" in text
    assert all("limit=500" in one.query for one in sent if one.path.endswith("instances"))
    assert len(sent) <= PROJECT_ALONE


# --- contexts -------------------------------------------------------------------------------------


def spoil(served: ServedPlanes, name: str) -> None:
    """The credentials of one context cannot be used."""
    document = yaml.safe_load(served.kubeconfig.read_text("utf-8"))
    for user in document["users"]:
        if user["name"] == name:
            user["user"] = {"tokenFile": "missing-token"}
    served.kubeconfig.write_text(yaml.safe_dump(document), "utf-8")


@pytest.mark.parametrize("name", ["hub", "ord-1"])
def test_a_context_that_cannot_be_used_hides_its_plane_alone(tmp_path: Path, name: str) -> None:
    with serve(settled(), tmp_path) as served:
        spoil(served, name)
        code, text, _ = call(served, "why", "web", "-o", "json")
        assert code in {0, 1, 3}, text
        states = {one["name"]: one["state"] for one in json.loads(text)["planes"]}
        assert states[name] == "unreachable"
        assert states["project"] == "read"
        text = call(served, "why", "web")[1]
        assert f"{name}: unreachable" in text
        assert "missing-token" in text


def test_a_context_that_a_flag_names_must_be_usable(tmp_path: Path) -> None:
    with serve(settled(), tmp_path) as served:
        spoil(served, "hub")
        code, text, _ = call(served, "why", "web", "--hub-context", "hub")
        assert code == 3
        assert text.startswith("error: ")
        assert len(text.splitlines()) == 1


def test_without_home_and_kubeconfig_there_is_a_clear_line() -> None:
    out = io.StringIO()
    assert run(["why", "web"], {}, terminal=Terminal(out, out)) == 3
    assert out.getvalue() == ("error: HOME is not set; give --kubeconfig FILE or set KUBECONFIG\n")


def test_a_saved_directory_of_another_namespace_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    with serve(settled(), tmp_path) as served:
        assert call(served, "why", "web", "--save", str(folder))[0] == 0
        out = io.StringIO()
        given = ["why", "web", "--offline", str(folder), "-n", "other"]
        assert run(given, {}, terminal=Terminal(out, out)) == 2
        assert "has namespace 'shop', not 'other'" in out.getvalue()


# --- output ---------------------------------------------------------------------------------------


def test_half_a_character_in_a_message_breaks_no_output(tmp_path: Path) -> None:
    planes = settled()
    crashing = condition("Available", "False", "InstanceCrashing", "half \ud83d of a sign", 60)
    block_instance(planes, "web-main-dfw-0", crashing)
    with serve(planes, tmp_path) as served:
        for output in ("text", "json"):
            code, text, _ = call(served, "why", "web", "-o", output)
            assert code == 1
            assert "half" in text
            text.encode("utf-8")


def test_a_terminal_without_our_signs_shows_others(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    planes = settled()
    crashing = condition("Available", "False", "InstanceCrashing", "exit 1", 60)
    block_instance(planes, "web-main-dfw-0", crashing)
    with serve(planes, tmp_path) as served:
        call(served, "why", "web", "--save", str(folder))
    ran = subprocess.run(
        [sys.executable, "-m", "compute_kubectl", "why", "web", "--offline", str(folder)],
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    assert ran.stderr == ""
    assert "? " in ran.stdout


def test_a_reader_that_ends_early_is_no_error(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    with serve(settled(), tmp_path) as served:
        call(served, "why", "web", "--save", str(folder))
    command = f"{sys.executable} -m compute_kubectl why web --offline {folder} | true"
    ran = subprocess.run(
        ["/bin/sh", "-c", command],
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""


def test_an_object_that_does_not_parse_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    planes = settled()
    broken: JsonObject = planes.hub["workloaddeployments"][1]
    broken["spec"] = "none"
    part(broken, "metadata")["labels"] = ["odd"]
    planes.hub["instances"].append({"kind": "Instance", "metadata": {"name": "odd"}, "spec": 7})
    with serve(planes, tmp_path) as served:
        for command in ("why", "tree", "timeline"):
            code, text, _ = call(served, command, "web")
            assert code in {0, 1}, text
            assert "Traceback" not in text
        text = call(served, "why", "web")[1]
        assert "DFW  ready" in text
