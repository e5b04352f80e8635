from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from provider_builders.cluster import Cluster, a_cluster

from compute_sim_planes.certificates import ServerFiles, make_server_files


@pytest.fixture(scope="session")
def server_files(tmp_path_factory: pytest.TempPathFactory) -> ServerFiles:
    """A certificate for the loopback interface."""
    return make_server_files(tmp_path_factory.mktemp("tls"))


@pytest_asyncio.fixture
async def cluster(server_files: ServerFiles, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with a_cluster(server_files, tmp_path) as running:
        yield running
