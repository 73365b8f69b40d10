"""Write a figure to a file, in the format of its suffix."""

from pathlib import Path

from regard.errors import InputError
from regard.files import write_file
from regard.inspection.drawing.html import to_html
from regard.inspection.drawing.raster import save_raster
from regard.inspection.drawing.scene import Figure
from regard.inspection.drawing.svg import to_svg

SUFFIXES = (".png", ".svg", ".pdf", ".html")


def check_path(path: Path) -> None:
    """InputError if no figure can be written there; called before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a figure ends in {', '.join(SUFFIXES)}; got {path.suffix!r}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; create it first")


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure: a page has all of its frames, a picture the chosen one."""
    check_path(path)
    suffix = path.suffix.lower()
    if suffix == ".html":
        write_file(path, to_html(figure).encode())
    elif suffix == ".svg":
        write_file(path, to_svg(figure.scene).encode())
    else:
        save_raster(figure.scene, path)
