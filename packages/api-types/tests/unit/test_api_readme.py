import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def test_the_readme_has_an_example() -> None:
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS)
def test_the_example_of_the_readme_does_what_it_says(block: str) -> None:
    exec(compile(block, str(README), "exec"), {})  # noqa: S102  # our own page, run as written
