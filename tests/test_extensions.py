"""Models, tasks and recipes of a user's file or an installed package: trained, opened again, never run unasked."""

import json
import shutil
import sys

import pytest

import regard
from regard import extensions, recipes
from regard.errors import ConfigError, FolderError, InputError
from regard.models import model_class

TINY = ["model.width=32", "model.heads=2", "model.vocab_size=300", "model.context=32", "training.max_tokens=512"]
SHORT = [*TINY, "training.steps=12", "training.evaluate_every=6", "training.checkpoint_every=6", "training.warmup=2"]
TEMPLATE = (extensions.Path(extensions.__file__).parent / "templates" / "model.py").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _forget(monkeypatch):
    """A process that has run no code of a user's yet."""
    monkeypatch.setattr(extensions, "_BY_SHA256", {})
    monkeypatch.setattr(extensions, "_BY_NAME", {})


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The user's file."""
    path = tmp_path_factory.mktemp("mine") / "mine.py"
    path.write_text(TEMPLATE, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(source, train_here, story, tmp_path_factory):
    """A model folder that `regard train mine.py:recipe` made."""
    return train_here(f"{source}:recipe", *SHORT, data=[story], folder=tmp_path_factory.mktemp("runs") / "mine")


@pytest.fixture
def hostile(folder, tmp_path):
    """The same folder with code that leaves a canary where it is run; its hashes are right."""
    copy, canary = tmp_path / "hostile", tmp_path / "canary"
    shutil.copytree(folder, copy)
    code = TEMPLATE.encode() + f"\nopen({str(canary)!r}, 'w').close()\n".encode()
    change_code(copy, code)
    return copy, canary


def change_code(folder, code):
    """Put other code into a folder, with its right hashes."""
    sha256 = extensions.hashlib.sha256(code).hexdigest()
    (folder / "mine.py").write_bytes(code)
    config = json.loads((folder / "config.json").read_text()) | {"code": {"mine.py": sha256}}
    (folder / "config.json").write_text(json.dumps(config))
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    for name in ("mine.py", "config.json"):
        content = (folder / name).read_bytes()
        manifest[name] = {"size": len(content), "sha256": extensions.hashlib.sha256(content).hexdigest()}
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))


# ------------------------------------------------ a model of a file


def test_the_folder_has_a_copy_of_the_code_and_names_its_hash(folder, source):
    sha256 = extensions.hashlib.sha256(source.read_bytes()).hexdigest()
    assert (folder / "mine.py").read_bytes() == source.read_bytes()
    config = json.loads((folder / "config.json").read_text())
    assert (config["kind"], config["code"]) == ("mine.py:TinyGPT", {"mine.py": sha256})
    assert json.loads((folder / "MANIFEST.json").read_text())["mine.py"]["sha256"] == sha256
    newest = max((folder / "checkpoints").glob("step-*"))
    assert (newest / "mine.py").read_bytes() == source.read_bytes()
    assert f"`regard train {source}:recipe " in (folder / "card.md").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "{}", "The queen"],
        ["evaluate", "{}"],
        ["check", "{}"],
        ["show", "{}", "The queen"],
        ["show", "{}", "--list"],
        ["trace", "{}", "The queen", "-o", "trace.safetensors"],
        ["export", "{}", "out"],
        ["cost", "{}"],
        ["embeddings", "{}", "queen"],
        ["train", "gpt", "{story}", "--from", "{}", "-o", "out"],
    ],
    ids=lambda arguments: " ".join(arguments[:1]),
)
def test_no_command_runs_the_code_of_a_folder_unasked(here, hostile, arguments, tmp_path, monkeypatch, story):
    monkeypatch.chdir(tmp_path)
    copy, canary = hostile
    done = here(*[one.format(copy, story=story) for one in arguments])
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert f"{copy} needs the code of its mine.py, which was not run; read {copy / 'mine.py'}, and if" in done.stderr
    assert "add --trust" in done.stderr
    assert not canary.exists()


def test_with_trust_its_code_runs_and_says_so(here, hostile):
    copy, canary = hostile
    done = here("run", copy, "The queen", "--greedy", "--max-new-tokens", "3", "--trust")
    assert done.returncode == 0, done.stderr
    assert canary.exists()


