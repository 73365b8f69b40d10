"""BERT folders of all five kinds: the numbers of `transformers`, both ways, and every fault named."""

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoTokenizer

from regard import huggingface
from regard.errors import ConfigError, FolderError
from regard.files import write_folder
from regard.huggingface.folder import Pooling
from regard.models import model_class
from regard.synthetic.translation.sentences import sentences
from regard.tokenizers.wordpiece import WordPieceTokenizer
from tests.huggingface.comparing import assert_same_model

SIZE, PADDING = 300, 0
ARCHITECTURES = {
    "bert": "BertModel",
    "bert-pretraining": "BertForPreTraining",
    "bert-masked-lm": "BertForMaskedLM",
    "bert-sequence-classification": "BertForSequenceClassification",
    "bert-token-classification": "BertForTokenClassification",
}
TASKS = {
    "bert": "embedding",
    "bert-pretraining": "masked-lm",
    "bert-masked-lm": "masked-lm",
    "bert-sequence-classification": "classification",
    "bert-token-classification": "tagging",
}
SHAPES = {
    "plain": {},
    "other": {
        "num_attention_heads": 2,
        "num_hidden_layers": 3,
        "intermediate_size": 50,
        "hidden_act": "relu",
        "layer_norm_eps": 1e-3,
        "type_vocab_size": 3,
        "vocab_size": 320,
        "num_labels": 5,
    },
    "gelu_new": {"hidden_act": "gelu_new", "num_hidden_layers": 1, "num_labels": 1},
}
EVERY = [(kind, shape) for kind in ARCHITECTURES for shape in SHAPES]


@pytest.fixture(scope="module")
def words():
    return WordPieceTokenizer.train([pair.source for pair in sentences(500)], SIZE)


