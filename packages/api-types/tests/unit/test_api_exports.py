import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import compute_api_types


def test_all_is_sorted_and_every_name_in_it_can_be_had() -> None:
    assert compute_api_types.__all__ == sorted(compute_api_types.__all__)
    for name in compute_api_types.__all__:
        assert getattr(compute_api_types, name) is not None


def declared_for_type_checkers(
    module: Path = Path(str(compute_api_types.__file__)),
) -> dict[str, str]:
    """Every name that type checkers see, and the module they see it in."""
    tree = ast.parse(module.read_text("utf-8"))
    guards = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for guard in guards for node in guard.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_type_checkers_and_running_programs_see_the_same_names() -> None:
    assert set(declared_for_type_checkers()) == set(compute_api_types.__all__)


@pytest.mark.parametrize("name", compute_api_types.__all__)
def test_a_name_of_the_root_is_the_one_type_checkers_see(name: str) -> None:
    module = import_module(declared_for_type_checkers()[name])
    assert getattr(compute_api_types, name) is getattr(module, name)


def test_dir_lists_the_surface_and_a_wrong_name_is_an_error() -> None:
    assert set(compute_api_types.__all__) <= set(dir(compute_api_types))
    wrong = "Gateway"
    with pytest.raises(AttributeError, match="no attribute 'Gateway'"):
        getattr(compute_api_types, wrong)


def test_words_can_be_imported_without_pydantic() -> None:
    program = (
        "import sys, compute_api_types.labels, compute_api_types.names, compute_api_types.reasons,"
        " compute_api_types.quantity, compute_api_types.template_hash;"
        "sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_package_needs_nothing_but_pydantic() -> None:
    """Whatever is loaded beside the standard library is pydantic or what pydantic itself needs."""
    program = (
        "import sys, compute_api_types as c;"
        "[getattr(c, name) for name in c.__all__];"
        "import compute_api_types.crd, compute_api_types.testing, compute_api_types.catalogue;"
        "roots = {name.partition('.')[0] for name in sys.modules};"
        "print(*sorted(r for r in roots if r not in sys.stdlib_module_names"
        " and not r.startswith('_')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    allowed = {
        "annotated_types",
        "compute_api_types",
        "pydantic",
        "pydantic_core",
        "typing_extensions",
        "typing_inspection",
    }
    assert set(done.stdout.split()) - allowed == set()


def test_v1alpha_misses_no_model_and_type_checkers_see_what_is_there() -> None:
    """A model that a module gains is exported, or this fails."""
    from compute_api_types import v1alpha

    folder = Path(str(v1alpha.__file__)).parent
    defined = {
        node.name: f"compute_api_types.v1alpha.{path.stem}"
        for path in folder.glob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    assert set(defined) <= set(v1alpha.__all__)
    declared = declared_for_type_checkers(folder / "__init__.py")
    assert set(declared) == set(v1alpha.__all__)
    for name, home in declared.items():
        assert getattr(v1alpha, name) is getattr(import_module(home), name)
        assert defined.get(name, home) == home
