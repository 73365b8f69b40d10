"""The table of models, and what one can look at through the server."""

from pathlib import Path

import pytest

from regard.errors import ConfigError, FolderError
from regard.inspection.drawing.html import figure_data
from regard.inspection.trace import Trace
from regard.server.models import ModelTable, name_of, named
from regard.server.settings import ServerSettings
from regard.server.viewing.run import serve_page


def test_models_have_the_names_of_their_folders(tmp_path):
    one, other = tmp_path / "a" / "gpt", tmp_path / "b" / "gpt"
    for folder in (one, other):
        folder.mkdir(parents=True)
    assert named([one, other]) == {"gpt": one, "gpt-2": other}
    assert name_of(Path("my model (1).gguf")) == "my-model-1"
    with pytest.raises(ConfigError, match="twice"):
        named([one, one])
    with pytest.raises(FolderError, match="there is no"):
        named([tmp_path / "nothing"])


def test_the_page_ends_with_what_went_wrong_while_a_model_was_opened(tmp_path):
    def open_model(path):
        raise FolderError(f"{path} is no model")

    with pytest.raises(FolderError, match="is no model"):
        serve_page(ModelTable([tmp_path], open_model), ServerSettings(port=0), [], browser=False)


def test_another_address_needs_a_key():
    with pytest.raises(ValueError, match="REGARD_API_KEY"):
        ServerSettings(host="0.0.0.0")
    assert ServerSettings(host="0.0.0.0", api_key="secret").host == "0.0.0.0"


def test_models_are_listed(client):
    assert client.get("/health").json() == {"status": "ready"}
    names = ["llama", "demo", "bert", "sentiment", "names"]
    assert [one["id"] for one in client.get("/v1/models").json()["data"]] == names
    found = {one["id"]: one for one in client.get("/api/models").json()}
    assert [found[name]["task"] for name in names[:2]] == ["language-modeling", "translation"]
    assert found["sentiment"]["labels"] == ["bad", "good"]
    assert {"next", "heads"} <= {view["name"] for view in found["llama"]["views"]}
    info = client.get("/api/models/llama").json()["info"]
    assert info["attentions"][0]["path"] == "blocks.0.attention"
    assert client.get("/v1/models/x").status_code == 404


def test_a_trace_is_the_file_that_the_command_writes(client, tmp_path):
    answer = client.post("/api/trace", json={"model": "llama", "texts": ["The queen"], "taps": ["*.weights"]})
    path = tmp_path / "trace.safetensors"
    path.write_bytes(answer.content)
    trace = Trace.open(path)
    assert trace.info.task == "language-modeling"
    assert [*trace.values] == ["blocks.0.attention.weights", "blocks.1.attention.weights"]


def test_a_view_is_the_figure_of_the_package(client, table):
    request = {"model": "demo", "texts": ["we are eating bread"], "view": "heads"}
    found = client.post("/api/show", json=request).json()
    wanted = figure_data(table.get("demo").pipeline.show("we are eating bread", view="heads"))
    assert found["frames"] == wanted["frames"]
    assert client.get("/api/examples/mask").json()["frames"]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"textz": ["a"]}, "textz"),
        ({"texts": "a"}, "texts"),
        ({"head": -1}, "head"),
        ({"model": "none"}, "model"),
        ({"image": "aGk="}, "image"),
    ],
)
def test_a_wrong_field_is_named(client, change, param):
    answer = client.post("/api/show", json={"model": "llama", "texts": ["The queen"]} | change)
    assert answer.status_code == (404 if param == "model" else 400)
    assert answer.json()["error"]["param"] == param
