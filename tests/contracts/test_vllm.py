"""vLLM's source: what our connectors override, and the order of calls that they rely on."""

import ast
import inspect
import re

from tests.contracts.wheels import Wheel
from tests.integrations.engines.standins import vllm_mooncake, vllm_nixl

V1 = "vllm.distributed.kv_transfer.kv_connector.v1"
MOONCAKE = f"{V1}.mooncake.mooncake_connector"
BASE, PULL, PUSH = (f"{V1}.nixl.{name}" for name in ("base_worker", "pull_worker", "push_worker"))
CONNECTOR = f"{V1}.nixl.connector"
CONSTRUCTOR = ["self", "vllm_config", "role", "kv_cache_config"]


def parameters(function: object) -> list[str]:
    assert callable(function)
    return list(inspect.signature(function).parameters)


def test_external_connectors_are_loaded_by_module_and_class_name(vllm: Wheel) -> None:
    source = vllm.source(
        "vllm.distributed.kv_transfer.kv_connector.factory", "KVConnectorFactory.get_connector_class"
    )
    assert "importlib.import_module(connector_module_path)" in source
    assert "getattr(connector_module, connector_name)" in source
    assert "supports_kw(connector_cls, 'kv_cache_config')" in source
    assert source.index("if connector_module_path:") < source.index("connector_name in cls._registry")


def test_vllm_decides_by_the_names_that_our_classes_have(vllm: Wheel) -> None:
    text = vllm.text("vllm.config.vllm")
    assert '"NixlConnector"' in text
    assert '"MooncakeConnector"' in text


def test_constructors_of_connectors(vllm: Wheel) -> None:
    assert vllm.parameters(MOONCAKE, "MooncakeConnector.__init__") == CONSTRUCTOR
    for name in ("NixlPullConnector", "NixlPushConnector"):
        assert vllm.parameters(CONNECTOR, f"{name}.__init__") == CONSTRUCTOR
    assert re.search(r"^NixlConnector = NixlPullConnector$", vllm.text(CONNECTOR), re.MULTILINE)


def test_the_mooncake_worker_makes_and_uses_its_engine_as_we_think(vllm: Wheel) -> None:
    made = vllm.source(MOONCAKE, "MooncakeConnectorWorker.__init__")
    assert made.index("self.engine = TransferEngine()") < made.index("self.engine.initialize(")
    assert vllm.arguments_of(MOONCAKE, "MooncakeConnectorWorker.__init__", "self.engine.initialize") == [
        "self.hostname",
        "'P2PHANDSHAKE'",
        "protocol",
        "device_name",
    ]
    used = set(re.findall(r"\bengine\.(\w+)\(", vllm.text(MOONCAKE)))
    assert used == {
        "initialize",
        "get_rpc_port",
        "batch_register_memory",
        "batch_unregister_memory",
        "batch_transfer_sync_write",
    }


def test_the_engine_is_made_by_a_name_of_the_module(vllm: Wheel) -> None:
    assert "from mooncake.engine import TransferEngine" in vllm.text(MOONCAKE)
    assert "global TransferEngine" not in vllm.text(MOONCAKE)


def test_send_blocks_is_one_blocking_call_with_session_and_lengths(vllm: Wheel) -> None:
    name = "MooncakeConnectorWorker._send_blocks"
    assert vllm.parameters(MOONCAKE, name) == parameters(vllm_mooncake.MooncakeConnectorWorker._send_blocks)
    calls = [call for call in vllm.calls(MOONCAKE, name) if call.startswith("self.engine")]
    assert calls == ["self.engine.batch_transfer_sync_write"]
    arguments = vllm.arguments_of(MOONCAKE, name, calls[0])
    assert arguments == ["remote_session", "src_ptrs", "dst_ptrs", "lengths"]
    sender = vllm.source(MOONCAKE, "MooncakeConnectorWorker.send_kv_to_decode")
    assert "remote_session = f'{meta.remote_hostname}:{meta.remote_port}'" in sender
    assert "run_in_executor(self._sender_executor, self._send_blocks, remote_session" in sender


def test_the_mooncake_stand_in_has_vllm_s_signatures(vllm: Wheel) -> None:
    worker = vllm_mooncake.MooncakeConnectorWorker
    assert vllm.parameters(MOONCAKE, "MooncakeConnectorWorker.__init__") == parameters(worker.__init__)
    assert parameters(vllm_mooncake.MooncakeConnector.__init__) == CONSTRUCTOR


