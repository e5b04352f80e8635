from __future__ import annotations

import socket

import pytest

from e2e.harness.processes.ports import LOOPBACK, Ports


def test_reserved_port_is_refused_to_other_programs() -> None:
    with Ports() as ports, socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((LOOPBACK, ports.reserve()))


def test_server_can_listen_on_a_reserved_port_and_again_after_a_restart() -> None:
    with Ports() as ports:
        port = ports.reserve()
        for _ in range(2):
            with (
                socket.create_server((LOOPBACK, port)) as server,
                socket.create_connection((LOOPBACK, port)) as client,
            ):
                server.accept()[0].close()
                assert client.recv(1) == b""


def test_connection_to_a_reserved_port_without_a_server_is_refused() -> None:
    with Ports() as ports, pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, ports.reserve()))


def test_ports_are_given_back_at_the_end() -> None:
    with Ports() as ports:
        port = ports.reserve()
    with socket.socket() as other:
        other.bind((LOOPBACK, port))


def test_reserved_ports_differ() -> None:
    with Ports() as ports:
        assert len({ports.reserve() for _ in range(50)}) == 50
