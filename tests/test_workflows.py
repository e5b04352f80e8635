"""The workflows call sessions that exist, cache what is dear, and release what can be verified.

They run nowhere but on their own machines, so that everything about them that can be wrong without
a run is looked at here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field

from e2e.backends.kind.commands import NEEDED
from tools.workspace import OPERATORS, PACKAGES, PYTHONS, ROOT, read_sessions

WORKFLOWS = ROOT / ".github" / "workflows"
# What a runner needs before a session can start; nothing here judges a change.
PREPARING = re.compile(r"sudo apt-get (update|install --yes --no-install-recommends [a-z -]+)")
# `sudo env "PATH=$PATH"` keeps the runner's Python for sessions that need root, and `"HOME=$HOME"`
# the caches.
DOOR = re.compile(
    r'(?:sudo env "PATH=\$PATH" (?:"HOME=\$HOME" )?)?\./dev (?P<session>[a-z0-9]+)(?P<rest>.*)'
)
# A tag or a branch can be moved to other code, which then runs with the rights of the job.
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40}")
# The version that the commit was released as, for readers and for the update bot.
USES_LINE = re.compile(
    r"- uses: (?P<action>[\w./-]+)@(?P<commit>[0-9a-f]{40})  # (?P<version>v\d+\.\d+\.\d+)"
)
CI_JOBS = {"check", "test", "cluster", "e2e", "images"}


class Step(BaseModel):
    """One step, as far as it is looked at."""

    model_config = ConfigDict(frozen=True)

    uses: str = ""
    run: str = ""
    settings: dict[str, object] = Field({}, alias="with")

    @property
    def action(self) -> str:
        return self.uses.partition("@")[0]


class Job(BaseModel):
    """One job of a workflow."""

    model_config = ConfigDict(frozen=True)

    steps: tuple[Step, ...]
    needs: tuple[str, ...] = ()
    permissions: dict[str, str] = {}
    timeout: int = Field(0, alias="timeout-minutes")
    strategy: dict[str, object] = {}

    @property
    def commands(self) -> list[str]:
        return [step.run.strip() for step in self.steps if step.run]

    def sessions(self) -> list[str]:
        return [found["session"] for command in self.commands if (found := DOOR.match(command))]

    def actions(self) -> set[str]:
        return {step.action for step in self.steps if step.uses}


class Workflow(BaseModel):
    """A file in `.github/workflows`."""

    model_config = ConfigDict(frozen=True)

    jobs: dict[str, Job]
    permissions: dict[str, str] = {}
    # YAML 1.1 reads the key `on` as a truth value.
    triggers: dict[str, object] = Field({}, alias="on")


def read(name: str) -> Workflow:
    document = yaml.safe_load((WORKFLOWS / name).read_text("utf-8"))
    return Workflow.model_validate({**document, "on": document[True]})


def workflows() -> dict[str, Workflow]:
    return {path.name: read(path.name) for path in sorted(WORKFLOWS.glob("*.yaml"))}


def jobs() -> Iterator[tuple[str, Job]]:
    for name, workflow in workflows().items():
        for title, job in workflow.jobs.items():
            yield f"{name}: {title}", job


def test_every_session_that_a_workflow_calls_exists() -> None:
    called = {session for _, job in jobs() for session in job.sessions()}
    assert called >= CI_JOBS
    assert called <= set(read_sessions())


def flags_of(job: Job) -> Iterator[tuple[str, str]]:
    """Which flags a job gives to which session."""
    for command in job.commands:
        if found := DOOR.match(command):
            words = shlex.split(found["rest"])
            yield from ((found["session"], word) for word in words if word.startswith("--"))


def known_flags() -> set[str]:
    """Flags that the noxfile, the suites' conftests and the tools read: they are documented
    nowhere else.
    """
    sources = [
        ROOT / "noxfile.py",
        ROOT / "conftest.py",
        ROOT / "e2e" / "sweep" / "command.py",
        *(ROOT / "e2e").rglob("conftest.py"),
        *(ROOT / "tools").rglob("*.py"),
    ]
    texts = [path.read_text("utf-8") for path in sources]
    return {flag for text in texts for flag in re.findall(r'"(--[a-z][a-z-]*)"', text)}


def test_every_flag_that_a_workflow_gives_a_session_is_known() -> None:
    given = {flag for _, job in jobs() for _, flag in flags_of(job)}
    assert given >= {"--all", "--in-cluster", "--kind", "--base-image", "--from-tag"}
    assert sorted(given - known_flags()) == []


def test_ci_has_a_job_per_suite_and_each_calls_nox_and_nothing_else() -> None:
    ci = read("ci.yaml")
    assert set(ci.jobs) == CI_JOBS
    for name, job in ci.jobs.items():
        assert name in job.sessions()
        others = [
            command
            for command in job.commands
            if not DOOR.fullmatch(command) and not PREPARING.fullmatch(command)
        ]
        assert others == [], name


def test_nightly_runs_take_everything() -> None:
    commands = [command for job in read("e2e.yaml").jobs.values() for command in job.commands]
    assert any("./dev e2e --all" in command for command in commands)
    assert any("./dev e2e --in-cluster --all" in command for command in commands)
    assert any("./dev e2e --kind" in command for command in commands)
    for kind in ("--all", "--pairs 2000", "--histories 500", "--transitions 5000"):
        assert any(f"./dev sweep {kind}" in command for command in commands), kind


def test_what_kind_is_driven_with_is_pinned_where_it_is_installed() -> None:
    """`prepare` names the same commands where it is missing."""
    commands = read("e2e.yaml").jobs["kind"].commands
    installed = [command for command in commands if command.startswith("go install ")]
    assert installed == [NEEDED["kind"], NEEDED["karmadactl"]]


def test_whoever_looks_into_nodes_is_root_and_finds_the_caches() -> None:
    for name in ("in-cluster", "kind"):
        (called,) = [one for one in read("e2e.yaml").jobs[name].commands if "./dev e2e" in one]
        assert called.startswith('sudo env "PATH=$PATH" "HOME=$HOME" ./dev e2e --'), name


def cached(job: Job) -> str:
    paths = [step.settings.get("path", "") for step in job.steps if step.action == "actions/cache"]
    return "\n".join(str(path) for path in paths)


def test_uv_go_and_the_planes_are_cached_where_they_are_used() -> None:
    everywhere = {**read("ci.yaml").jobs, **read("e2e.yaml").jobs}
    for name, job in everywhere.items():
        assert "~/.cache/uv" in cached(job), name
        if {"cluster", "e2e"} & set(job.sessions()):
            for path in ("~/.cache/go-build", "~/go/pkg/mod", "~/.cache/datum-compute/planes"):
                assert path in cached(job), name


def test_go_is_the_newest_that_a_module_of_the_planes_asks_for() -> None:
    def version(path: Path) -> tuple[int, ...]:
        (found,) = re.findall(r"^go ([0-9.]+)$", path.read_text("utf-8"), re.MULTILINE)
        return tuple(int(part) for part in found.split("."))

    newest = max((ROOT / "e2e" / "harness" / "programs").glob("*/go.mod"), key=version)
    named = {
        str(step.settings["go-version-file"])
        for _, job in jobs()
        for step in job.steps
        if step.action == "actions/setup-go"
    }
    assert {version(ROOT / name) for name in named} == {version(newest)}


def test_no_job_hangs() -> None:
    for name, job in jobs():
        assert job.timeout > 0, name


@pytest.mark.spec("AT-15")
def test_every_action_is_pinned_by_commit() -> None:
    for name, job in jobs():
        for step in job.steps:
            assert not step.uses or PINNED.fullmatch(step.uses), f"{name}: {step.uses}"


@pytest.mark.spec("AT-15")
def test_one_action_is_one_commit_with_its_version_beside_it() -> None:
    pins: dict[str, set[tuple[str, str]]] = {}
    for path in sorted(WORKFLOWS.glob("*.yaml")):
        for line in path.read_text("utf-8").splitlines():
            if "uses:" not in line:
                continue
            found = USES_LINE.fullmatch(line.strip())
            assert found, f"{path.name}: {line.strip()}"
            pins.setdefault(found["action"], set()).add((found["commit"], found["version"]))
    assert "pypa/gh-action-pypi-publish" in pins
    assert {action: len(found) for action, found in pins.items()} == dict.fromkeys(pins, 1)


@pytest.mark.spec("AT-15")
def test_no_checkout_leaves_a_token_for_later_steps() -> None:
    checkouts = [
        (name, step.settings.get("persist-credentials"))
        for name, job in jobs()
        for step in job.steps
        if step.action == "actions/checkout"
    ]
    assert len(checkouts) >= 10
    assert [name for name, persisted in checkouts if persisted is not False] == []


def test_the_nightly_run_has_every_python_that_is_promised() -> None:
    job = read("e2e.yaml").jobs["pythons"]
    (step,) = [step for step in job.steps if step.action == "actions/setup-python"]
    assert set(str(step.settings["python-version"]).split()) == set(PYTHONS)
    assert job.commands == ["./dev pythons", "./dev wheels"]


def test_the_nightly_run_proves_the_lower_bounds_of_dependencies() -> None:
    job = read("e2e.yaml").jobs["lowest"]
    assert job.commands == ["./dev lowest"]
    assert '"--resolution", "lowest-direct"' in read_sessions()["lowest"]


def test_the_pythons_begin_with_the_lowest_that_packages_ask_for() -> None:
    for folder in PACKAGES:
        text = (ROOT / "packages" / folder / "pyproject.toml").read_text("utf-8")
        assert f'requires-python = ">={PYTHONS[0]}"' in text


def test_workflows_may_only_read_unless_a_job_says_why() -> None:
    for name, workflow in workflows().items():
        assert workflow.permissions == {"contents": "read"}, name
    writers = {name for name, job in jobs() if "write" in job.permissions.values()}
    assert writers == {f"release.yaml: {name}" for name in ("wheel", "image", "index", "install")}


def test_no_command_takes_words_of_strangers() -> None:
    """An expression is put into a script before a shell reads it; a variable is not."""
    for name, job in jobs():
        assert [command for command in job.commands if "${{" in command] == [], name


# --- the release ----------------------------------------------------------------------------------


@pytest.mark.fault("S7")
def test_a_release_begins_with_a_tag_and_waits_for_tests_and_audit() -> None:
    release = read("release.yaml")
    assert release.triggers == {"push": {"tags": ["*/v*"]}}
    for name in ("wheel", "image", "install"):
        assert set(release.jobs[name].needs) == {"test", "audit"}
    assert release.jobs["index"].needs == ("image",)


@pytest.mark.fault("S7")
def test_every_tag_is_a_library_or_an_operator_and_published_once() -> None:
    document = yaml.safe_load((WORKFLOWS / "release.yaml").read_text("utf-8"))
    for name, is_operator in (("wheel", False), ("image", True)):
        condition = str(document["jobs"][name]["if"])
        for folder in PACKAGES:
            is_named = f"startsWith(github.ref_name, '{folder}/')" in condition
            assert is_named == (folder in OPERATORS), f"{name}: {folder}"
        assert ("!startsWith" in condition) is not is_operator
        assert ("!startsWith(github.ref_name, 'deploy/')" in condition) is not is_operator
    assert document["jobs"]["install"]["if"] == "${{ startsWith(github.ref_name, 'deploy/') }}"


@pytest.mark.fault("S7")
def test_the_files_of_an_installation_go_out_with_provenance() -> None:
    job = read("release.yaml").jobs["install"]
    assert './dev release --from-tag "$TAG"' in job.commands
    assert "actions/attest-build-provenance" in job.actions()


@pytest.mark.fault("S7")
def test_a_wheel_is_built_twice_and_goes_out_with_sbom_and_provenance() -> None:
    job = read("release.yaml").jobs["wheel"]
    assert './dev release --from-tag "$TAG"' in job.commands
    assert {"actions/attest-build-provenance", "actions/attest-sbom"} <= job.actions()
    assert job.permissions["id-token"] == job.permissions["attestations"] == "write"
    order = [step.action for step in job.steps]
    assert order.index("actions/attest-build-provenance") < order.index(
        "pypa/gh-action-pypi-publish"
    )


@pytest.mark.fault("S7")
def test_an_image_is_built_for_both_architectures_and_its_index_is_attested() -> None:
    release = read("release.yaml")
    image, index = release.jobs["image"], release.jobs["index"]
    architectures = re.findall(r"'architecture': '(\w+)'", str(image.strategy))
    assert architectures == ["amd64", "arm64"]
    assert "images" in image.sessions()
    (provenance,) = [one for one in index.steps if one.action == "actions/attest-build-provenance"]
    assert provenance.settings["subject-digest"] == "${{ env.DIGEST }}"
    assert provenance.settings["push-to-registry"] is True


@pytest.mark.spec("AT-24")
def test_the_index_is_made_of_the_digests_that_the_pushes_reported() -> None:
    release = read("release.yaml")
    image, index = release.jobs["image"], release.jobs["index"]
    (pushed,) = [command for command in image.commands if "$BUILDAH push" in command]
    assert "--digestfile released/digest" in pushed
    (joined,) = [command for command in index.commands if "manifest create" in command]
    images = [word for word in shlex.split(joined) if word.startswith("docker://")]
    assert images == ["docker://$IMAGE@$AMD64", "docker://$IMAGE@$ARM64"]
    for architecture in ("amd64", "arm64"):
        read_digest = f"grep -xE 'sha256:[0-9a-f]{{64}}' {architecture}/digest"
        assert f'echo "{architecture.upper()}=$({read_digest})" >> "$GITHUB_ENV"' in index.commands


@pytest.mark.spec("AT-24")
def test_each_architecture_has_an_sbom_of_its_own_attested_to_its_own_digest() -> None:
    index = read("release.yaml").jobs["index"]
    attested = {
        (str(step.settings["subject-digest"]), str(step.settings["sbom-path"]))
        for step in index.steps
        if step.action == "actions/attest-sbom"
    }
    assert attested == {
        ("${{ env.AMD64 }}", "amd64/sbom.cdx.json"),
        ("${{ env.ARM64 }}", "arm64/sbom.cdx.json"),
    }
    (released,) = [command for command in index.commands if "gh release create" in command]
    assert released.endswith("sbom-amd64.cdx.json sbom-arm64.cdx.json")


@pytest.mark.fault("S8")
def test_a_release_asks_what_is_known_against_the_locks() -> None:
    assert read("release.yaml").jobs["audit"].commands == ["./dev release --audit"]


def test_commands_of_shells_can_be_read() -> None:
    for name, job in jobs():
        for command in job.commands:
            assert shlex.split(command), name