def test_the_code_is_not_run_where_it_is_not_what_the_folder_names(here, hostile):
    copy, canary = hostile
    with (copy / "mine.py").open("a") as file:
        file.write("# more\n")
    done = here("run", copy, "The queen", "--trust")
    assert done.returncode == 2
    assert f"{copy / 'mine.py'} has changed since {copy} was saved: it was not run" in done.stderr
    assert not canary.exists()


@pytest.mark.parametrize(
    "code",
    [{"../a.py": "0" * 64}, {"/etc/a.py": "0" * 64}, {"mine.py": "x"}, {"mine.txt": "0" * 64}, ["mine.py"]],
)
def test_a_folder_that_names_code_elsewhere_is_refused(folder, tmp_path, code):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text()) | {"code": code}
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(FolderError, match="config.json: code "):
        extensions.trust(copy)


def test_it_is_loaded_run_evaluated_checked_and_shown(folder, here, capsys, caplog):
    with pytest.raises(FolderError, match="trust=True"):
        regard.load(folder)
    pipeline = regard.load(folder, trust=True)
    assert f"running {folder / 'mine.py'} (SHA-256 " in caplog.text
    assert type(pipeline.model).__name__ == "TinyGPT"
    assert pipeline.run("The queen", regard.Greedy(), max_new_tokens=3).text
    # What has been run once needs no more trust.
    assert json.loads(here("evaluate", folder, "--json").stdout)["perplexity"] > 1
    done = here("show", folder, "The queen", "--view", "heads", "--json")
    assert len(json.loads(done.stdout)["matrices"]) == 4, "two layers of two heads"
    findings = {one["law"]: one["holds"] for one in json.loads(here("check", folder, "--json").stdout)}
    assert findings["causality"]
    assert findings["cached = uncached"]
    done = here("export", folder, folder.parent / "out")
    assert done.returncode == 2
    assert "error: a mine.py:TinyGPT has no counterpart at Hugging Face" in done.stderr


def test_info_needs_no_code(here, folder):
    facts = json.loads(here("info", folder, "--json").stdout)
    assert facts["code"] == json.loads((folder / "config.json").read_text())["code"]
    extensions.trust(folder)
    assert json.loads(here("info", folder, "--json").stdout) == facts


def test_a_source_that_has_changed_since_is_told(folder, source, caplog):
    regard.load(folder, trust=True)
    assert "has changed" not in caplog.text
    before = source.read_text()
    source.write_text(before + "# more\n")
    try:
        regard.load(folder, trust=True)
    finally:
        source.write_text(before)
    assert f"{source} has changed since {folder} was trained; what runs is its copy {folder / 'mine.py'}" in caplog.text


def test_a_run_is_resumed_with_the_code_it_was_started_with(tmp_path, train_here, story):
    path = tmp_path / "mine.py"
    path.write_text(TEMPLATE, encoding="utf-8")
    run = train_here(f"{path}:recipe", *SHORT, data=[story], folder=tmp_path / "run")
    path.write_text(TEMPLATE + "# more\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=f"{path} has changed since {run} was started; restore it to resume"):
        train_here(f"{path}:recipe", *SHORT, "training.steps=18", data=[story], folder=run)


def test_two_versions_of_a_file_live_in_one_process(folder, tmp_path, train_here, story):
    """The same names, other code: each folder opens as it was trained, whichever was opened last."""
    path = tmp_path / "mine.py"
    path.write_text(TEMPLATE.replace("self.embedding(ids) + self", "2 * self.embedding(ids) + self"), encoding="utf-8")
    other = train_here(f"{path}:recipe", *SHORT, data=[story], folder=tmp_path / "run")
    for _ in range(2):
        models = [regard.load(one, trust=True).model for one in (folder, other)]
        assert type(models[0]) is not type(models[1])
        modules = [sys.modules[type(model).__module__] for model in models]
        assert [module.__file__ for module in modules] == [str(folder / "mine.py"), str(path)]


def test_a_recipe_alone_needs_no_code_to_open_its_model(tmp_path, train_here, story):
    path = tmp_path / "mine.py"
    text = TEMPLATE.replace("model=TinyGPTConfig(vocab_size=2048, context=128)", "model=GPTConfig(layers=1, dropout=0)")
    path.write_text(f"from regard.models.gpt import GPTConfig\n{text}", encoding="utf-8")
    run = train_here(f"{path}:recipe", *SHORT, data=[story], folder=tmp_path / "run")
    assert "code" not in json.loads((run / "config.json").read_text())
    assert not (run / "mine.py").exists()
    extensions._BY_SHA256.clear()
    assert regard.load(run).kind == "gpt"


# ------------------------------------------------ what can be wrong with a file


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (None, "mine.py:recipe", "there is no file .*mine.py; `regard new model .*mine.py` writes one"),
        ("x = (", "mine.py:recipe", "mine.py, line 1: SyntaxError: '\\(' was never closed"),
        ("\nx = y", "mine.py:recipe", "mine.py, line 2: NameError: name 'y' is not defined"),
        ("import beside", "mine.py:recipe", "line 1: ModuleNotFoundError: .* the file is copied alone"),
        ("x = 1", "mine.py:recipe", "has no recipe recipe; it has none"),
        ("x = 1", "mine.py", "has no recipe that is the only one; it has none"),
        (f"{TEMPLATE}\nother = recipe", "mine.py", "it has .*mine.py:recipe, .*mine.py:other"),
        (f"{TEMPLATE}\nother = recipe", "mine.py:third", "has no recipe third; it has .*mine.py:recipe, "),
        (
            "from regard.models.gpt import GPT\nfrom regard.templates.model import recipe\nclass Mine(GPT): ...",
            "mine.py:recipe",
            "Mine has the config class GPTConfig of another model, .* class MineConfig\\(GPTConfig\\)",
        ),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, text, name, message):
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError, match=message):
        recipes.find(str(tmp_path / name))


