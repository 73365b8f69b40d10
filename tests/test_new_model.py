"""A new model is one file and one line in MODELS: the commands and the contract tests find it, with no other edit.

Its recipe, for `regard train`, is one more file and one line in RECIPES.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.models import MODELS, model_class
from tests.forks import Forks

# A language model that is not in regard: one causal self-attention layer over tokens and learned positions.
MODEL = '''
"""Attention alone: embeddings plus positions, one self-attention layer, the embedding matrix again."""

from pydantic import Field

from regard.layers.attention import SelfAttention
from regard.layers.cost import ForwardCost, self_attention
from regard.layers.decoding import positions_and_mask, prefill_inputs
from regard.layers.embeddings import Embedding
from regard.layers.positions import LearnedPositions
from regard.layers.tap import Tap
from regard.models.base import CausalLMConfig, CausalLMIds, Model


class OneLayerConfig(CausalLMConfig):
    vocab_size: int = Field(300, ge=2)
    context: int = Field(32, ge=1)
    width: int = Field(32, ge=1)
    heads: int = Field(2, ge=1)
    tie_embeddings: bool = True

    def flops(self, tokens):
        adds = self_attention(tokens, self.width) + tokens * self.width * self.vocab_size
        return ForwardCost(adds, self.heads * tokens**2, 2 * tokens * self.width)


EXAMPLES = (OneLayerConfig(vocab_size=40, width=24, special_ids=CausalLMIds(bos_id=1, eos_id=2)),)


class OneLayer(Model):
    config_class = OneLayerConfig
    interface = "causal_lm"
    alignment_taps = ()

    def __init__(self, config):
        super().__init__(config)
        self.embedding = Embedding(config.vocab_size, config.width, scaled=False)
        self.positions = LearnedPositions(config.context, config.width)
        self.attention = SelfAttention(config.width, config.heads)
        self.hidden = Tap()
        if not self.positions.weight.is_meta:
            self.positions.weight.data.normal_(std=config.width**-0.5)

    def forward(self, ids, document_ids=None):
        return self.logits(self.hidden_states(ids, document_ids))

    def logits(self, hidden):
        return self.embedding.logits(hidden)

    def hidden_states(self, ids, document_ids=None):
        position_ids, mask = positions_and_mask(document_ids)
        return self.attend(ids, 0, position_ids, mask, None)

    def attend(self, ids, start, position_ids, mask, cache):
        hidden = self.embedding(ids) + self.positions(start, start + ids.shape[1], position_ids)
        return self.hidden(hidden + self.attention(hidden, mask, cache=cache))

    def start(self, prompts):
        state, before, position_ids, mask = prefill_inputs(prompts, 1, self.embedding.weight.device)
        if before.shape[1]:
            self.attend(before, 0, position_ids, mask, state.caches[0])
        return state

    def step(self, tokens, state):
        hidden = self.attend(tokens[:, None], state.length, state.position_ids(), state.mask(), state.caches[0])
        return self.logits(hidden[:, 0]), state

    @property
    def input_embeddings(self):
        return self.embedding.weight

    @property
    def output_embeddings(self):
        return self.embedding.weight

    @property
    def blocks(self):
        return [self.attention]
'''
RECIPE = '''"""One layer of attention on a text.

    regard train one-layer text.txt -o runs/one
"""

from one_layer import OneLayerConfig
from regard.data.text_corpus import TextDataConfig
from regard.tasks.language_modeling.data import LanguageModelingRun, prepare
from regard.tasks.language_modeling.task import LanguageModelingConfig
from regard.tasks.recipe import Recipe
from regard.training.config import TrainingConfig


def settings(inputs):
    return LanguageModelingRun(
        model=OneLayerConfig(),
        task=LanguageModelingConfig(),
        data=TextDataConfig(tokenizer="characters"),
        training=TrainingConfig(steps=60, max_tokens=512, learning_rate=1e-2, warmup=5, evaluate_every=30),
    )


RECIPE = Recipe("one-layer", settings, prepare, "The queen")
'''
# Imported by each process below: one line in MODELS, one in RECIPES.
REGISTER = """
import regard.models, regard.recipes
regard.models.MODELS["one-layer"] = "one_layer:OneLayer"
regard.recipes.RECIPES["one-layer"] = "one_layer_recipe"
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The folder of the model and its recipe."""
    folder = tmp_path_factory.mktemp("one-layer")
    (folder / "one_layer.py").write_text(MODEL)
    (folder / "one_layer_recipe.py").write_text(RECIPE)
    (folder / "register_one_layer.py").write_text(REGISTER)
    return folder


@pytest.fixture(scope="module")
def regard_with_it(package):
    forks = Forks(REGISTER, package)
    yield forks.run
    forks.close()


@pytest.fixture(scope="module")
def folder(regard_with_it, story, tmp_path_factory):
    """The folder of a trained model."""
    folder = tmp_path_factory.mktemp("runs") / "one"
    done = regard_with_it("train", "one-layer", story, "-o", folder, "--json")
    assert done.returncode == 0, done.stderr
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert any("utilization" in line for line in metrics)  # its own flops, in the training loop
    return folder


def test_the_contracts_find_it(package):
    root = Path(__file__).parents[1]
    tests = root / "tests" / "contracts" / "test_causal_lm.py"
    words = ["pytest", "-q", "-p", "register_one_layer", "-p", "no:cacheprovider", tests, "-k", "one-layer"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), *(path for path in sys.path if path)])}
    done = subprocess.run(
        [sys.executable, "-m", *map(str, words)], capture_output=True, text=True, cwd=root, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout
    count = sum(line.startswith("def test_") for line in tests.read_text(encoding="utf-8").splitlines())
    assert done.stdout.count(".") >= count, "each of them ran"


def test_it_is_checked_and_costed(regard_with_it, folder):
    done = regard_with_it("check", folder, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    findings = {finding["law"]: finding["holds"] for finding in json.loads(done.stdout)}
    assert findings["causality"]
    assert findings["cached = uncached"]
    rows = {row["name"]: row for row in json.loads(regard_with_it("cost", folder, "--json").stdout)}
    for name in ("multiply-adds, forward pass", "attention matrices", "KV cache, or state"):
        assert rows[name]["formula"] == rows[name]["measured"], name


def test_it_is_run_evaluated_and_described(regard_with_it, folder):
    done = regard_with_it("run", folder, "The queen", "--greedy", "--max-new-tokens", "5", "--json")
    assert done.returncode == 0, done.stderr
    assert regard_with_it("evaluate", folder, "--json").returncode == 0
    facts = json.loads(regard_with_it("info", folder, "--json").stdout)
    assert (facts["kind"], facts["task"]) == ("one-layer", "language-modeling")


def test_its_export_is_refused_in_one_line(regard_with_it, folder, tmp_path):
    done = regard_with_it("export", folder, tmp_path / "out")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "a one-layer has no counterpart at Hugging Face" in done.stderr
    assert not (tmp_path / "out").exists()


def test_without_the_line_it_is_unknown(here, folder):
    done = here("check", folder)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "kind is 'one-layer', wanted one of rnn, " in done.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("one_layer:Nothing", "wanted module:class of a regard.models.base.Model"),
        ("one_layer:OneLayerConfig", "wanted module:class of a regard.models.base.Model"),
        ("regard.models.bert:EncoderWithHead", "does not say its config_class"),
    ],
)
def test_a_wrong_line_says_what_is_wanted(package, monkeypatch, line, message):
    monkeypatch.syspath_prepend(package)
    monkeypatch.setitem(MODELS, "it", line)
    with pytest.raises(TypeError, match=message):
        model_class("it")
