"""One color for each role, in all figures: query blue, key orange, value green, image violet, masked cells grey.

The ramps go from white to a dark shade, so they survive printing in grey, and blue against orange is told apart by
every kind of color vision.
"""

import numpy as np

QUERY = "#1f4e9c"
KEY = "#c65d00"
VALUE = "#1b7f4b"
IMAGE = "#7c3aed"
MASKED = "#b8bcc4"
MARK = "#d4007f"  # the frame of outlined cells
INK = "#1c2733"  # text
FAINT = "#5c6773"  # secondary text
RULE = "#d4d9df"  # lines and frames
PAPER = "#ffffff"

# Heads side by side, told apart by hue and by darkness; more than these start again.
HEADS = (QUERY, KEY, VALUE, IMAGE, "#b3123f", "#0e8fa0", "#9a7b00", FAINT)

# A ramp is the colors of the values 0 to 1; "diverging" of -1 to 1.
RAMPS: dict[str, tuple[str, ...]] = {
    "query": ("#ffffff", "#9db8e0", QUERY, "#0d2550"),
    "key": ("#ffffff", "#f2bd8d", KEY, "#5f2c00"),
    "value": ("#ffffff", "#9fd3b6", VALUE, "#0b3d24"),
    "image": ("#ffffff", "#c9b2f7", IMAGE, "#3b1480"),
    "grey": ("#ffffff", "#c3c9d1", "#6b7580", "#1c2733"),
    "diverging": ("#8a3d00", "#e8a56a", "#ffffff", "#86a9da", "#14366f"),
}


def rgb(color: str) -> tuple[int, int, int]:
    """Red, green and blue of "#rrggbb"."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def shade(values: np.ndarray, ramp: str, low: float, high: float) -> np.ndarray:
    """Colors (…, 3) of uint8 for values between `low` and `high`; what is not a number is grey."""
    stops = np.array([rgb(color) for color in RAMPS[ramp]], np.float64)
    low, high = np.nan_to_num((low, high))
    known = np.nan_to_num(np.asarray(values, np.float64), nan=low, posinf=high, neginf=low)
    share = np.clip((known - low) / max(high - low, 1e-12), 0, 1) * (len(stops) - 1)
    at = np.minimum(share.astype(int), len(stops) - 2)
    part = (share - at)[..., None]
    found = stops[at] * (1 - part) + stops[at + 1] * part
    found[~np.isfinite(values)] = rgb(MASKED)
    return found.round().astype(np.uint8)


def hexadecimal(color: np.ndarray) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in color)


def text_on(color: np.ndarray) -> str:
    """Black or white, whichever reads better on this color."""
    red, green, blue = (float(part) / 255 for part in color)
    return PAPER if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else INK