def test_the_only_recipe_of_a_file_needs_no_name(source):
    assert recipes.find(str(source)).name == "mine.py:recipe"
    assert recipes.folder_of(f"{source}:recipe") == recipes.folder_of(str(source)) == "mine"


def test_an_error_in_the_users_code_names_its_line(here, tmp_path, story):
    path = tmp_path / "mine.py"
    path.write_text(TEMPLATE.replace("return self.norm(hidden)", "return self.nrom(hidden)"), encoding="utf-8")
    line = path.read_text().splitlines().index("        return self.nrom(hidden)") + 1
    done = here("train", f"{path}:recipe", story, "-o", tmp_path / "run", *SHORT)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"error: {path}, line {line}: AttributeError: 'TinyGPT' object has no attribute 'nrom'")
    assert not (tmp_path / "run").exists()


# ------------------------------------------------ installed packages


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with a model, a recipe and a task."""
    (tmp_path / "lab_models.py").write_text(
        TEMPLATE + "from regard.tasks.language_modeling import TASK\nfrom dataclasses import replace\n"
        'LAB = replace(TASK, name="lab-text")\n'
    )
    info = tmp_path / "lab_models-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-models\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(
        "[regard.models]\nlab-gpt = lab_models:TinyGPT\n[regard.recipes]\nlab = lab_models:recipe\n"
        "[regard.tasks]\nlab-text = lab_models:LAB\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    extensions._installed.cache_clear()
    yield info
    extensions._installed.cache_clear()
    sys.modules.pop("lab_models", None)


def test_what_a_package_installs_is_found_beside_ours(package, train_here, story, tmp_path, here):
    assert recipes.describe()["lab"].startswith("A small GPT with RMS norm")
    folder = train_here("lab", *SHORT, data=[story], folder=tmp_path / "run")
    config = json.loads((folder / "config.json").read_text())
    assert (config["kind"], config["versions"]["lab-models"]) == ("lab-gpt", "1.5")
    assert "code" not in config
    done = here("run", folder, "The queen", "--greedy", "--max-new-tokens", "3")
    assert done.returncode == 0, done.stderr


def test_a_task_of_a_package_is_found(package):
    from regard.tasks import find_task

    assert find_task("lab-text").name == "lab-text"


def test_a_package_cannot_take_a_name_of_ours(package):
    (package / "entry_points.txt").write_text("[regard.models]\ngpt = lab_models:TinyGPT\n")
    extensions._installed.cache_clear()
    with pytest.raises(ConfigError, match="gpt is of regard, and an installed package has it"):
        model_class("gpt")


def test_the_same_code_in_two_places_is_run_once_and_keeps_its_place(tmp_path):
    places = [tmp_path / name / "mine.py" for name in ("one", "two")]
    for path in places:
        path.parent.mkdir()
        path.write_text(TEMPLATE, encoding="utf-8")
    codes = [recipes.find(f"{path}:recipe").code for path in places]
    assert [code.path for code in codes] == places
    assert codes[0].module is codes[1].module
