"""GGUF files that regard writes: the same model when they are read back, and in llama.cpp the same greedy tokens."""

import importlib.util
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

from regard import huggingface
from regard.errors import ConfigError
from regard.generation import Greedy, generate
from regard.generation.decode import Limits
from regard.huggingface.gguf_export import TYPES, write_gguf
from regard.layers.quantized import PackedLinear
from regard.models import build
from regard.models.base import CausalLMIds
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig, RopeScalingConfig
from regard.tokenizers.text import TextTokenizer
from tests.ops.forms import needs_kernels

TEXT = "the cat sat on the mat and the dog sat on the cat, then the mat sat on the dog. " * 3
IDS = CausalLMIds(eos_id=0)
SIZES = {"vocab_size": 300, "context": 64, "width": 64, "heads": 4, "layers": 2, "special_ids": IDS}
CONFIGS = {
    "gpt2": GPTConfig(**SIZES),
    "gpt2 untied, narrow": GPTConfig(**SIZES | {"width": 40}, tie_embeddings=False),
    "llama": LlamaConfig(**SIZES, num_kv_heads=2, feed_forward=96),
    "llama3": LlamaConfig(
        **SIZES,
        num_kv_heads=2,
        feed_forward=96,
        rope_theta=500_000.0,
        rope_scaling=RopeScalingConfig(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=8192),
        tie_embeddings=False,
    ),
    "qwen2": LlamaConfig(**SIZES, num_kv_heads=2, feed_forward=96, qkv_bias=True),
}
TOLERANCE = {"float32": 0, "float16": 2e-3, "int8": 0.02, "int4": 0.25}
BELOW_BEST = {"float32": 1e-2, "float16": 2e-2, "int8": 0.3, "int4": 0.3}  # logits up to 7
LLAMA_CPP = """
import sys, json
from llama_cpp import Llama
llama = Llama(sys.argv[1], n_ctx=64, n_threads=1, type_k=0, type_v=0, verbose=False)
found = []
for _, token in zip(range(int(sys.argv[3])), llama.generate(json.loads(sys.argv[2]), top_k=1, temp=0.0)):
    found.append(token)
print(json.dumps([llama.tokenize(sys.argv[4].encode(), add_bos=False), found]))
"""


@pytest.fixture(scope="module")
def tokenizer():
    return TextTokenizer.train([TEXT], 290)


def loud(config):
    torch.manual_seed(0)
    model = build(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(mean=float("norm" in name and name.endswith("weight")), std=0.2)
    return model


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_written_is_read_back(name, precision, tokenizer, tmp_path):
    model = loud(CONFIGS[name])
    write_gguf(model, tokenizer, tmp_path / "m.gguf", precision)
    found = huggingface.load(tmp_path / "m.gguf")
    assert found.model.config.model_copy(update={"dropout": 0.1}) == model.config.model_copy(
        update={"dropout": 0.1, "feed_forward": found.model.config.feed_forward}
    )
    assert found.tokenizer.encode(TEXT) == tokenizer.encode(TEXT)
    assert found.tokenizer.eos_ids == tokenizer.eos_ids
    for key, weight in model.state_dict().items():
        read = found.model.state_dict()[key]
        assert_close(read, weight, rtol=0, atol=TOLERANCE[precision] * weight.abs().max().item())
        if weight.dim() == 1 or "positions" in key:
            assert torch.equal(read, weight)


@needs_kernels
def test_quantized_matrices_are_kept_as_they_are(tokenizer, tmp_path):
    write_gguf(loud(CONFIGS["llama"]), tokenizer, tmp_path / "m.gguf", "int4")
    packed = huggingface.load(tmp_path / "m.gguf", packed=True).model
    assert {matrix.bits for one in packed.modules() if isinstance(one, PackedLinear) for matrix in one.matrices} == {4}
    assert packed.embedding.matrix.bits == 8


def test_what_llama_cpp_does_not_have_is_refused(tokenizer, tmp_path):
    with pytest.raises(ConfigError, match="gelu_tanh only"):
        write_gguf(loud(GPTConfig(**SIZES, activation="relu")), tokenizer, tmp_path / "m.gguf", "float32")
    with pytest.raises(ConfigError, match="byte-level BPE"):
        write_gguf(loud(CONFIGS["llama"]), TextTokenizer.characters(["abc"]), tmp_path / "m.gguf", "float32")
    with pytest.raises(ConfigError, match="precision is 'int3'"):
        write_gguf(loud(CONFIGS["llama"]), tokenizer, tmp_path / "m.gguf", "int3")
    assert not list(tmp_path.iterdir())


def test_the_command(here, novel, letters, story, tmp_path):
    done = here("export", novel, tmp_path / "novel.gguf", "--precision", "int8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path}/novel.gguf: ")
    assert here("run", tmp_path / "novel.gguf", "The old captain", "--greedy").returncode == 0
    for words, message in (
        ((novel, tmp_path / "novel.gguf"), "exists"),
        ((novel, tmp_path / "no" / "m.gguf"), "make it first"),
        ((letters, tmp_path / "m.gguf"), "byte-level BPE"),
        ((novel, tmp_path / "out", "--to", "huggingface", "--precision", "int8"), "for --to gguf"),
        ((novel, tmp_path / "out", "--to", "tensorflow"), "wanted one of huggingface, gguf"),
    ):
        done = here("export", *words)
        assert (done.returncode, done.stderr.count("\n"), message in done.stderr) == (2, 1, True), done.stderr


@pytest.mark.prove
@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("name", ["gpt2", "llama", "llama3", "qwen2"])
def test_llama_cpp_generates_the_same_tokens(name, precision, tokenizer, tmp_path):
    """In float32 the same. Quantized, of two tokens that are about as good llama.cpp may take the other: it rounds
    activations, and the KV cache, in another way."""
    import json
    import os

    python = os.environ.get("REGARD_LLAMA_CPP", sys.executable)
    if python == sys.executable and importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed; REGARD_LLAMA_CPP names the Python of an environment with it")
    write_gguf(loud(CONFIGS[name]), tokenizer, tmp_path / "m.gguf", precision)
    prompt, count = tokenizer.encode("the cat sat on"), 20
    done = subprocess.run(
        [python, "-c", LLAMA_CPP, str(tmp_path / "m.gguf"), json.dumps(prompt), str(count), TEXT],
        capture_output=True,
        text=True,
        check=True,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    ids, found = json.loads(done.stdout.splitlines()[-1])
    assert ids == tokenizer.encode(TEXT)
    model = huggingface.load(tmp_path / "m.gguf", packed=True).model
    if precision == "float32":
        wanted = generate(model, [prompt], Greedy(), Limits([count]))[0][0].tokens  # perhaps up to its end token
        assert found[: len(wanted)] == wanted
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt, *found]]))[0, len(prompt) - 1 : -1]
    below_best = logits.amax(-1) - logits.gather(1, torch.tensor(found)[:, None])[:, 0]
    assert below_best.max() <= BELOW_BEST[precision]
