"""What two loaded folders must have in common to be the same model."""

import torch


def assert_same_model(found, wanted):
    assert found.model.config == wanted.model.config
    ours, theirs = found.model.state_dict(), wanted.model.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())
    assert found.tokenizer.to_json() == wanted.tokenizer.to_json()
