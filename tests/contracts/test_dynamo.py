"""Dynamo's source: what an early hint around a prefill handler relies on."""

from tests.contracts.wheels import Wheel

HANDLERS = "dynamo.vllm.handlers"


def test_a_prefill_handler_generates_from_request_and_context(dynamo: Wheel) -> None:
    assert dynamo.parameters(HANDLERS, "PrefillWorkerHandler.generate") == ["self", "request", "context"]
    assert '"token_ids"' in dynamo.text(HANDLERS)


def test_dynamo_decides_by_the_names_that_our_connectors_have(dynamo: Wheel) -> None:
    text = dynamo.text("dynamo.vllm.kv_connector_protocols")
    assert '"NixlConnector": NixlConnectorProtocol' in text
    assert '"MooncakeConnector": MooncakeConnectorProtocol' in text


def test_prefill_requests_are_marked_for_a_remote_decode(dynamo: Wheel) -> None:
    for name in ("NixlConnectorProtocol", "MooncakeConnectorProtocol"):
        source = dynamo.source(
            "dynamo.vllm.kv_connector_protocols", f"{name}.prefill_request_kv_transfer_params"
        )
        assert "'do_remote_decode': True" in source
