"""The HTML of figures in a real browser: it draws, says the numbers that torch computed, and logs no error."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from regard.inspection.drawing.html import to_html
from regard.inspection.drawing.layout import labelled
from regard.inspection.drawing.scene import Figure, Frame, Scene
from regard.inspection.examples import EXAMPLES, draw_example

CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--virtual-time-budget=3000", "--dump-dom"),
]
# What a page is asked: its answer becomes the title of the document, which --dump-dom prints.
ASK = """<script>
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message)));
addEventListener("load", () => {
  const figure = document.querySelector("regard-figure"), root = figure.shadowRoot;
  const first = figure.matrices[0];
  const said = [];
  for (let row = 0; first && row < first.shape[0]; row++) {
    said.push(Array.from({ length: first.shape[1] }, (_, column) => first.say(row, column)));
  }
  root.querySelector("details")?.setAttribute("open", "");
  const frames = [];
  for (let number = 0; number < figure.data.frames.length; number++) {
    figure.show(number);
    frames.push(root.querySelectorAll("canvas").length);
  }
  const canvases = figure.data.frames.map((frame) => frame.matrices.length);
  document.title = JSON.stringify({ errors, said, frames, canvases });
});
</script>"""

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]


def ask(figure: Figure, folder) -> dict:
    """What a browser says of the page of a figure."""
    page = folder / "figure.html"
    page.write_text(to_html(figure).replace("</html>", ASK + "</html>"), encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    title = re.search(r"<title>(\{.*?\})</title>", done.stdout, re.DOTALL)
    assert title, done.stdout[:500] + done.stderr[-500:]
    return json.loads(title[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def test_the_page_says_the_numbers_and_shows_every_frame(tmp_path):
    values = np.random.default_rng(0).random((3, 4)).astype(np.float32)
    masked = np.zeros((3, 4), bool)
    masked[0, 3] = True
    rows, columns = ["a", "b", "</script>"], ["1", "2", "3", "4"]

    def scene() -> Scene:
        block = labelled(8, 40, values, rows, columns, masked=masked)
        return Scene(400, 300, block.items, "title")

    found = ask(Figure([Frame("one", scene), Frame("two", scene)], "frame"), tmp_path)
    assert found["errors"] == []
    assert found["frames"] == found["canvases"] == [1, 1]
    for row in range(3):
        for column in range(4):
            label, _, number = found["said"][row][column].rpartition(": ")
            assert label == f"{rows[row]} → {columns[column]}"
            if masked[row, column]:
                assert number == "masked"
            else:
                assert float(number) == pytest.approx(float(values[row, column]), rel=1e-5)


@pytest.mark.parametrize("name", [next(iter(EXAMPLES)), "thinking"])
def test_examples_open_without_an_error(tmp_path, name):
    found = ask(draw_example(name), tmp_path)
    assert found["errors"] == []
    assert found["frames"] == found["canvases"]
