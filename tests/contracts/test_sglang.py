"""SGLang's source: the hooks of its plug-ins and the two managers."""

import ast
import inspect
import sys
import types

from tests.contracts.wheels import Wheel
from tests.integrations.engines.standins import sglang_parts

from ark.integrations.sglang import ENGINE, MANAGER

HOOKS = "sglang.srt.plugins.hook_registry"
ENGINE_MODULE, MANAGER_MODULE = ENGINE.rpartition(".")[0], MANAGER.rpartition(".")[0]
MOONCAKE = "sglang.srt.disaggregation.mooncake.conn"


def parameters(function: object) -> list[str]:
    assert callable(function)
    return list(inspect.signature(function).parameters)


def test_plug_ins_are_found_by_their_entry_point(sglang: Wheel) -> None:
    assert 'GENERAL_PLUGINS_GROUP = "sglang.srt.plugins"' in sglang.text("sglang.srt.plugins")
    calls = sglang.calls("sglang.srt.plugins", "load_plugins")
    assert calls.index("func") < calls.index("HookRegistry.apply_hooks")


def test_the_stand_in_registers_like_sglang(sglang: Wheel) -> None:
    ours = parameters(sglang_parts.HookRegistry.register)
    assert sglang.parameters(HOOKS, "HookRegistry.register")[1:] == ours
    kinds = {
        ast.unparse(node.targets[0]): ast.literal_eval(node.value)
        for node in ast.walk(sglang.find(HOOKS, "HookType"))
        if isinstance(node, ast.Assign)
    }
    assert kinds == {kind.name: kind.value for kind in sglang_parts.HookType}


def test_sglang_s_own_registry_wraps_constructors_and_methods(sglang: Wheel) -> None:
    """Its file needs nothing but the standard library: it is run here, on a class of ours."""
    hooks = types.ModuleType("ark_contract_hooks")
    sys.modules[hooks.__name__] = hooks
    exec(compile(sglang.text(HOOKS), "hook_registry.py", "exec"), vars(hooks))

    class Engine:
        def __init__(self, hostname: str) -> None:
            seen.append(hostname)

    seen: list[str] = []
    hooks.Engine = Engine  # type: ignore[attr-defined]

    def around(make: object, *arguments: object) -> None:
        assert callable(make)
        seen.append("before")
        make(*arguments)
        seen.append("after")

    try:
        vars(hooks)["HookRegistry"].register(
            "ark_contract_hooks.Engine.__init__", around, vars(hooks)["HookType"].AROUND
        )
        vars(hooks)["HookRegistry"].apply_hooks()
        Engine("10.0.0.1")
    finally:
        del sys.modules[hooks.__name__]
    assert seen == ["before", "10.0.0.1", "after"]


def test_the_engine_is_made_in_the_constructor_by_mooncake_s_name(sglang: Wheel) -> None:
    source = sglang.source(ENGINE_MODULE, "MooncakeTransferEngine.__init__")
    assert source.index("from mooncake.engine import TransferEngine") < source.index(
        "self.engine = TransferEngine()"
    )
    assert source.index("self.engine = TransferEngine()") < source.index("self.initialize(")
    assert sglang.parameters(ENGINE_MODULE, "MooncakeTransferEngine.__init__") == parameters(
        sglang_parts.MooncakeTransferEngine.__init__
    )
    source = sglang.source(ENGINE_MODULE, "MooncakeTransferEngine.initialize")
    assert "self.engine.initialize(hostname, 'P2PHANDSHAKE', protocol," in source


def test_a_batch_is_one_blocking_write(sglang: Wheel) -> None:
    name = "MooncakeTransferEngine.batch_transfer_sync"
    assert sglang.parameters(ENGINE_MODULE, name) == parameters(
        sglang_parts.MooncakeTransferEngine.batch_transfer_sync
    )
    assert sglang.arguments_of(ENGINE_MODULE, name, "self.engine.batch_transfer_sync_write") == [
        "session_id",
        "buffers",
        "peer_buffer_addresses",
        "lengths",
    ]


def test_the_mooncake_manager_sends_through_that_engine(sglang: Wheel) -> None:
    assert "self.engine.batch_transfer_sync" in sglang.calls(MOONCAKE, "MooncakeKVManager._transfer_data")
    assert "get_mooncake_transfer_engine" in sglang.calls(MOONCAKE, "MooncakeKVManager.init_engine")


def test_the_nixl_manager_makes_its_agent_in_the_constructor(sglang: Wheel) -> None:
    source = sglang.source(MANAGER_MODULE, "NixlKVManager.__init__")
    assert source.index("from nixl._api import nixl_agent") < source.index(
        "self.agent = nixl_agent(str(uuid.uuid4()), "
    )
    assert "self.agent.create_backend(backend, backend_params)" in source
    assert sglang.parameters(MANAGER_MODULE, "NixlKVManager.__init__") == parameters(
        sglang_parts.NixlKVManager.__init__
    )


def test_peers_are_met_with_their_endpoint(sglang: Wheel) -> None:
    name = "NixlKVManager._add_remote_peer"
    assert sglang.parameters(MANAGER_MODULE, name) == parameters(sglang_parts.NixlKVManager._add_remote_peer)
    assert "self.agent.add_remote_agent" in sglang.calls(MANAGER_MODULE, name)
    assert "endpoint: str" in sglang.source(MANAGER_MODULE, "KVArgsRegisterInfo")
    assert "agent_metadata: bytes" in sglang.source(MANAGER_MODULE, "KVArgsRegisterInfo")


def test_the_nixl_manager_writes_posts_and_polls_on_its_agent(sglang: Wheel) -> None:
    calls = sglang.calls(MANAGER_MODULE, "NixlKVManager._send_kvcache_generic")
    assert calls.index("self.agent.make_prepped_xfer") < calls.index("self._post_xfer")
    assert "'WRITE'" in sglang.source(MANAGER_MODULE, "NixlKVManager._send_kvcache_generic")
    assert "self.agent.transfer" in sglang.calls(MANAGER_MODULE, "NixlKVManager._post_xfer")
    assert "self.agent.check_xfer_state" in sglang.calls(MANAGER_MODULE, "NixlKVManager._await_handles")
    assert "'READ'" not in sglang.text(MANAGER_MODULE)
    assert '"READ"' not in sglang.text(MANAGER_MODULE)
