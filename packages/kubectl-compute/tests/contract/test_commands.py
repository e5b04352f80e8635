"""Every command against served planes: answers, exit codes, requests, and what is never shown."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from kubectl_worlds import (
    Planes,
    block_instance,
    bucket,
    condition,
    find,
    part,
    settled,
    workload,
)
from served_planes import ServedPlanes, serve

from compute_api_types import labels
from compute_kubectl.__main__ import run
from compute_kubectl.commands.table import COMMANDS
from compute_kubectl.commands.terminal import Terminal

ROLES = Path(__file__).parents[4] / "deploy/components/diagnostics"
READS = ("why", "tree", "timeline", "cities", "quota")


@dataclass
class Ran:
    """What one run printed, and its exit code."""

    code: int
    out: str
    err: str


def call(served: ServedPlanes, *words: str, width: int = 100) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    environ = {"KUBECONFIG": str(served.kubeconfig)}
    given = [*words, *(() if "-n" in words or words[0] == "completion" else ("-n", "shop"))]
    code = run(given, environ, terminal=Terminal(out, err, width))
    return Ran(code, out.getvalue(), err.getvalue())


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedPlanes]:
    with serve(settled(), tmp_path) as one:
        yield one


def short_of_quota() -> Planes:
    planes = settled()
    exceeded = condition("QuotaGranted", "False", "QuotaExceeded", "available 0", 130)
    block_instance(planes, "web-main-ord-1", exceeded, gates=("Quota",), ready="PendingQuota")
    planes.project["allowancebuckets"] = [bucket("instances", 4, 4), bucket("vcpus", 40000, 4000)]
    return planes


@pytest.mark.spec("WY-16")
def test_a_ready_workload_is_exit_code_0(served: ServedPlanes) -> None:
    ran = call(served, "why", "web")
    assert (ran.code, ran.err) == (0, "")
    assert "2 of 2 cities ready" in ran.out
    assert "asked: project, hub, cells dfw-1, ord-1" in ran.out


@pytest.mark.spec("WY-16", "WY-09")
def test_a_workload_that_waits_is_exit_code_1(tmp_path: Path) -> None:
    with serve(short_of_quota(), tmp_path) as served:
        for words in (
            ("why", "web"),
            ("why", "instance", "web-main-ord-1"),
            ("why", "wd/web-main-ord"),
            ("why", "--all"),
        ):
            ran = call(served, *words)
            assert ran.code == 1, (words, ran.err)
            assert "QuotaExceeded" in ran.out
        ran = call(served, "why", "web", "-o", "json")
        document = json.loads(ran.out)
    assert (document["kind"], document["reason"]) == ("Diagnosis", "QuotaExceeded")
    assert document["actionability"] == "user"


@pytest.mark.spec("WY-16")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("why", "wbe"), 'workload "wbe" not found in namespace "shop"'),
        (("tree", "wbe"), 'workload "wbe" not found in namespace "shop"; similar: web'),
        (("timeline", "wbe"), "similar: web"),
        (("restart", "wbe"), 'workload "wbe" not found'),
        (("why",), "give the NAME of a Workload"),
        (("why", "web", "--all"), "not both"),
        (("why", "pod", "web"), "give the NAME of a Workload"),
        (("scale", "web", "--replicas", "3", "--placement", "x"), "placement 'x' does not exist"),
        (("restart", "web"), "give --yes"),
    ],
)
def test_a_wrong_name_or_usage_is_exit_code_2(
    served: ServedPlanes, words: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ran = call(served, *words)
    assert ran.code == 2
    assert text in ran.err + ran.out
    assert "Traceback" not in ran.err


def test_unknown_commands_and_flags_are_exit_code_2(
    served: ServedPlanes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["wyh"], {}) == 2
    assert "'wyh' is no command; there are: why" in capsys.readouterr().err
    assert run([], {}) == 2
    for words in (
        ("why", "--nonsense"),
        ("why", "web", "-n", "A B"),
        ("why", "web", "--timeout", "x"),
    ):
        assert call(served, *words).code == 2
    assert call(served, "scale", "web", "--replicas", "-1").code == 2


@pytest.mark.spec("WY-16", "WY-04")
def test_a_project_that_cannot_be_read_is_exit_code_3(served: ServedPlanes) -> None:
    served.refused |= {
        (plane, plural)
        for plane in ("acme", "hub", "dfw-1", "ord-1")
        for plural in ("workloads", "workloaddeployments", "instances", "clusters", "namespaces")
    }
    served.refused.add(("acme", "allowancebuckets"))
    for words in (
        ("why", "web"),
        ("why", "--all"),
        ("tree", "web"),
        ("timeline", "web"),
        ("cities",),
    ):
        ran = call(served, *words)
        assert ran.code == 3, words
        assert "refused" in ran.out + ran.err, words
    assert call(served, "quota").code == 3
    assert call(served, "restart", "web", "--yes").code == 3


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "No such file"),
        ("{]", "YAML"),
        ("apiVersion: v1\nkind: Config\n", "current-context is not set"),
    ],
)
def test_a_broken_kubeconfig_is_one_line_and_exit_code_3(
    served: ServedPlanes, content: str | None, text: str
) -> None:
    if content is None:
        served.kubeconfig.unlink()
    else:
        served.kubeconfig.write_text(content, "utf-8")
    ran = call(served, "why", "web")
    assert ran.code == 3
    assert text in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_server_that_is_away_is_unreachable(tmp_path: Path) -> None:
    with serve(settled(), tmp_path) as served:
        pass
    ran = call(served, "why", "web")
    assert ran.code == 3
    assert "unreachable" in ran.out


@pytest.mark.spec("WY-13")
def test_commands_that_read_send_nothing_but_gets_of_the_kinds_allowed(tmp_path: Path) -> None:
    for planes in (settled(), short_of_quota()):
        with serve(planes, tmp_path) as served:
            for command in READS:
                name = () if command in {"cities", "quota"} else ("web",)
                assert call(served, command, *name).code in {0, 1}
            assert call(served, "cities", "--all-projects").code in {0, 1}
            assert {one.method for one in served.requests} == {"GET"}
            assert not any("watch" in one.query for one in served.requests)
            asked = {one.plural for one in served.requests}
            assert not asked & {"works", "secrets", "configmaps"}


def role_of(plane: str) -> set[tuple[str, str]]:
    """Group and resource of every rule; each rule allows get and list alone."""
    text = (ROLES / plane / "role.yaml").read_text("utf-8")
    role = yaml.safe_load(text)
    assert all(rule["verbs"] == ["get", "list"] for rule in role["rules"])
    return {
        (group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


@pytest.mark.spec("WY-13")
def test_the_roles_of_diagnostics_suffice_and_each_rule_is_used(tmp_path: Path) -> None:
    used: dict[str, set[tuple[str, str]]] = {"project": set(), "hub": set(), "cell": set()}
    roles = {"acme": "project", "hub": "hub", "dfw-1": "cell", "ord-1": "cell"}
    with serve(short_of_quota(), tmp_path) as served:
        served.allowed = {plane: role_of(role) for plane, role in roles.items()}
        for command in READS:
            name = () if command in {"cities", "quota"} else ("web",)
            ran = call(served, command, *name)
            assert ran.code in {0, 1}, command
            assert "refused" not in ran.out + ran.err, command
        for one in served.requests:
            used[roles[one.plane]].add((one.group, one.plural))
    assert used == {role: role_of(role) for role in used}


@pytest.mark.spec("WY-05")
def test_with_the_project_alone_no_request_leaves_for_hub_or_cells(tmp_path: Path) -> None:
    with serve(short_of_quota(), tmp_path, contexts=("acme",)) as served:
        ran = call(served, "why", "web")
        assert ran.code == 1
        assert "QuotaExceeded" in ran.out
        assert {one.plane for one in served.requests} == {"acme"}
        assert len(served.requests) <= 40
    with serve(short_of_quota(), tmp_path) as served:
        call(served, "why", "web", "--planes", "project")
        assert {one.plane for one in served.requests} == {"acme"}


def test_cells_are_read_through_the_hub_where_no_context_names_them(tmp_path: Path) -> None:
    with serve(settled(), tmp_path, contexts=("acme", "hub")) as served:
        ran = call(served, "why", "web")
        assert ran.code == 0
        assert "cells dfw-1, ord-1" in ran.out
        assert {one.plane for one in served.requests if one.by_proxy} == {"dfw-1", "ord-1"}


@pytest.mark.parametrize("is_blocked", [False, True])
def test_requests_of_fifty_cities_stay_within_their_limits(
    tmp_path: Path, is_blocked: bool
) -> None:
    planes = settled(1, {f"C{n:02}": f"cell-{n:02}" for n in range(50)})
    if is_blocked:
        for n in range(50):
            crashing = condition("Available", "False", "ImageUnavailable", "no such image", 60)
            block_instance(planes, f"web-main-c{n:02}-0", crashing)
    with serve(planes, tmp_path, contexts=("acme", "hub")) as served:
        assert call(served, "why", "web").code == int(is_blocked)
        by_cell = Counter(one.plane for one in served.requests if one.by_proxy)
        rest = sum(not one.by_proxy for one in served.requests)
    assert len(by_cell) == 50
    assert max(by_cell.values()) <= 6
    assert rest <= 12


@pytest.mark.spec("WY-17")
def test_all_of_500_workloads_take_few_requests_to_the_project(tmp_path: Path) -> None:
    planes = settled()
    one = planes.project["workloads"][0]
    for n in range(499):
        other = workload({"DFW": "dfw-1"}, 1)
        part(other, "metadata")["name"] = f"app-{n:03}"
        part(other, "metadata")["uid"] = f"uid-{n}"
        planes.project["workloads"].append(other)
    with serve(planes, tmp_path, contexts=("acme",)) as served:
        ran = call(served, "why", "--all")
        assert ran.code == 1
        assert len([each for each in served.requests if each.plane == "acme"]) <= 10
        document = json.loads(call(served, "why", "--all", "-o", "json").out)
    assert part(one, "metadata")["name"] not in {
        each["workload"]["name"] for each in document["items"]
    }
    assert len(document["items"]) == 499


@pytest.mark.spec("WY-14")
def test_a_saved_directory_gives_the_same_answer_and_has_no_secret(tmp_path: Path) -> None:
    planes = short_of_quota()
    for each in planes.every("workloaddeployments"):
        part(each, "metadata", "annotations")["example.com/token"] = "MARKER-annotation"
    folder = tmp_path / "saved"
    with serve(planes, tmp_path) as served:
        first = call(served, "why", "web", "--save", str(folder))
        assert first.code == 1, first.err
        served.requests.clear()
        again = call(served, "why", "web", "--offline", str(folder))
        assert served.requests == []
        assert call(served, "why", "web", "--save", str(folder)).code == 2
        for command in ("tree", "timeline"):
            assert call(served, command, "web", "--offline", str(folder)).code in {0, 1}
        for command in ("cities", "quota"):
            assert call(served, command, "--offline", str(folder)).code in {0, 1}
        assert call(served, "why", "web", "--offline", str(tmp_path / "none")).code == 2
    assert first.out.splitlines()[:4] == again.out.splitlines()[:4]
    saved = "".join(path.read_text("utf-8") for path in folder.rglob("*.json"))
    assert "PASSWORD" in saved
    assert "MARKER" not in saved
    assert "MARKER" not in first.out + again.out


@pytest.mark.spec("WY-14", "WY-15")
@pytest.mark.parametrize("output", ["text", "json"])
def test_no_view_shows_a_secret_or_a_control_character(tmp_path: Path, output: str) -> None:
    planes = settled()
    hostile = "\x1b[31mred\x1b[0m\r\nfake \u202ereversed\x07"
    crashing = condition("Available", "False", "InstanceCrashing", hostile, 60)
    block_instance(planes, "web-main-dfw-0", crashing)
    with serve(planes, tmp_path) as served:
        for command in READS:
            name = () if command in {"cities", "quota"} else ("web",)
            out = call(served, command, *name, "-o", output).out
            assert "MARKER" not in out
            assert all(line.isprintable() for line in out.splitlines()), command
            if output == "json":
                assert json.loads(out)["apiVersion"].startswith("diagnostics.")


@pytest.mark.parametrize("width", [40, 100])
def test_every_view_fits_the_terminal(tmp_path: Path, width: int) -> None:
    with serve(short_of_quota(), tmp_path) as served:
        for command in READS:
            name = () if command in {"cities", "quota"} else ("web",)
            lines = call(served, command, *name, width=width).out.splitlines()
            assert [line for line in lines if len(line) > width] == [], command


# --- restart and scale ----------------------------------------------------------------------------


@pytest.mark.spec("WY-13")
def test_a_restart_is_tried_first_and_then_written(served: ServedPlanes) -> None:
    ran = call(served, "restart", "web", "--yes")
    assert ran.code == 0, ran.err
    patches = [one for one in served.requests if one.method == "PATCH"]
    assert [one.query for one in patches] == [{"dryRun": "All"}, {}]
    template = part(served.planes.project["workloads"][0], "spec", "template")
    assert labels.RESTARTED_AT in part(template, "metadata", "annotations")
    assert "web-0" not in ran.out
    assert {one.method for one in served.requests} == {"GET", "PATCH"}


@pytest.mark.spec("WY-13")
def test_a_scale_changes_one_placement_and_nothing_else(served: ServedPlanes) -> None:
    one = served.planes.project["workloads"][0]
    placements = part(one, "spec")["placements"]
    assert isinstance(placements, list)
    before = json.loads(json.dumps(placements))
    ran = call(served, "scale", "web", "--replicas", "5", "--yes")
    assert ran.code == 0, ran.err
    assert "2 → 5 replicas" in ran.out
    before[0]["scaleSettings"]["minReplicas"] = 5
    assert part(one, "spec")["placements"] == before


@pytest.mark.parametrize(("typed", "writes"), [("y\n", 1), ("n\n", 0), ("\n", 0)])
def test_without_yes_there_is_a_question(
    served: ServedPlanes, monkeypatch: pytest.MonkeyPatch, typed: str, writes: int
) -> None:
    asked = io.StringIO(typed)
    monkeypatch.setattr(asked, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", asked)
    ran = call(served, "restart", "web")
    assert ran.code == (0 if writes else 1)
    sent = [one for one in served.requests if one.method == "PATCH" and not one.query]
    assert len(sent) == writes


def test_what_the_dry_run_refuses_is_not_written(served: ServedPlanes) -> None:
    served.denial = "spec.placements[0]: too many"
    ran = call(served, "scale", "web", "--replicas", "9", "--yes")
    assert ran.code == 1
    assert "refused (422): spec.placements[0]: too many" in ran.err
    assert [one.query for one in served.requests if one.method == "PATCH"] == [{"dryRun": "All"}]


def test_a_workload_changed_meanwhile_is_not_overwritten(served: ServedPlanes) -> None:
    metadata = part(find(served.planes.project["workloads"], "web"), "metadata")
    metadata["resourceVersion"] = "7"
    asked: list[str] = []

    def change(*_: object) -> None:
        asked.append("")
        metadata["resourceVersion"] = "8"

    from compute_kubectl.commands import changes

    original = changes.WorkloadChange.apply
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            changes.WorkloadChange,
            "apply",
            lambda *words: (change(), original(*words))[1],  # type: ignore[func-returns-value]
        )
        ran = call(served, "restart", "web", "--yes")
    assert asked
    assert ran.code == 1
    assert "run the command again" in ran.err


# --- help and completion --------------------------------------------------------------------------


def test_every_command_has_help_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"], {}) == 0
    overview = capsys.readouterr().out
    for command in COMMANDS:
        assert f"  {command.name}" in overview
        assert run([command.name, "--help"], {}) == 0
        text = capsys.readouterr().out
        assert f"kubectl compute {command.name}" in text.split("examples:")[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_has_every_command_and_flag(served: ServedPlanes, shell: str) -> None:
    script = call(served, "completion", shell).out
    for word in ("why", "timeline", "restart", "cell-context", "replicas", "all-projects"):
        assert word in script
