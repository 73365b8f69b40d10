"""The build hook of the wheel: compile the C kernels for every kind of processor of this machine's architecture.

Without a C compiler the wheel is built without them; they are then compiled on first use, where there is one.
"""

import importlib.util
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILDING = Path(__file__).parent / "src" / "regard" / "ops" / "building.py"


class CustomBuildHook(BuildHookInterface):
    """Adds `regard/ops/prebuilt/` to the wheel."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable" or platform.system() != "Linux":
            return
        building = _load_building()
        self._folder = tempfile.TemporaryDirectory()
        variants = [variant for variant in building.VARIANTS if variant.machine == platform.machine()]
        for variant in variants:
            made = Path(self._folder.name) / building.prebuilt_name(variant)
            try:
                building.compile_library(made, variant.flags)
            except (OSError, subprocess.SubprocessError) as error:
                self.app.display_warning(f"no kernels for {variant.name} in this wheel: {error}")
                continue
            made.chmod(0o755)
            build_data["force_include"][str(made)] = f"regard/ops/prebuilt/{made.name}"
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-linux_{platform.machine()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._folder is not None:
            self._folder.cleanup()


def _load_building() -> Any:
    spec = importlib.util.spec_from_file_location("regard_building", BUILDING)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
