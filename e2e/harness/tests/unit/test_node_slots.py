from __future__ import annotations

import ipaddress
import itertools

import pytest

from e2e.harness.planes.node_slot import COUNT, NodeSlot

SLOTS = [NodeSlot(number) for number in range(COUNT)]


def test_nodes_share_no_address() -> None:
    ranges = [
        ipaddress.ip_network(text)
        for slot in SLOTS
        for text in (
            slot.pods,
            slot.services,
            f"{slot.host_address}/30",
            f"{slot.stack_address}/32",
        )
        for text in (str(ipaddress.ip_network(text, strict=False)),)
    ]
    assert not [pair for pair in itertools.combinations(ranges, 2) if pair[0].overlaps(pair[1])]


@pytest.mark.parametrize("slot", SLOTS, ids=str)
def test_a_node_and_its_host_are_at_the_ends_of_one_cable(slot: NodeSlot) -> None:
    cable = ipaddress.ip_network(f"{slot.host_address}/30", strict=False)
    hosts = [str(address) for address in cable.hosts()]
    assert hosts == [slot.host_address, slot.node_address]


@pytest.mark.parametrize("slot", SLOTS, ids=str)
def test_the_api_server_is_the_first_of_the_services(slot: NodeSlot) -> None:
    assert str(next(ipaddress.ip_network(slot.services).hosts())) == slot.api_address


def test_interfaces_and_cgroups_are_distinct() -> None:
    assert len({slot.interface for slot in SLOTS}) == COUNT
    assert len({slot.cgroup for slot in SLOTS}) == COUNT


@pytest.mark.parametrize("number", [-1, COUNT])
def test_a_slot_that_is_not_there_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="there are 10"):
        NodeSlot(number)
