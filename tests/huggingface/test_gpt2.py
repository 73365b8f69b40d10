"""GPT-2 folders: the logits of `transformers`, both ways, and every fault named."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

from regard import huggingface
from regard.errors import ConfigError, FolderError
from regard.files import write_folder
from regard.models.gpt import GPT, GPTConfig
from regard.tokenizers.text import TextTokenizer
from tests.huggingface.comparing import assert_same_model

SHAPES = {
    "tied": {},
    "wide-relu": {"n_inner": 50, "n_head": 2, "n_layer": 3, "activation_function": "relu"},
    "untied-gelu": {"tie_word_embeddings": False, "activation_function": "gelu", "layer_norm_epsilon": 1e-3},
    "swish": {"activation_function": "silu", "n_layer": 1, "vocab_size": 320},
}


def model(**changes):
    small = {"vocab_size": 300, "n_positions": 64, "n_embd": 48, "n_layer": 2, "n_head": 4}
    return GPT2LMHeadModel(GPT2Config(**small | {"bos_token_id": 0, "eos_token_id": 0} | changes))


@pytest.fixture(scope="module", params=SHAPES)
def folder(request, tmp_path_factory, make_folder):
    return make_folder(tmp_path_factory.mktemp("gpt2") / "m", model(**SHAPES[request.param]), eos_token_id=[0, 2])


@pytest.fixture(scope="module")
def plain(tmp_path_factory, make_folder):
    return make_folder(tmp_path_factory.mktemp("gpt2") / "m", model())


def theirs(folder):
    return AutoModelForCausalLM.from_pretrained(folder).eval()


@torch.no_grad()
def test_the_logits_are_those_of_transformers(folder, ids):
    found = huggingface.load(folder)
    wanted = theirs(folder)(ids).logits
    assert wanted.std() > 0.5
    assert (found.model(ids) - wanted).abs().max() <= 1e-4
    assert (found.kind, found.task, found.tokenizer.eos_ids, found.notes) == ("gpt", "language-modeling", (0, 2), [])


@torch.no_grad()
def test_reading_and_writing_gives_the_same_bits_and_opens(folder, bpe, ids, tmp_path):
    ours = huggingface.load(folder)
    write_folder(tmp_path / "out", huggingface.files("gpt", ours.model, ours.tokenizer))
    wanted, found = load_file(folder / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert wanted.keys() == found.keys()
    assert all(torch.equal(weight, found[name]) for name, weight in wanted.items())
    again, report = AutoModelForCausalLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values()), report
    assert torch.equal(again.eval()(ids).logits, theirs(folder)(ids).logits)
    assert again.generation_config.eos_token_id == [0, 2]
    text = " The boy's 12 dogs\n\n  eat<|im_end|>"
    words = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert words(text).input_ids == bpe.encode(text).ids
    assert words.chat_template == "{{ 1 }}"
    assert huggingface.load(tmp_path / "out").model.config == ours.model.config


@torch.no_grad()
def test_what_we_make_opens_in_transformers(bpe, ids, tmp_path):
    ours = GPT(GPTConfig(vocab_size=300, context=64, width=32, heads=2, layers=2, activation="gelu_tanh")).eval()
    tokenizer = TextTokenizer.load(bpe.to_str().encode())
    write_folder(tmp_path / "out", huggingface.files("gpt", ours, tokenizer))
    found, report = AutoModelForCausalLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values()), report
    assert (found.eval()(ids).logits - ours(ids)).abs().max() <= 1e-5
    assert AutoTokenizer.from_pretrained(tmp_path / "out").eos_token == "<|endoftext|>"


def test_old_files_without_prefix_with_masks_and_a_copy_of_the_head(plain, copy, edit):
    folder = copy(plain)

    def age(tensors):
        for name in list(tensors):
            tensors[name.removeprefix("transformer.")] = tensors.pop(name)
        for number in range(2):
            tensors[f"h.{number}.attn.bias"] = torch.ones(64, 64).tril().bool()[None, None]
            tensors[f"h.{number}.attn.masked_bias"] = torch.tensor(-1e4)
        tensors["lm_head.weight"] = tensors["wte.weight"].clone()

    edit(folder, age)
    wanted = huggingface.load(plain).model.state_dict()
    found = huggingface.load(folder).model.state_dict()
    assert all(torch.equal(weight, found[name]) for name, weight in wanted.items())


def test_a_long_context_without_masks_builds_no_mask(tmp_path, make_folder):
    found = huggingface.load(make_folder(tmp_path / "m", model(n_positions=1_000_000, n_embd=4, n_head=1, n_layer=1)))
    assert found.model.config.context == 1_000_000  # its mask would have 10¹² numbers


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_single(plain, copy, edit, kind):
    folder = copy(plain)
    edit(folder, lambda tensors: tensors.update({name: weight.to(kind) for name, weight in tensors.items()}))
    assert {weight.dtype for weight in huggingface.load(folder).model.parameters()} == {torch.float32}


def test_old_and_inert_keys_are_no_obstacle(plain, copy, edit_json):
    folder = copy(plain)
    old = {"n_ctx": 64, "n_special": 0, "predict_special_tokens": True, "_num_labels": 1, "id2label": {"0": "A"}}
    edit_json(folder / "config.json", **old, reorder_and_upcast_attn=True, task_specific_params={"a": {"b": 1}})
    assert_same_model(huggingface.load(folder), huggingface.load(plain))


def test_settings_that_are_not_followed_are_named_one_by_one(plain, copy, edit_json):
    folder = copy(plain)
    edit_json(folder / "generation_config.json", do_sample=True, temperature=0.6, top_p=1.0, max_new_tokens=None)
    notes = huggingface.load(folder).notes
    assert [note.split(": ", 1)[1] for note in notes] == [
        "do_sample is True: ignored by default",
        "temperature is 0.6: ignored by default",
    ]
    (folder / "generation_config.json").unlink()
    edit_json(folder / "config.json", do_sample=True, eos_token_id=2)
    found = huggingface.load(folder)
    assert (len(found.notes), found.tokenizer.eos_ids) == (1, (2,))


FAULTS = {
    "missing": (lambda t: t.pop("transformer.h.1.mlp.c_fc.bias"), "no weight transformer.h.1.mlp.c_fc.bias"),
    "extra": (lambda t: t.update(extra=torch.zeros(2)), "a weight extra"),
    "shape": (
        lambda t: t.update({"transformer.h.0.attn.c_attn.weight": torch.zeros(144, 48)}),
        r"c_attn.weight has shape \(144, 48\), wanted \(48, 144\)",
    ),
    "other head": (lambda t: t.update({"lm_head.weight": torch.ones(300, 48)}), "lm_head.weight differs"),
    "other mask": (
        lambda t: t.update({"transformer.h.0.attn.bias": torch.ones(1, 1, 64, 64)}),
        "h.0.attn.bias differs",
    ),
    "mask of another size": (
        lambda t: t.update({"transformer.h.0.attn.bias": torch.ones(1, 1, 32, 32).tril()}),
        "h.0.attn.bias differs",
    ),
    "empty mask": (
        lambda t: t.update({"transformer.h.0.attn.bias": torch.ones(1, 0, 64, 64)}),
        "h.0.attn.bias differs",
    ),
    "whole numbers": (
        lambda t: t.update({"transformer.ln_f.bias": torch.zeros(48, dtype=torch.int8)}),
        "ln_f.bias is torch.int8, wanted floating point",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_spoiled_weight_is_named(plain, copy, edit, fault):
    spoil, named = FAULTS[fault]
    folder = copy(plain)
    edit(folder, spoil)
    with pytest.raises(FolderError, match=named):
        huggingface.load(folder)


KEYS = {
    "rotary": ({"rotary": True}, "'rotary'"),
    "cross": ({"add_cross_attention": True}, "add_cross_attention is True"),
    "inverse": ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
    "unscaled": ({"scale_attn_weights": False}, "scale_attn_weights"),
    "activation": ({"activation_function": "tanh"}, "activation_function is 'tanh'"),
    "heads": ({"n_head": 5}, "does not divide"),
    "quantized": ({"quantization_config": {"bits": 4}}, "quantization_config"),
    "small": ({"vocab_size": 299}, "the tokenizer has 300 tokens, the model only 299 ids"),
    "family": ({"model_type": "gptj"}, "'gptj', wanted one of marian, .*gpt2, llama, qwen2"),
}


@pytest.mark.parametrize("key", KEYS)
def test_what_regard_has_not_is_named(plain, copy, edit_json, key):
    changes, named = KEYS[key]
    folder = copy(plain)
    edit_json(folder / "config.json", **changes)
    with pytest.raises(FolderError, match=named) as error:
        huggingface.load(folder)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("end", ["x", 300, True, [0, -1], 1 << 40])
def test_an_end_that_is_no_id_is_named(plain, copy, edit_json, end):
    folder = copy(plain)
    edit_json(folder / "generation_config.json", eos_token_id=end)
    with pytest.raises(FolderError, match="eos_token_id is"):
        huggingface.load(folder)


def test_weights_in_shards(plain, copy):
    folder = copy(plain)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: f"model-0000{1 + number % 2}-of-00002.safetensors" for number, name in enumerate(tensors)}
    for file in set(places.values()):
        save_file({name: tensors[name] for name in tensors if places[name] == file}, folder / file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    wanted, found = (huggingface.load(one).model.state_dict() for one in (plain, folder))
    assert all(torch.equal(weight, found[name]) for name, weight in wanted.items())
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(FolderError, match="model-00002-of-00002.safetensors"):
        huggingface.load(folder)


@pytest.mark.parametrize("places", [["model.safetensors"], {"a": 3}, {"a": None}, {"a": ["b"]}, "a", None])
def test_an_index_that_is_no_table_is_named(plain, copy, places):
    folder = copy(plain)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    with pytest.raises(FolderError, match="model.safetensors.index.json: weight_map must map"):
        huggingface.load(folder)


def test_a_pickle_is_refused_with_the_way_out(plain, copy):
    folder = copy(plain)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FolderError, match=r"a pickle.*transformers\.GPT2LMHeadModel\.from_pretrained"):
        huggingface.load(folder)


def test_a_kind_without_counterpart_is_named():
    with pytest.raises(ConfigError, match="a rnn has no counterpart.*wanted one of transformer, .*gpt, llama"):
        huggingface.files("rnn", None, None)
