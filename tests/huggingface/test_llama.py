"""Llama and Qwen2 folders: the logits of `transformers`, both ways, and every fault named."""

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from regard import huggingface
from regard.errors import FolderError
from regard.files import write_folder
from regard.layers.positions import Rotary
from regard.models.llama import Llama, LlamaConfig
from regard.tokenizers.text import TextTokenizer
from tests.huggingface.comparing import assert_same_model

STRETCH = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
SHAPES = {
    "all-heads": ("Llama", {"num_key_value_heads": 4}),
    "grouped": ("Llama", {"num_key_value_heads": 2, "rms_norm_eps": 1e-3}),
    "tied": ("Llama", {"num_key_value_heads": 1, "tie_word_embeddings": True}),
    "stretched": ("Llama", {"num_key_value_heads": 2, "rope_parameters": STRETCH | {"rope_theta": 5000.0}}),
    "qwen2": ("Qwen2", {"num_key_value_heads": 2}),
    "qwen2-tied": ("Qwen2", {"num_key_value_heads": 2, "tie_word_embeddings": True, "rope_theta": 300.0}),
}


def model(family="Llama", **changes):
    small = {
        "vocab_size": 300,
        "hidden_size": 64,
        "intermediate_size": 80,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
        "bos_token_id": None,
        "eos_token_id": 0,
    }
    config = getattr(transformers, f"{family}Config")(**small | changes)
    return getattr(transformers, f"{family}ForCausalLM")(config)


@pytest.fixture(scope="module", params=SHAPES)
def folder(request, tmp_path_factory, make_folder):
    family, changes = SHAPES[request.param]
    return make_folder(tmp_path_factory.mktemp("llama") / "m", model(family, **changes), eos_token_id=[0, 2])


@pytest.fixture(scope="module")
def plain(tmp_path_factory, make_folder):
    return make_folder(tmp_path_factory.mktemp("llama") / "m", model(num_key_value_heads=2))


@pytest.fixture(scope="module")
def qwen2(tmp_path_factory, make_folder):
    return make_folder(tmp_path_factory.mktemp("qwen2") / "m", model("Qwen2", num_key_value_heads=2))


def theirs(folder):
    return AutoModelForCausalLM.from_pretrained(folder).eval()


@torch.no_grad()
def test_the_logits_are_those_of_transformers(folder, ids):
    found = huggingface.load(folder)
    wanted = theirs(folder)(ids).logits
    assert wanted.std() > 0.5
    assert (found.model(ids) - wanted).abs().max() <= 1e-4
    assert (found.kind, found.task, found.tokenizer.eos_ids, found.notes) == ("llama", "language-modeling", (0, 2), [])


@torch.no_grad()
def test_a_cached_step_gives_the_logits_of_transformers(folder, ids):
    found, rows = huggingface.load(folder).model, ids[:, :9]
    state = found.start(rows[:, :-1].tolist())
    found.step(state.first, state)
    logits, _ = found.step(rows[:, -1], state)
    assert (logits - theirs(folder)(rows).logits[:, -1]).abs().max() <= 1e-4


@torch.no_grad()
def test_reading_and_writing_gives_the_same_bits_and_opens(folder, bpe, ids, tmp_path):
    ours = huggingface.load(folder)
    write_folder(tmp_path / "out", huggingface.files("llama", ours.model, ours.tokenizer))
    wanted, found = load_file(folder / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert wanted.keys() == found.keys()
    assert all(torch.equal(weight, found[name]) for name, weight in wanted.items())
    again, report = AutoModelForCausalLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values()), report
    assert type(again) is type(theirs(folder))
    assert again.config.rope_parameters == theirs(folder).config.rope_parameters
    assert torch.equal(again.eval()(ids).logits, theirs(folder)(ids).logits)
    text = " The boy's 12 dogs\n\n  eat<|im_end|>"
    words = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert words(text).input_ids == bpe.encode(text).ids
    assert huggingface.load(tmp_path / "out").model.config == ours.model.config


@torch.no_grad()
@pytest.mark.parametrize("bias", [False, True])
def test_what_we_make_opens_in_transformers(bpe, ids, tmp_path, bias):
    config = LlamaConfig(
        vocab_size=300, context=64, width=32, heads=4, num_kv_heads=2, layers=2, feed_forward=40, qkv_bias=bias
    )
    ours = Llama(config).eval()
    write_folder(tmp_path / "out", huggingface.files("llama", ours, TextTokenizer.load(bpe.to_str().encode())))
    found, report = AutoModelForCausalLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(report.values()), report
    assert found.config.model_type == ("qwen2" if bias else "llama")
    assert (found.eval()(ids).logits - ours(ids)).abs().max() <= 1e-5
    assert AutoTokenizer.from_pretrained(tmp_path / "out").eos_token == "<|endoftext|>"


@torch.no_grad()
def test_the_older_spellings_of_the_angles(plain, copy, edit_json, ids):
    folder = copy(plain)
    rope_scaling = {"type" if key == "rope_type" else key: value for key, value in STRETCH.items()}
    edit_json(folder / "config.json", rope_parameters=None, rope_theta=700.0, rope_scaling=rope_scaling)
    found = huggingface.load(folder).model
    assert (found.config.rope_theta, found.config.rope_scaling.factor, found.config.rope_scaling.original_context) == (
        700.0,
        8.0,
        32,
    )
    assert (found(ids) - theirs(folder)(ids).logits).abs().max() <= 1e-4
    edit_json(folder / "config.json", rope_scaling=None)
    assert huggingface.load(folder).model.config.rope_scaling is None