@pytest.fixture(scope="module")
def make(words):
    """A folder of a random model, its weights scaled up so that differences would show."""

    def make(folder, kind, **changes):
        facts = {"vocab_size": SIZE, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
        facts |= {"intermediate_size": 96, "max_position_embeddings": 40} | changes
        model = getattr(transformers, ARCHITECTURES[kind])(transformers.BertConfig(**facts)).eval()
        torch.manual_seed(1)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.normal_(mean=float("LayerNorm.weight" in name), std=0.2)
        model.save_pretrained(folder)
        for name, content in words.to_files().items():
            (folder / name).write_bytes(content)
        return folder

    return make


@pytest.fixture(scope="module")
def folders(make, tmp_path_factory):
    """Each kind in each shape, made when first asked for."""
    made = {}

    def folder(kind, shape="plain"):
        if (kind, shape) not in made:
            made[kind, shape] = make(tmp_path_factory.mktemp("bert") / "m", kind, **SHAPES[shape])
        return made[kind, shape]

    return folder


@pytest.fixture(scope="module")
def rows():
    """Ids of pairs, the second row padded."""
    found = torch.randint(5, SIZE, (3, 30), generator=torch.Generator().manual_seed(3))
    found[1, 20:] = PADDING
    segment_ids = torch.zeros_like(found)
    segment_ids[:, 12:20] = 1
    return found, segment_ids


def theirs(folder, kind):
    return getattr(transformers, ARCHITECTURES[kind]).from_pretrained(folder).eval()


@torch.no_grad()
def outputs_of_theirs(model, ids, segment_ids):
    found = model(ids, attention_mask=(ids != PADDING).long(), token_type_ids=segment_ids, output_hidden_states=True)
    names = ("last_hidden_state", "pooler_output", "logits", "prediction_logits", "seq_relationship_logits")
    heads = [found[name] for name in names if found.get(name) is not None]
    return found.hidden_states[-1], heads


@torch.no_grad()
def outputs_of_ours(model, ids, segment_ids):
    found = model(ids, segment_ids)
    heads = [found] if torch.is_tensor(found) else [one for one in found if one is not None]
    return model.encode(ids, segment_ids).hidden, heads


def real(tensor, ids):
    """Without the places of padding, where nothing is promised."""
    return tensor[ids != PADDING] if tensor.shape[:2] == ids.shape else tensor


def assert_same_numbers(ours, wanted, rows):
    ids, _ = rows
    (words, heads), (their_words, their_heads) = outputs_of_ours(ours, *rows), outputs_of_theirs(wanted, *rows)
    assert their_words.std() > 0.5
    assert len(heads) == len(their_heads)
    for one, other in zip([words, *heads], [their_words, *their_heads], strict=True):
        assert (real(one, ids) - real(other, ids)).abs().max() <= 1e-5


@pytest.mark.parametrize(("kind", "shape"), EVERY)
def test_the_numbers_are_those_of_transformers(folders, rows, kind, shape):
    found = huggingface.load(folders(kind, shape))
    assert_same_numbers(found.model, theirs(folders(kind, shape), kind), rows)
    assert (found.kind, found.task, found.notes, found.pooling) == (kind, TASKS[kind], [], Pooling())
    assert not found.model.training


@pytest.mark.parametrize(("kind", "shape"), EVERY)
def test_reading_and_writing_gives_the_same_bits_and_opens(folders, rows, words, tmp_path, kind, shape):
    folder, out = folders(kind, shape), tmp_path / "out"
    ours = huggingface.load(folder)
    write_folder(out, huggingface.files(kind, ours.model, ours.tokenizer))
    wanted, found = load_file(folder / "model.safetensors"), load_file(out / "model.safetensors")
    assert wanted.keys() == found.keys()
    assert all(torch.equal(weight, found[name]) for name, weight in wanted.items())
    name = json.loads((out / "config.json").read_text())["architectures"][0]
    again, report = getattr(transformers, name).from_pretrained(out, output_loading_info=True)
    assert not any(report.values()), report
    for one, other in zip(
        outputs_of_theirs(again.eval(), *rows)[1], outputs_of_theirs(theirs(folder, kind), *rows)[1], strict=True
    ):
        assert torch.equal(one, other)
    text = "The boy eats unbelievable 12 dogs."
    assert AutoTokenizer.from_pretrained(out)(text).input_ids == words.encode(text).ids
    assert AutoTokenizer.from_pretrained(out).model_max_length == 40
    assert_same_model(huggingface.load(out), ours)


FACTS = {"vocab_size": SIZE, "context": 40, "width": 32, "heads": 2, "layers": 2}
LABELS = {
    "bert-sequence-classification": ("good", "bad", "so so"),
    "bert-token-classification": ("O", "B-PER", "I-PER"),
}


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_what_we_make_opens_in_transformers(words, rows, tmp_path, kind):
    labels = {"labels": LABELS[kind]} if kind in LABELS else {}
    special_ids = {name: getattr(words, name) for name in ("pad_id", "bos_id", "eos_id", "mask_id")}
    facts = model_class(kind).config_class(**FACTS, **labels, activation="swish", special_ids=special_ids)
    ours = model_class(kind)(facts).eval()
    write_folder(tmp_path / "out", huggingface.files(kind, ours, words))
    found = theirs(tmp_path / "out", kind)
    assert_same_numbers(ours, found, rows)
    if labels:
        assert tuple(found.config.id2label.values()) == LABELS[kind]
    assert huggingface.load(tmp_path / "out").model.config == facts.model_copy(update={"feed_forward": 128})


def test_a_score_stays_a_score_and_one_class_is_not_written_as_one(words, tmp_path):
    special_ids = {name: getattr(words, name) for name in ("pad_id", "bos_id", "eos_id", "mask_id")}
    model = model_class("bert-sequence-classification")
    config = model.config_class
    score, one = (model(config(**FACTS, labels=labels, special_ids=special_ids)) for labels in ((), ("only",)))
    write_folder(tmp_path / "out", huggingface.files("bert-sequence-classification", score, words))
    found = theirs(tmp_path / "out", "bert-sequence-classification").config
    assert (found.num_labels, found.problem_type) == (1, "regression")
    assert huggingface.load(tmp_path / "out").model.config.labels == ()
    with pytest.raises(ConfigError, match=r"one class \(only\) cannot be exported"):
        huggingface.files("bert-sequence-classification", one, words)


# ------------------------------------------------ files of other times


def old_names(tensors):
    for name in list(tensors):
        new = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        tensors[new] = tensors.pop(name)


def without_prefix(tensors):
    for name in list(tensors):
        tensors[name.removeprefix("bert.")] = tensors.pop(name)


def with_prefix(tensors):
    for name in list(tensors):
        tensors[f"bert.{name}"] = tensors.pop(name)


def buffers(tensors):
    prefix = "bert." if any(name.startswith("bert.") for name in tensors) else ""
    tensors[f"{prefix}embeddings.position_ids"] = torch.arange(40)[None]
    tensors[f"{prefix}embeddings.token_type_ids"] = torch.zeros(1, 40, dtype=torch.long)


def copies(tensors):
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
    tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()


def only_the_copy(tensors):
    tensors["cls.predictions.decoder.bias"] = tensors.pop("cls.predictions.bias")


SPELLINGS = [
    *((kind, change) for kind in ARCHITECTURES for change in (old_names, buffers)),
    *((kind, without_prefix) for kind in ARCHITECTURES if kind != "bert"),
    ("bert", with_prefix),
    *((kind, change) for kind in ("bert-pretraining", "bert-masked-lm") for change in (copies, only_the_copy)),
]


@pytest.mark.parametrize(("kind", "change"), SPELLINGS, ids=lambda one: getattr(one, "__name__", one))
def test_other_spellings_of_the_same_file(folders, copy, edit, kind, change):
    folder = copy(folders(kind))
    edit(folder, change)
    assert_same_model(huggingface.load(folder), huggingface.load(folders(kind)))


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_without_a_word_on_architecture_the_weights_say_it(folders, copy, edit_json, kind):
    folder = copy(folders(kind))
    edit_json(folder / "config.json", architectures=None)
    assert_same_model(huggingface.load(folder), huggingface.load(folders(kind)))


@pytest.mark.parametrize("said", ["BertForMaskedLM", "BertModel"])
def test_a_file_with_more_heads_than_it_says_is_what_it_holds(folders, copy, edit_json, said):
    folder = copy(folders("bert-pretraining"))
    edit_json(folder / "config.json", architectures=[said])
    found = huggingface.load(folder)
    assert found.kind == "bert-pretraining"
    assert_same_model(found, huggingface.load(folders("bert-pretraining")))


@pytest.mark.parametrize("kind", ["bert-masked-lm", "bert-token-classification"])
def test_a_pooler_without_use_is_left_out_and_named(folders, copy, edit, kind):
    folder = copy(folders(kind))
    more = {"bert.pooler.dense.weight": torch.ones(48, 48), "bert.pooler.dense.bias": torch.ones(48)}
    edit(folder, lambda tensors: tensors.update(more))
    found = huggingface.load(folder)
    assert_same_model(found, huggingface.load(folders(kind)))
    (note,) = found.notes
    assert "bert.pooler.dense.bias and bert.pooler.dense.weight are left out" in note


@torch.no_grad()
def test_an_encoder_without_pooler(folders, copy, edit, rows):
    folder = copy(folders("bert"))
    edit(folder, lambda tensors: [tensors.pop(f"pooler.dense.{part}") for part in ("weight", "bias")])
    found = huggingface.load(folder).model
    assert not found.config.pooler
    assert found(*rows).pooled is None
    assert torch.equal(found(*rows).hidden, huggingface.load(folders("bert")).model(*rows).hidden)
    write_folder(folder.parent / "out", huggingface.files("bert", found, huggingface.load(folder).tokenizer))
    assert not huggingface.load(folder.parent / "out").model.config.pooler


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_single(folders, copy, edit, kind):
    folder = copy(folders("bert"))
    edit(folder, lambda tensors: tensors.update({name: weight.to(kind) for name, weight in tensors.items()}))
    assert {weight.dtype for weight in huggingface.load(folder).model.parameters()} == {torch.float32}


def test_old_and_inert_keys_are_no_obstacle(folders, copy, edit_json):
    folder = copy(folders("bert"))
    old = {"directionality": "bidi", "pooler_fc_size": 768, "pooler_type": "first_token_transform", "cell": {}}
    old |= {"gradient_checkpointing": False, "num_beams": 1, "do_sample": False, "position_embedding_type": "absolute"}
    edit_json(folder / "config.json", **old, classifier_dropout=None, is_decoder=False, output_past=True)
    assert_same_model(huggingface.load(folder), huggingface.load(folders("bert")))


# ------------------------------------------------ labels

NAMED = {"id2label": {"0": "bad", "1": "good"}, "label2id": {"good": 1, "bad": 0}}
LABELED = {
    "by name": (NAMED, ("bad", "good")),
    "one way only": ({"id2label": {"1": "good", "0": "bad"}, "label2id": None}, ("bad", "good")),
    "the other way only": ({"id2label": None, "label2id": {"good": 1, "bad": 0}}, ("bad", "good")),
    "by number": ({"id2label": None, "label2id": None, "num_labels": 2}, ("LABEL_0", "LABEL_1")),
    "not at all": ({"id2label": None, "label2id": None}, ("LABEL_0", "LABEL_1")),
    "one of them": ({**NAMED, "problem_type": "single_label_classification"}, ("bad", "good")),
}


@pytest.mark.parametrize("kind", ["bert-sequence-classification", "bert-token-classification"])
@pytest.mark.parametrize("case", LABELED)
def test_labels_have_their_names(folders, copy, edit_json, kind, case):
    changes, wanted = LABELED[case]
    folder = copy(folders(kind))
    edit_json(folder / "config.json", **changes)
    assert huggingface.load(folder).model.config.labels == wanted


def test_one_label_is_a_score_but_for_a_tagger(folders):
    assert huggingface.load(folders("bert-sequence-classification", "gelu_new")).model.config.labels == ()
    assert huggingface.load(folders("bert-token-classification", "gelu_new")).model.config.labels == ("LABEL_0",)


# ------------------------------------------------ faults

FAULTS = {
    "missing": (
        "bert",
        lambda t: t.pop("encoder.layer.1.attention.self.key.bias"),
        "no weight encoder.layer.1.attention.self.key.bias",
    ),
    "no head": ("bert-sequence-classification", lambda t: t.pop("classifier.bias"), "no weight classifier.bias"),
    "half a pooler": ("bert", lambda t: t.pop("pooler.dense.bias"), "no weight pooler.dense.bias"),
    "no word head": (
        "bert-masked-lm",
        lambda t: [t.pop(name) for name in list(t) if name.startswith("cls.")],
        "no weight cls.predictions.transform.dense.weight",
    ),
    "no next": (
        "bert-pretraining",
        lambda t: t.pop("cls.seq_relationship.weight"),
        "no weight cls.seq_relationship.weight",
    ),
    "extra": ("bert", lambda t: t.update(extra=torch.zeros(2)), "a weight extra"),
    "a layer too many": (
        "bert",
        lambda t: t.update({"encoder.layer.2.output.dense.bias": torch.zeros(48)}),
        "a weight encoder.layer.2.output.dense.bias",
    ),
    "another head": (
        "bert-masked-lm",
        lambda t: t.update({"qa_outputs.weight": torch.zeros(2, 48)}),
        "a weight qa_outputs.weight",
    ),
    "shape": (
        "bert-token-classification",
        lambda t: t.update({"classifier.weight": torch.zeros(3, 48)}),
        r"classifier.weight has shape \(3, 48\), wanted \(2, 48\)",
    ),
    "other table": (
        "bert-masked-lm",
        lambda t: t.update({"cls.predictions.decoder.weight": torch.ones(SIZE, 48)}),
        "cls.predictions.decoder.weight differs",
    ),
    "other bias": (
        "bert-pretraining",
        lambda t: t.update({"cls.predictions.decoder.bias": torch.ones(SIZE)}),
        "cls.predictions.decoder.bias differs",
    ),
    "whole numbers": (
        "bert",
        lambda t: t.update({"pooler.dense.bias": torch.zeros(48, dtype=torch.int8)}),
        "pooler.dense.bias is torch.int8, wanted floating point",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_spoiled_weight_is_named(folders, copy, edit, fault):
    kind, spoil, named = FAULTS[fault]
    folder = copy(folders(kind))
    edit(folder, spoil)
    with pytest.raises(FolderError, match=named):
        huggingface.load(folder)


NAMED_BY_NUMBER = {"0": "LABEL_0", "1": "LABEL_1"}
KEYS = {
    "unknown": ({"rotary": True}, "'rotary'"),
    "relative": ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
    "decoder": ({"is_decoder": True}, "is_decoder is True"),
    "cross": ({"add_cross_attention": True}, "add_cross_attention is True"),
    "untied": ({"tie_word_embeddings": False}, "tie_word_embeddings is False"),
    "activation": ({"hidden_act": "mish"}, "hidden_act is 'mish'"),
    "heads": ({"num_attention_heads": 5}, "does not divide"),
    "quantized": ({"quantization_config": {"bits": 4}}, "quantization_config"),
    "small": ({"vocab_size": 200}, r"the tokenizer has \d+ tokens, the model only 200 ids"),
    "questions": (
        {"architectures": ["BertForQuestionAnswering"]},
        "architectures is BertForQuestionAnswering, wanted one of BertModel, BertForPreTraining",
    ),
    "several": ({"problem_type": "multi_label_classification"}, "'multi_label_classification' with 2 labels"),
    "vector": ({"problem_type": "regression"}, "'regression' with 2 labels"),
    "disagree": ({"label2id": {"LABEL_0": 1, "LABEL_1": 0}}, "label2id is .* but id2label says"),
    "twice": ({"id2label": {"0": "A", "1": "A"}, "label2id": {"A": 0}}, "do not number the labels"),
    "a gap": ({"id2label": {"0": "A", "2": "B"}, "label2id": None}, "do not number the labels"),
    "no number": ({"id2label": {"0": "A", "x": "B"}, "label2id": None}, "do not number the labels"),
    "too few": ({"num_labels": 3}, "do not number the labels"),
}


@pytest.mark.parametrize("key", KEYS)
def test_what_regard_has_not_is_named(folders, copy, edit_json, key):
    changes, named = KEYS[key]
    folder = copy(folders("bert-sequence-classification"))
    edit_json(folder / "config.json", **{"id2label": NAMED_BY_NUMBER, "label2id": None} | changes)
    with pytest.raises(FolderError, match=named) as error:
        huggingface.load(folder)
    assert len(str(error.value).splitlines()) == 1


def test_a_folder_without_tokenizer_is_named_when_it_is_given_text(folders, copy):
    folder = copy(folders("bert"))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(FolderError, match="has no tokenizer"):
        huggingface.load(folder).tokenizer.encode("a text")


def test_a_pickle_is_refused_with_the_way_out(folders, copy):
    folder = copy(folders("bert-masked-lm"))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FolderError, match=r"a pickle.*transformers\.BertForMaskedLM\.from_pretrained"):
        huggingface.load(folder)
