import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def test_the_readme_shows_building_reading_changing_and_writing_back() -> None:
    text = "".join(BLOCKS)
    assert all(
        word in text for word in ("Workload(", "Workload.read(", "with_fields(", "write_back(")
    )


@pytest.mark.parametrize("block", BLOCKS)
def test_each_example_of_the_readme_does_what_it_says_by_itself(block: str) -> None:
    exec(compile(block, str(README), "exec"), {})  # noqa: S102  # our own page, run as written
