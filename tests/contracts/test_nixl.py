"""NIXL's Python source: the methods that a steered agent overrides."""

import inspect

import pytest
from tests.contracts.wheels import Wheel
from tests.integrations.engines.standins import nixl_api

API = "nixl_cu12._api"
METHODS = [
    "__init__",
    "create_backend",
    "register_memory",
    "deregister_memory",
    "get_reg_descs",
    "get_xfer_descs",
    "add_remote_agent",
    "prep_xfer_dlist",
    "make_prepped_xfer",
    "initialize_xfer",
    "transfer",
    "check_xfer_state",
    "get_xfer_telemetry",
    "release_xfer_handle",
    "release_dlist_handle",
    "send_notif",
]


@pytest.mark.parametrize("method", METHODS)
def test_the_stand_in_has_nixl_s_signatures(nixl: Wheel, method: str) -> None:
    ours = list(inspect.signature(getattr(nixl_api.nixl_agent, method)).parameters)
    assert nixl.parameters(API, f"nixl_agent.{method}") == ours


@pytest.mark.parametrize("handle", ["nixl_xfer_handle", "nixl_prepped_dlist_handle"])
def test_handles_have_a_number(nixl: Wheel, handle: str) -> None:
    assert "self._handle = int(value)" in nixl.source(API, handle)
    assert nixl.parameters(API, f"{handle}.__init__") == ["self", "agent", "value"]


def test_handles_hold_the_agent_in_c(nixl: Wheel) -> None:
    assert "nixl_xfer_handle(self.agent, handle)" in nixl.source(API, "nixl_agent.make_prepped_xfer")


def test_backends_are_created_by_the_method_that_we_override(nixl: Wheel) -> None:
    source = nixl.source(API, "nixl_agent.__init__")
    assert "init['num_threads'] = str(nixl_conf.num_threads)" in source
    assert source.index("self.name = agent_name") < source.index("self.create_backend(bknd, init)")


def test_states_are_the_three_words(nixl: Wheel) -> None:
    for method in ("transfer", "check_xfer_state"):
        source = nixl.source(API, f"nixl_agent.{method}")
        assert [word for word in ("'DONE'", "'PROC'", "'ERR'") if f"return {word}" in source] == [
            "'DONE'",
            "'PROC'",
            "'ERR'",
        ]


def test_strided_descriptors_are_as_we_read_them(nixl: Wheel) -> None:
    text = " ".join(nixl.text(API).split())
    assert "in the form (address, len, device ID, stride, count)" in text


def test_the_binding_takes_no_choice_of_a_worker_so_threads_are_needed(nixl: Wheel) -> None:
    text = nixl.text(API)
    assert "customParam" not in text
    assert "custom_param" not in text
