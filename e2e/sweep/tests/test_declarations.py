"""Generated declarations: what is drawn, and that a declaration which got lost is noticed."""

from __future__ import annotations

from compute_api_types.validation import Facts, Review, networks_to_review, review_workload
from compute_api_types.wire import JsonObject, JsonValue
from e2e.sweep.declarations import CITIES, MEANT, OMITTED, Declarer, list_paths, workload_schema
from e2e.sweep.transitions import Chain, failing, find_missing, run_chain, slots_of
from e2e.world.documents import a_document
from e2e.world.kinds import WORKLOAD
from e2e.world.objects import objects_at, text_at


def test_the_tables_name_paths_of_the_schema_alone() -> None:
    paths = {*list_paths(workload_schema())}
    assert {*MEANT, *OMITTED} <= paths
    assert not MEANT.keys() & OMITTED.keys()


def test_a_seed_draws_the_same_chain_and_each_step_changes_something() -> None:
    for seed in range(20):
        chain = Chain.of(seed)
        assert chain == Chain.of(seed)
        first, second, third = chain.specs
        assert first != second != third


def test_every_declaration_is_admitted() -> None:
    for seed in range(100):
        for spec in Chain.of(seed).specs:
            workload = a_document(WORKLOAD, "web", spec=spec)
            reviews = dict.fromkeys(networks_to_review(workload, None), Review.ALLOWED)
            facts = Facts("acme", cities=frozenset(CITIES), reviews=reviews)
            assert not review_workload(workload, None, facts), seed


def test_every_leaf_that_is_not_left_out_is_drawn_at_some_time() -> None:
    drawn: set[str] = set()
    for seed in range(200):
        drawn |= _paths_of(Declarer(seed).first(), "")
    wanted = {
        path
        for path in list_paths(workload_schema())
        if not any(path == one or path.startswith(f"{one}.") for one in (*OMITTED, *MEANT))
    }
    assert wanted - drawn == set()


def _paths_of(value: JsonValue, path: str) -> set[str]:
    paths = {path} if path else set[str]()
    if isinstance(value, dict):
        for name, inner in value.items():
            paths |= _paths_of(inner, f"{path}.{name}".removeprefix("."))
    elif isinstance(value, list):
        for inner in value:
            paths |= _paths_of(inner, f"{path}.[]")
    return paths


def test_what_is_declared_and_not_shown_is_named_by_its_path() -> None:
    declared: JsonObject = {"containers": [{"name": "web", "env": [{"name": "a", "value": "1"}]}]}
    shown: JsonObject = {
        "containers": [{"name": "web", "env": [{"name": "a", "value": "1"}], "more": 1}]
    }
    assert find_missing(declared, shown) == ""
    lost: JsonObject = {"containers": [{"name": "web", "env": []}]}
    assert find_missing(declared, lost) == "spec.containers[0].env"


def test_the_error_of_a_chain_is_an_image_that_never_runs() -> None:
    spec = Declarer(1).first()
    containers = objects_at(failing(spec), "template", "spec", "runtime", "sandbox", "containers")
    assert {text_at(one, "image").rpartition(":")[2] for one in containers} == {"hang"}
    assert slots_of(failing(spec)) == slots_of(spec)


def test_a_chain_is_consistent_recovers_and_ends_as_the_direct_way() -> None:
    result = run_chain(1)
    assert (result.violations, result.refused) == ((), "")
    assert result.transitions == 5