def test_nixl_workers_are_made_with_a_name_of_the_base_module(vllm: Wheel) -> None:
    source = vllm.source(BASE, "NixlBaseConnectorWorker.__init__")
    assert "nixl_wrapper_cls = NixlWrapper" in source
    assert "self.nixl_wrapper = nixl_wrapper_cls(str(uuid.uuid4()), config)" in source
    assert "nixl_agent_config(num_threads=num_threads" in source
    imported = [
        alias.name
        for node in ast.walk(vllm.tree(BASE))
        if isinstance(node, ast.ImportFrom) and node.module == "vllm.distributed.nixl_utils"
        for alias in node.names
    ]
    assert "NixlWrapper" in imported
    assert '"NixlWrapper": "nixl_agent"' in vllm.text("vllm.distributed.nixl_utils")


def test_nixl_workers_signatures(vllm: Wheel) -> None:
    base = vllm_nixl.NixlBaseConnectorWorker
    for name in ("__init__", "_nixl_handshake"):
        assert vllm.parameters(BASE, f"NixlBaseConnectorWorker.{name}") == parameters(getattr(base, name))
    for module, name in ((PULL, "NixlPullConnectorWorker"), (PUSH, "NixlPushConnectorWorker")):
        assert vllm.bases(module, name) == ["NixlBaseConnectorWorker"]
        assert vllm.parameters(module, f"{name}.__init__") == parameters(base.__init__)


def test_the_handshake_is_looked_up_on_the_worker_and_meets_one_host(vllm: Wheel) -> None:
    arguments = vllm.arguments_of(
        BASE, "NixlBaseConnectorWorker._ensure_handshake", "self._handshake_initiation_executor.submit"
    )
    assert arguments[:3] == ["self._nixl_handshake", "host", "port"]
    calls = vllm.calls(BASE, "NixlBaseConnectorWorker._nixl_handshake")
    assert "self.add_remote_agent" in calls
    assert "self.nixl_wrapper.add_remote_agent" in vllm.calls(
        BASE, "NixlBaseConnectorWorker.add_remote_agent"
    )


def test_pushes_are_made_posted_and_polled_on_the_wrapper(vllm: Wheel) -> None:
    for module, name, operation in (
        (PUSH, "NixlPushConnectorWorker._xfer_blocks", "'WRITE'"),
        (PULL, "NixlPullConnectorWorker._read_blocks", "'READ'"),
    ):
        calls = [call for call in vllm.calls(module, name) if call.startswith("self.nixl_wrapper")]
        assert calls[-2:] == ["self.nixl_wrapper.make_prepped_xfer", "self.nixl_wrapper.transfer"]
        arguments = vllm.arguments_of(module, name, "self.nixl_wrapper.make_prepped_xfer")
        assert arguments == [
            operation,
            "local_xfer_side_handle",
            "local_block_descs_ids",
            "remote_xfer_side_handle",
            "remote_block_descs_ids",
            "notif_msg=",
        ]
    done = vllm.calls(BASE, "NixlBaseConnectorWorker._pop_done_transfers")
    order = [call for call in done if call.startswith("self.nixl_wrapper")]
    assert order == [
        "self.nixl_wrapper.check_xfer_state",
        "self.nixl_wrapper.get_xfer_telemetry",
        "self.nixl_wrapper.release_xfer_handle",
    ]


def test_plug_ins_run_in_every_process(vllm: Wheel) -> None:
    assert 'DEFAULT_PLUGINS_GROUP = "vllm.general_plugins"' in vllm.text("vllm.plugins")


def test_roles_stand_in_the_transfer_s_configuration(vllm: Wheel) -> None:
    text = vllm.text("vllm.config.kv_transfer")
    assert "class KVTransferConfig" in text
    assert re.search(r"^    kv_role: ", text, re.MULTILINE)
    assert '"kv_consumer"' in text


def test_middleware_that_is_a_class_is_added(vllm: Wheel) -> None:
    text = vllm.text("vllm.entrypoints.serve.middleware.register")
    assert "inspect.isclass(imported)" in text
    assert "app.add_middleware(imported)" in text


def test_middleware_is_an_option_of_the_server(vllm: Wheel) -> None:
    assert re.search(
        r"^    middleware: list\[str\]", vllm.text("vllm.entrypoints.common.cli_args"), re.MULTILINE
    )
