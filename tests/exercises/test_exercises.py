"""Exercises: the skeleton fails, a solution passes, typical wrong solutions get a message that names the mistake."""

import json
import math

import pytest
import torch
from typer.testing import CliRunner

from regard.cli import app
from regard.errors import InputError
from regard.exercises import EXERCISES, find
from regard.exercises.exercise import judge
from tests.docs.test_pages import LECTURES

# A solution as a student would write it, and wrong ones with a part of the message that each must get.
ANSWERS: dict[str, tuple[str, dict[str, str]]] = {
    "softmax": (
        "e = (scores - scores.amax(-1, keepdim=True)).exp()\n    return e / e.sum(-1, keepdim=True)",
        {
            "return scores / scores.sum(-1, keepdim=True)": "without exp",
            "return scores.exp() / scores.exp().sum()": "over all scores",
            "return scores.exp()": "not divided by their sum",
            "return scores.exp() / scores.exp().sum(-1, keepdim=True)": "a score of 1,000 overflows",
        },
    ),
    "attention": (
        "s = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])\n    return s.softmax(-1) @ value",
        {
            "return (query @ key.mT).softmax(-1) @ value": "not divided by √d",
            "return (query @ key.mT / key.shape[-1]).softmax(-1) @ value": "divided by d, not by √d",
            "return (query @ key.mT / key.shape[-1] ** 0.5).softmax(-2) @ value": "over the queries",
            "return query @ key.mT / key.shape[-1] ** 0.5 @ value": "softmax is missing",
            "return query @ value": "RuntimeError at line",
        },
    ),
    "mask": (
        "hidden = torch.ones_like(scores).triu(1).bool()\n    return scores.masked_fill(hidden, -math.inf).softmax(-1)",
        {
            "return scores.softmax(-1)": "there is no mask",
            "return scores.softmax(-1).tril()": "set to 0 after softmax",
            "return scores.tril().softmax(-1)": "multiplied by the mask",
            "return scores.masked_fill(torch.ones_like(scores).tril(-1).bool(), -math.inf).softmax(-1)": "turned round",
        },
    ),
    "multi-head": (
        "b, t, d = query.shape\n"
        "    q, k, v = (x.view(b, t, heads, d // heads).transpose(1, 2) for x in (query, key, value))\n"
        "    y = (q @ k.mT / math.sqrt(d // heads)).softmax(-1) @ v\n"
        "    return y.transpose(1, 2).reshape(b, t, d)",
        {
            "return (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1) @ value": "one head only",
            "b, t, d = query.shape\n"
            "    q, k, v = (x.view(b, t, heads, d // heads).transpose(1, 2) for x in (query, key, value))\n"
            "    return ((q @ k.mT / math.sqrt(d)).softmax(-1) @ v).transpose(1, 2).reshape(b, t, d)": "divided by √D",
            "b, t, d = query.shape\n"
            "    q, k, v = (x.view(b, t, heads, d // heads).transpose(1, 2) for x in (query, key, value))\n"
            "    return ((q @ k.mT / math.sqrt(d // heads)).softmax(-1) @ v).reshape(b, t, d)": "transpose back",
        },
    ),
    "cross-attention": (
        "q, k, v = hidden @ to_query, memory @ to_key, memory @ to_value\n"
        "    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v",
        {
            "q, k, v = hidden @ to_query, hidden @ to_key, hidden @ to_value\n"
            "    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v": "attends to itself",
            "q, k, v = memory @ to_query, hidden @ to_key, hidden @ to_value\n"
            "    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v": "exchanged",
            "q, k, v = hidden @ to_query, memory @ to_key, hidden @ to_value\n"
            "    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v": "values come from the decoder",
        },
    ),
    "kv-cache": (
        "k, v = torch.cat([keys, key], 1), torch.cat([values, value], 1)\n"
        "    return (query @ k.mT / math.sqrt(k.shape[-1])).softmax(-1) @ v",
        {
            "return (query @ keys.mT / math.sqrt(keys.shape[-1])).softmax(-1) @ values": "does not see itself",
            "return value": "sees itself alone",
            "k, v = torch.cat([keys, key], 1), torch.cat([value, values], 1)\n"
            "    return (query @ k.mT / math.sqrt(k.shape[-1])).softmax(-1) @ v": "different orders",
        },
    ),
    "positions": (
        "a = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)\n"
        "    t = torch.zeros(length, width)\n    t[:, 0::2], t[:, 1::2] = a.sin(), a.cos()\n    return t",
        {
            "a = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)\n"
            "    return torch.cat([a.sin(), a.cos()], 1)": "all sines stand before all cosines",
            "a = torch.arange(length)[:, None] * 10000 ** (torch.arange(0, width, 2) / width)\n"
            "    return torch.stack([a.sin(), a.cos()], -1).flatten(1)": "frequencies rise",
            "a = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)\n"
            "    return torch.stack([a.cos(), a.sin()], -1).flatten(1)": "exchanged",
        },
    ),
    "layer-norm": (
        "m = x.mean(-1, keepdim=True)\n    v = ((x - m) ** 2).mean(-1, keepdim=True)\n"
        "    return gain * (x - m) / torch.sqrt(v + 1e-5) + bias",
        {
            "m = x.mean(-1, keepdim=True)\n"
            "    return gain * (x - m) / (((x - m) ** 2).sum(-1, keepdim=True) + 1e-5) ** 0.5 + bias": "slide's slip",
            "m = x.mean(-1, keepdim=True)\n"
            "    return gain * (x - m) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5) + bias": "divides by D",
            "return gain * x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) + bias": "RMS norm",
        },
    ),
    "feed-forward": (
        "return torch.relu(x @ w1 + b1) @ w2 + b2",
        {
            "return (x @ w1 + b1) @ w2 + b2": "activation is missing",
            "return torch.relu(torch.relu(x @ w1 + b1) @ w2 + b2)": "at the end too",
            "return torch.relu(x @ w1) @ w2 + b2": "first bias is missing",
        },
    ),
    "block": (
        "x = x + attention(norm(x))\n    return x + feed_forward(norm(x))",
        {
            "x = norm(x + attention(x))\n    return norm(x + feed_forward(x))": "post-norm",
            "return feed_forward(norm(attention(norm(x))))": "residual connections are missing",
            "return x + attention(norm(x)) + feed_forward(norm(x))": "reads the input of the block",
        },
    ),
    "recurrence": (
        "states = []\n    for t in range(x.shape[1]):\n        h = torch.tanh(x[:, t] @ w + h @ u + b)\n"
        "        states.append(h)\n    return torch.stack(states, 1)",
        {
            "return torch.stack([torch.tanh(x[:, t] @ w + h @ u + b) for t in range(x.shape[1])], 1)": "new state on",
            "states = []\n    for t in range(x.shape[1]):\n        h = x[:, t] @ w + h @ u + b\n"
            "        states.append(h)\n    return torch.stack(states, 1)": "tanh is missing",
            "states, h = [], 0 * h\n    for t in range(x.shape[1]):\n        h = torch.tanh(x[:, t] @ w + h @ u + b)\n"
            "        states.append(h)\n    return torch.stack(states, 1)": "first state is not used",
        },
    ),
    "bigram": (
        "c = torch.ones(vocab_size, vocab_size)\n    for a, b in zip(ids[:-1], ids[1:]):\n        c[a, b] += 1\n"
        "    return c / c.sum(1, keepdim=True)",
        {
            "c = torch.zeros(vocab_size, vocab_size)\n    for a, b in zip(ids[:-1], ids[1:]):\n        c[a, b] += 1\n"
            "    return c / c.sum(1, keepdim=True)": "add one to every count",
            "c = torch.ones(vocab_size, vocab_size)\n    for a, b in zip(ids[:-1], ids[1:]):\n        c[a, b] += 1\n"
            "    return c / c.sum(0, keepdim=True)": "the rows must",
            "c = torch.ones(vocab_size, vocab_size)\n    for a, b in zip(ids[:-1], ids[1:]):\n        c[a, b] += 1\n"
            "    return c": "these are counts",
        },
    ),
    "perplexity": (
        "return math.exp(-p.log().mean())",
        {
            "return float(-p.log().mean())": "that is the cross-entropy",
            "return float(1 / p.mean())": "the mean is one of logarithms",
            "return float(2 ** -p.log().mean())": "2 to the power of nats",
            "return float(p.log().mean().exp())": "the sign is missing",
        },
    ),
    "next-token-loss": (
        "l = logits[:, :-1].log_softmax(-1).gather(2, ids[:, 1:, None])\n    return -l.mean().item()",
        {
            "return torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten())": "there is no shift",
            "return torch.nn.functional.cross_entropy(logits[:, 1:].flatten(0, 1), ids[:, :-1].flatten())": "wrong way",
            "l = logits[:, :-1].log_softmax(-1).gather(2, ids[:, 1:, None])\n    return -l.sum()": "take their mean",
        },
    ),
    "masked-words": (
        "l = -logits.log_softmax(-1).gather(2, ids[..., None])[..., 0]\n    return (l * asked).sum() / asked.sum()",
        {
            "return torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten())": "every token counts",
            "return torch.nn.functional.cross_entropy(logits[~asked], ids[~asked])": "it is the others",
            "l = -logits.log_softmax(-1).gather(2, ids[..., None])[..., 0]\n    return (l * asked).mean()": "divide by",
        },
    ),
}


