import inspect
import json
import subprocess
import sys

import pytest

import compute_quota_client

LOADED = """
import json, sys
import compute_quota_client
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.spec("Q-01")
def test_exports_equal_a_sorted_all() -> None:
    public = {name for name in vars(compute_quota_client) if not name.startswith("_")}
    # `testing` is the one public module, and `annotations` the future import.
    assert sorted(public - {"testing", "annotations"}) == compute_quota_client.__all__
    assert sorted(compute_quota_client.__all__) == compute_quota_client.__all__


@pytest.mark.spec("Q-01")
def test_importing_pulls_in_httpx_pydantic_and_one_sibling_but_no_parser_and_no_kopf() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", LOADED], check=True, capture_output=True, text=True
    ).stdout
    loaded = set(json.loads(printed))
    assert {"httpx", "pydantic"} <= loaded
    unwanted = {"kopf", "yaml", "opentelemetry", "aiohttp", "kubernetes"}
    assert not loaded & unwanted
    ours = {name for name in loaded if name.startswith("compute_")}
    assert ours == {"compute_kubeconfig", "compute_quota_client"}


@pytest.mark.spec("Q-01")
def test_all_modules_but_testing_are_private() -> None:
    modules = [
        name
        for name, value in vars(compute_quota_client).items()
        if inspect.ismodule(value) and not name.startswith("_")
    ]
    assert set(modules) <= {"testing"}


@pytest.mark.parametrize("name", compute_quota_client.__all__)
def test_every_export_has_a_docstring(name: str) -> None:
    value: object = getattr(compute_quota_client, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)
