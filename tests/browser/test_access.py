"""The page for everyone: keyboard alone, screen readers (axe-core), dark and light, narrow and enlarged; its weight."""

import shutil
import subprocess
from pathlib import Path

import axe_playwright_python
import pytest

import regard.server

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
FILES = Path(regard.server.__file__).parent / "page"
MAX_SCRIPT = 200_000  # bytes of JavaScript, uncompressed
STATES = [
    "#/lessons?lesson=1-attention-basics&card=5",
    "#/lessons?all=1",
    "#/sheet?preset=thinking&ask=weights",
    "#/quiz",
    "#/lecture?example=thinking",
    "#/heads?model=bert&text=it was on",
    "#/alignment?model=transformer",
    "#/map?model=transformer",
    "#/show?model=bert&of=masks&text=it was on",
    "#/next?model=llama",
    "#/generate?model=llama",
    "#/fill?model=bert-words&text=it [MASK] on",
    "#/picture?model=captioner",
    "#/picture?model=vilbert-answerer",
    "#/switches?model=transformer",
    "#/masks?way=zero",
    "#/positions?order=2,1,0",
    "#/space?model=transformer",
    "#/compare",
]
SERIOUS = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    const said = (node) => `${node.target.join(" ")} ${node.failureSummary}`;
    return violations.filter((one) => ["serious", "critical"].includes(one.impact))
        .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map(said).join(" | ")}`);
}"""


# How much wider than the window the page is, and what reaches out.
WIDE = """() => {
    const out = (one) => !one.closest(".scrolling") && one.getBoundingClientRect().right > innerWidth + 1;
    const wide = document.documentElement.scrollWidth - innerWidth;
    return wide <= 1 ? [] : [wide, ...[...document.querySelectorAll("main *")].filter(out).slice(0, 5)
        .map((one) => `${one.tagName}.${one.className}`)];
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(page, theme):
    page.tab.evaluate(f"document.documentElement.dataset.theme = {theme!r}")
    page.tab.evaluate(AXE.read_text(encoding="utf-8"))
    found = {}
    for state in STATES:
        page.open(state)
        found[state] = page.tab.evaluate(SERIOUS)
    assert {state: serious for state, serious in found.items() if serious} == {}


def test_a_lesson_is_walked_with_the_keyboard_alone(plain_page):
    tab = plain_page.tab
    plain_page.open("#/lessons?lesson=1-attention-basics&card=6")
    heading = tab.locator("article.card h3").inner_text()
    assert tab.evaluate("document.activeElement.matches('article.card')")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_function(f"() => document.querySelector('article.card h3')?.textContent !== {heading!r}")
    tab.keyboard.press("ArrowLeft")
    tab.wait_for_function(f"() => document.querySelector('article.card h3')?.textContent === {heading!r}")
    # Into the sheet beside the card: four weights are filled in and marked, by Tab and typing.
    for _ in range(60):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.dataset.blank !== undefined"):
            break
    for place, answer in enumerate(["0.88", "0.12", "0", "0"]):
        tab.keyboard.type(answer)
        tab.keyboard.press("Tab")
        assert tab.locator("input[data-blank]").nth(place).input_value() == answer
    for _ in range(60):
        if tab.evaluate("document.activeElement.textContent === 'mark it'"):
            break
        tab.keyboard.press("Shift+Tab")
    tab.keyboard.press("Enter")
    tab.locator("div.message.good").wait_for()
    plain_page.check()


def test_heads_and_cells_are_reached_by_arrow_keys(page):
    page.open("#/heads?model=transformer&attention=encoder.blocks.0.attention&head=0&text=it was")
    tab = page.tab
    tab.locator("button.head[aria-pressed=true]").focus()
    tab.keyboard.press("ArrowRight")
    tab.wait_for_function("() => new URLSearchParams(location.hash.split('?')[1]).get('head') === '1'")
    tab.wait_for_function("() => document.querySelector('regard-figure').matrices[0].name.endsWith('head 1')")
    tab.evaluate("document.querySelector('regard-figure').shadowRoot.querySelector('canvas').focus()")
    tab.keyboard.press("ArrowDown")
    tip = tab.evaluate("document.querySelector('regard-figure').shadowRoot.querySelector('.tip').textContent")
    assert "→" in tip
    page.check()


def test_one_token_lights_up_everywhere(page):
    page.open("#/heads?model=transformer&attention=encoder.blocks.0.attention&head=0&text=it was")
    tab = page.tab
    tab.locator(".strip .token").nth(1).hover()
    assert tab.locator(".strip .token.lit").count() == 1
    bands = (
        "[...document.querySelector('regard-figure').shadowRoot.querySelectorAll('.band')].filter((one) => !one.hidden)"
    )
    assert tab.evaluate(f"{bands}.length") == 2  # its row and its column


def test_the_state_is_in_the_address(page):
    state = "#/heads?model=transformer&text=it+was&attention=decoder.blocks.0.cross_attention&head=1&token=0"
    page.open(state)
    before = page.tab.locator(".hint[aria-live]").inner_text()
    page.tab.goto("about:blank")
    page.tab.goto(page.address + state)
    page.tab.wait_for_function("() => document.querySelector('main').dataset.drawn !== undefined")
    assert page.tab.locator(".hint[aria-live]").inner_text() == before
    page.check()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (640, 400)], ids=["phone", "200 %"])
def test_a_narrow_page_scrolls_in_one_direction(page, width, height):
    page.tab.set_viewport_size({"width": width, "height": height})
    for state in STATES:
        page.open(state)
        wide = page.tab.evaluate(WIDE)
        assert wide == [], (state, wide)


def test_a_lesson_is_shared_as_one_file(plain_page, tmp_path):
    plain_page.open("#/lessons?lesson=5-attention-as-a-mean&card=1")
    with plain_page.tab.expect_download() as started:
        plain_page.tab.locator("button", has_text="share as one HTML file").click()
    started.value.save_as(tmp_path / "lesson.html")
    text = (tmp_path / "lesson.html").read_text(encoding="utf-8")
    assert "regard-figure" in text
    assert "Attention as a weighted mean" in text
    assert "src=" not in text
    assert 'href="http' not in text


def test_a_lesson_of_ones_own_opens_and_cannot_run_html(plain_page):
    text = "Hello **you**, [away](https://example.org) <script>1</script>"
    lesson = f"# Mine\n\n## One <img src=x onerror=alert(1)>\n{text}\n\nview: masks\n"
    plain_page.tab.evaluate(
        """(text) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], "mine.md"));
            dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }""",
        lesson,
    )
    plain_page.tab.wait_for_function("() => document.querySelector('article.card strong')?.textContent === 'you'")
    assert plain_page.tab.locator("article.card img, article.card script, article.card a[href^=http]").count() == 0
    plain_page.check()


def test_figures_are_taken_away_as_files_and_as_code(page, tmp_path):
    page.open("#/show?model=transformer&of=alignment")
    for name, magic in (("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("HTML", b"<!doctype html>")):
        with page.tab.expect_download() as started:
            page.tab.locator(".export button", has_text=name).click()
        started.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(magic)
    page.tab.locator(".export button", has_text="copy as command").click()
    command = page.tab.locator("pre.copied").inner_text()
    assert command == "regard show transformer 'we are eating bread' --view alignment -o alignment.png"
    page.tab.locator(".export button", has_text="copy as Python").click()
    compile(page.tab.locator("pre.copied").inner_text(), "copied", "exec")


def test_the_scripts_are_light():
    scripts = list(FILES.rglob("*.js"))
    assert sum(path.stat().st_size for path in scripts) <= MAX_SCRIPT
    for path in scripts:
        text = path.read_text(encoding="utf-8")
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", ""), path
        assert "https://" not in text, path
        assert "eval(" not in text, path


@pytest.mark.skipif(shutil.which("tsc") is None, reason="tsc is not installed; `make check` checks the types")
def test_types_are_right():
    done = subprocess.run(["tsc", "-p", FILES / "jsconfig.json"], capture_output=True, text=True, check=False)
    assert done.stdout == ""