def filled(name: str, body: str):
    """The function of a skeleton whose blank has this body."""
    namespace: dict = {}
    exec(find(name).skeleton.replace("raise NotImplementedError", body), namespace)
    return namespace[find(name).function]


def test_every_exercise_has_a_solution_and_three_wrong_ones_here():
    assert set(ANSWERS) == set(EXERCISES)
    assert len(EXERCISES) >= 12
    assert all(len(wrong) >= 3 for _, wrong in ANSWERS.values())


@pytest.mark.parametrize("name", EXERCISES)
def test_the_skeleton_fails_and_the_solution_passes(name):
    exercise = find(name)
    assert judge(exercise, filled(name, "raise NotImplementedError")).message.endswith("is not filled in yet")
    assert "nothing: is there a return?" in judge(exercise, filled(name, "pass")).message
    verdict = judge(exercise, filled(name, ANSWERS[name][0]))
    assert verdict.passed, verdict.message


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name in ANSWERS for wrong in ANSWERS[name][1]])
def test_a_wrong_solution_gets_a_message_that_names_the_mistake(name, wrong):
    verdict = judge(find(name), filled(name, wrong))
    assert not verdict.passed
    assert ANSWERS[name][1][wrong] in verdict.message


@pytest.mark.parametrize("name", EXERCISES)
def test_no_known_mistake_is_right_and_no_two_are_alike(name):
    exercise = find(name)
    for message, mistake in exercise.mistakes.items():
        assert judge(exercise, mistake).message == message


