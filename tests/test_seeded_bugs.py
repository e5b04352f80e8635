"""Every seeded bug can be planted in the code as it is, and names tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.seeded import Seed, SeedError, read_seeds
from tools.workspace import ROOT

SEEDS = read_seeds()


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.id)
def test_a_seed_fits_the_code_and_names_its_tests(seed: Seed) -> None:
    compile(seed.planted(), seed.file, "exec")
    for test in seed.tests:
        path, _, name = test.partition("::")
        text = (ROOT / path).read_text("utf-8")
        assert not name or f"def {name.partition('[')[0]}(" in text, test


def test_a_seed_that_does_not_fit_is_named(tmp_path: Path) -> None:
    seed = Seed("X-1", "bug", "tools/seeded.py", "no such text", "", ("tests",))
    with pytest.raises(SeedError, match=r"X-1\.old: occurs 0 times"):
        seed.planted()
    (tmp_path / "x.toml").write_text('[[seed]]\nid = "X-2"\n', "utf-8")
    with pytest.raises(SeedError, match=r"X-2\.bug"):
        read_seeds(tmp_path)
