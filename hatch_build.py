"""Build hook: compile the preload library of ``ark run`` into the wheel. No compiler: none."""

import importlib.util
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "src/ark/integrations/preload"


class PreloadHook(BuildHookInterface):
    """Runs before a wheel, also an editable one, is put together."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's form
        """Compile, and let the wheel carry the library and the name of its platform."""
        if self.target_name != "wheel":
            return
        spec = importlib.util.spec_from_file_location("ark_build", Path(self.root, PACKAGE, "build.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        try:
            module.build()
        except module.NotBuiltError as error:
            self.app.display_warning(f"ark run will not be able to steer: {error}")
            return
        build_data["artifacts"].append(f"/{PACKAGE}/*.so")
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