@pytest.mark.parametrize("name", EXERCISES)
def test_every_exercise_is_on_its_page(name):
    page = next(path for path in LECTURES if path.stem == find(name).page)
    assert f"`regard exercise {name}`" in page.read_text(encoding="utf-8")


def test_numbers_and_shapes_are_said():
    attention = find("attention")
    assert "got" in judge(attention, lambda q, k, v: q @ k.mT @ v + 1).message
    assert "returned shape (3, 5), wanted (3, 4)" in judge(attention, lambda q, k, v: q @ k.mT).message
    assert "wanted a tensor" in judge(attention, lambda q, k, v: [1]).message
    assert "NaN" in judge(attention, lambda q, k, v: attention.reference(q, k, v) * math.nan).message
    assert "wanted a number" in judge(find("perplexity"), lambda p: p).message
    assert judge(find("perplexity"), lambda p: torch.tensor(math.exp(-p.log().mean()))).passed


def test_an_unknown_name_is_answered_with_all():
    with pytest.raises(InputError, match="there is no exercise 'atention'; wanted one of softmax, attention"):
        find("atention")


# ------------------------------------------------ the command, with the judge in its child process


def invoke(*arguments: str):
    return CliRunner().invoke(app, ["exercise", *arguments])


def test_a_student_writes_fills_and_checks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "softmax(scores)" in invoke().output
    assert "Fill in attention(query, key, value)" in invoke("attention").output
    again = invoke("attention")
    assert isinstance(again.exception, InputError)
    assert "attention.py exists" in str(again.exception)
    done = invoke("attention", "--check")
    assert (done.exit_code, done.output) == (1, "attention: attention is not filled in yet\n")
    path = tmp_path / "attention.py"
    text = path.read_text(encoding="utf-8")
    answer = "print('loud')\n    " + ANSWERS["attention"][0]
    path.write_text(text.replace("raise NotImplementedError", answer), encoding="utf-8")
    done = invoke("attention", "--check")
    assert done.exit_code == 0, done.output
    assert done.output == "attention: passed, right on 2 cases and 1 laws\nNext: regard exercise mask\n"
    path.write_text(text + "\n(", encoding="utf-8")
    found = json.loads(invoke("attention", "--check", "--json").output)
    assert found["passed"] is False
    assert "the file does not run: SyntaxError at line" in found["message"]


def test_an_endless_loop_ends(tmp_path, monkeypatch):
    from regard.cli import exercise

    monkeypatch.setattr(exercise, "SECONDS", 1.0)
    path = tmp_path / "loop.py"
    path.write_text("def softmax(scores):\n    while True:\n        pass\n", encoding="utf-8")
    done = invoke("softmax", "--check", "-o", str(path))
    assert done.exit_code == 1
    assert "endless loop" in done.output
