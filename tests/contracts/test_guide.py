"""The guide's commands and settings, against the engines' source."""

import re

import msgspec
from tests.contracts.wheels import Wheel
from tests.integrations.engines.test_guide import GUIDE, SETTINGS

V1 = "vllm.distributed.kv_transfer.kv_connector.v1"


def test_settings_of_vllm(vllm: Wheel) -> None:
    factory = vllm.text("vllm.distributed.kv_transfer.kv_connector.factory")
    fields = vllm.text("vllm.config.kv_transfer")
    for settings in map(msgspec.json.decode, SETTINGS):
        assert f'"{settings["kv_connector"]}"' in factory or settings["kv_connector"] in vllm.text(
            f"{V1}.nixl"
        )
        for key in settings:
            assert re.search(rf"^    {key}: ", fields, re.MULTILINE), key
        for key in settings.get("kv_connector_extra_config", {}):
            assert f'"{key}"' in vllm.text(f"{V1}.mooncake.mooncake_connector")


def test_options_of_sglang(sglang: Wheel) -> None:
    known = sglang.text("sglang.srt.arg_groups.field_order")
    command = GUIDE.partition("sglang.launch_server")[2].partition("```")[0]
    for option in re.findall(r"--([\w-]+)", command):
        assert f'"{option.replace("-", "_")}"' in known, option
    assert "sglang/launch_server.py" in sglang.names
