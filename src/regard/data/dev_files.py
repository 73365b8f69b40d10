"""Data of the user's own to evaluate on while training, instead of a held-out part: `data.dev`, in every recipe."""

from pathlib import Path

from pydantic import Field, field_validator

from regard.config import Config, absolute_path
from regard.errors import ConfigError


class DevFilesConfig(Config):
    """The base of the data settings that have `data.dev`; a file keeps its meaning in another current folder."""

    dev: tuple[Path, ...] = Field(
        (), description="your own validation data, of the same form as the training data, instead of a held-out part"
    )

    @field_validator("dev")
    @classmethod
    def _whole_paths(cls, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(absolute for path in paths if (absolute := absolute_path(path)) is not None)

    def check_has_files(self, has_files: bool) -> None:
        """ConfigError: files to evaluate on, but the training data is generated."""
        if self.dev and not has_files:
            raise ConfigError(f"data.dev={self.dev[0]} needs training data of yours beside it; name its files too")