def test_old_files_hold_the_rates_of_turning(plain, copy, edit):
    folder, name = copy(plain), "model.layers.{}.self_attn.rotary_emb.inv_freq"
    edit(folder, lambda tensors: tensors.update({name.format(n): Rotary(16).frequencies.clone() for n in range(2)}))
    huggingface.load(folder)
    edit(folder, lambda tensors: tensors.update({name.format(1): Rotary(16, 500.0).frequencies.clone()}))
    with pytest.raises(FolderError, match="layers.1.self_attn.rotary_emb.inv_freq differs"):
        huggingface.load(folder)


def test_shards_in_half_precision(plain, copy, tmp_path):
    folder = copy(plain)
    (folder / "model.safetensors").unlink()
    theirs(plain).to(torch.bfloat16).save_pretrained(folder, max_shard_size="30KB")
    shards = list(folder.glob("model-*-of-*.safetensors"))
    assert len(shards) > 3
    wanted, found = (huggingface.load(one).model.state_dict() for one in (plain, folder))
    assert all(torch.equal(weight.bfloat16().float(), found[name]) for name, weight in wanted.items())


def test_what_smollm2_and_qwen2_write_besides_is_no_obstacle(plain, qwen2, copy, edit_json, tmp_path):
    folder = copy(plain)
    edit_json(folder / "config.json", is_llama_config=True, rope_interleaved=False, **{"transformers.js_config": {}})
    assert_same_model(huggingface.load(folder), huggingface.load(plain))
    before = huggingface.load(qwen2)
    edit_json(qwen2 / "config.json", sliding_window=4096, max_window_layers=1, use_mrope=False, head_dim=16)
    assert_same_model(huggingface.load(qwen2), before)


FAULTS = {
    "missing": (
        lambda t: t.pop("model.layers.1.self_attn.k_proj.weight"),
        "no weight model.layers.1.self_attn.k_proj.weight",
    ),
    "extra": (lambda t: t.update(extra=torch.zeros(2)), "a weight extra"),
    "bias": (lambda t: t.update({"model.layers.0.self_attn.q_proj.bias": torch.zeros(64)}), "q_proj.bias that"),
    "shape": (
        lambda t: t.update({"model.layers.0.self_attn.v_proj.weight": torch.zeros(64, 64)}),
        r"v_proj.weight has shape \(64, 64\), wanted \(32, 64\)",
    ),
    "no head": (lambda t: t.pop("lm_head.weight"), "no weight lm_head.weight"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_spoiled_weight_is_named(plain, copy, edit, fault):
    spoil, named = FAULTS[fault]
    folder = copy(plain)
    edit(folder, spoil)
    with pytest.raises(FolderError, match=named):
        huggingface.load(folder)


KEYS = {
    "unknown": ({"experts": 8}, "'experts'"),
    "head": ({"head_dim": 32}, "head_dim is 32, wanted hidden_size / num_attention_heads = 16"),
    "attention bias": ({"attention_bias": True}, "attention_bias is True"),
    "bias": ({"mlp_bias": True}, "mlp_bias is True"),
    "activation": ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
    "heads": ({"num_key_value_heads": 3}, "does not divide"),
    "yarn": ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "rope_parameters.rope_type is 'yarn'"),
    "linear": ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling.rope_type is 'linear'"),
    "partial": ({"rope_parameters": {"partial_rotary_factor": 0.5}}, "rope_parameters.partial_rotary_factor"),
    "half a stretch": ({"rope_scaling": {"rope_type": "llama3", "factor": 2.0}}, "rope_scaling.low_freq_factor"),
    "unknown angle": ({"rope_parameters": {"attention_factor": 2}}, "rope_parameters.attention_factor"),
    "no type": ({"rope_parameters": {"rope_type": [1]}}, "rope_parameters.rope_type is"),
}


@pytest.mark.parametrize("key", KEYS)
def test_what_regard_has_not_is_named(plain, copy, edit_json, key):
    changes, named = KEYS[key]
    folder = copy(plain)
    edit_json(folder / "config.json", **changes)
    with pytest.raises(FolderError, match=named) as error:
        huggingface.load(folder)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    "changes", [{"use_sliding_window": True}, {"layer_types": ["sliding_attention"]}, {"use_mrope": True}]
)
def test_what_regard_has_not_of_qwen2_is_named(qwen2, copy, edit_json, changes):
    folder = copy(qwen2)
    edit_json(folder / "config.json", **changes)
    with pytest.raises(FolderError, match=next(iter(changes))):
        huggingface.load(folder)


def test_every_key_that_transformers_writes_is_known(plain, qwen2):
    for folder in (plain, qwen2):
        path = folder / "config.json"
        config = transformers.AutoConfig.from_pretrained(folder).to_dict()
        before = huggingface.load(folder)
        path.write_text(json.dumps(config | json.loads(path.read_text()), default=str))
        assert_same_model(huggingface.load(folder), before)
