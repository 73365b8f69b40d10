"""A folder without a tokenizer opens for ids; only a text needs one."""

import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

import regard
from regard.errors import FolderError

IDS = torch.tensor([[5, 6, 7, 8]])


@torch.no_grad()
def test_a_bert_without_a_tokenizer_takes_ids(tmp_path):
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    theirs = BertModel(BertConfig(vocab_size=60, **sizes)).eval()
    theirs.save_pretrained(tmp_path)
    ours = regard.load(tmp_path)
    wanted = theirs(IDS).last_hidden_state
    assert torch.allclose(ours.model(IDS, torch.zeros_like(IDS)).hidden, wanted, atol=1e-5)
    with pytest.raises(FolderError, match=r"has no tokenizer; wanted tokenizer.json or vocab.txt. The model opens"):
        ours.embed(["a text"])


@torch.no_grad()
def test_a_gpt2_without_a_tokenizer_takes_ids(tmp_path):
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=60, n_embd=16, n_layer=1, n_head=2, n_positions=32)).eval()
    theirs.config.eos_token_id = theirs.config.bos_token_id = None
    theirs.generation_config.eos_token_id = theirs.generation_config.bos_token_id = None
    theirs.save_pretrained(tmp_path)
    ours = regard.load(tmp_path)
    assert torch.allclose(ours.model(IDS), theirs(IDS).logits, atol=1e-5)
    with pytest.raises(FolderError, match="has no tokenizer; wanted tokenizer.json, or vocab.json and merges.txt"):
        ours.run("a text")
