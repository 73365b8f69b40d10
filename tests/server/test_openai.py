"""The real openai client against the server."""

import asyncio
import base64
import json

import numpy as np
import openai
import pytest

from regard.generation import Greedy, Sample

GREEDY = {"temperature": 0, "max_tokens": 12}


@pytest.fixture(scope="module")
def ai(live):
    with openai.OpenAI(base_url=f"{live}/v1", api_key="secret", max_retries=0) as found:
        yield found


def solo(llama, prompt, strategy=None, **options):
    return llama.run(prompt, strategy or Greedy(), **{"max_new_tokens": 12, **options}).text


def test_models(ai):
    assert [one.id for one in ai.models.list()] == ["llama", "demo", "bert", "sentiment", "names"]
    assert ai.models.retrieve("llama").owned_by == "regard"


def test_a_completion_is_what_the_pipeline_generates(ai, llama):
    found = ai.completions.create(model="llama", prompt="Once upon", **GREEDY)
    assert found.choices[0].text == solo(llama, "Once upon")
    assert found.choices[0].finish_reason == "length"
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (9, 12)


def test_several_prompts_samples_and_seeds(ai, llama):
    prompts = ["Once upon", "The queen"]
    asked = {"model": "llama", "max_tokens": 12, "temperature": 0.9, "n": 2, "seed": 5}
    found = ai.completions.create(prompt=prompts, **asked)
    texts = [one.text for one in found.choices]
    wanted = [llama.run_all(prompts, Sample(0.9, seed=5, num_samples=2), max_new_tokens=12)[row] for row in (0, 1)]
    assert [sorted(texts[:2]), sorted(texts[2:])] == [sorted(t.text for t in one.texts) for one in wanted]
    again = ai.completions.create(prompt=prompts, **asked)
    assert [one.text for one in again.choices] == texts
    assert [one.index for one in found.choices] == [0, 1, 2, 3]


def test_token_ids_echo_and_log_probabilities(ai, llama):
    ids = list(b"The queen")
    found = ai.completions.create(model="llama", prompt=ids, echo=True, logprobs=3, **GREEDY).choices[0]
    assert found.text == "The queen" + solo(llama, "The queen")
    tokens = found.logprobs
    assert len(tokens.tokens) == len(ids) + 12
    assert tokens.token_logprobs[0] is None
    generated = llama.run("The queen", Greedy(), max_new_tokens=12).texts[0].tokens
    wanted = [one.log_probability for one in llama.log_probabilities(ids[:1], [*ids[1:], *generated])]
    np.testing.assert_allclose(tokens.token_logprobs[1:], wanted, atol=1e-4)
    best = [max(one.values()) for one in tokens.top_logprobs[9:]]
    np.testing.assert_allclose(tokens.token_logprobs[9:], best, atol=1e-4)
    scored = ai.completions.create(model="llama", prompt=ids, echo=True, logprobs=1, max_tokens=0).choices[0]
    assert scored.text == "The queen"
    np.testing.assert_allclose(scored.logprobs.token_logprobs[1:], wanted[:8], atol=1e-4)


def test_best_of_keeps_the_most_probable(ai):
    asked = {"model": "llama", "prompt": "Once upon", "max_tokens": 8, "seed": 3, "logprobs": 0}
    many = ai.completions.create(n=4, **asked).choices
    best = ai.completions.create(n=1, best_of=4, **asked).choices
    assert len(best) == 1
    assert best[0].text == max(many, key=lambda one: np.mean(one.logprobs.token_logprobs)).text


def test_stop_strings_and_streams(ai, llama):
    whole = solo(llama, "Once upon", max_new_tokens=40)
    stop = whole[10:12]
    pieces = list(ai.completions.create(model="llama", prompt="Once upon", temperature=0, max_tokens=40, stream=True))
    assert "".join(one.choices[0].text for one in pieces) == whole
    assert len(pieces) > 5
    stopped = ai.completions.create(model="llama", prompt="Once upon", temperature=0, max_tokens=40, stop=stop)
    assert stopped.choices[0].text == whole[: whole.index(stop)]
    assert stopped.choices[0].finish_reason == "stop"
    parts = ai.completions.create(
        model="llama",
        prompt="Once upon",
        temperature=0,
        max_tokens=40,
        stop=[stop],
        stream=True,
        stream_options={"include_usage": True},
    )
    *texts, last = list(parts)
    assert "".join(one.choices[0].text for one in texts) == whole[: whole.index(stop)]
    assert last.usage.completion_tokens == stopped.usage.completion_tokens


def test_chat_renders_the_template(ai, llama):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
    ]
    found = ai.chat.completions.create(model="llama", messages=messages, logprobs=True, top_logprobs=2, **GREEDY)
    wanted = solo(llama, "[system]Be brief.\n[user]Hi\n[assistant]")
    assert found.choices[0].message.content == wanted
    assert found.choices[0].message.role == "assistant"
    assert len(found.choices[0].logprobs.content) == 12
    assert len(found.choices[0].logprobs.content[0].top_logprobs) == 2
    pieces = list(ai.chat.completions.create(model="llama", messages=messages, stream=True, **GREEDY))
    assert pieces[0].choices[0].delta.role == "assistant"
    assert "".join(one.choices[0].delta.content or "" for one in pieces) == wanted
    assert pieces[-1].choices[0].finish_reason == "length"


def test_embeddings_as_floats_and_base64(ai, table):
    pipeline = table.get("bert").pipeline
    wanted = pipeline.embed(["the cat", "a big dog ran"])
    found = ai.embeddings.create(model="bert", input=["the cat", "a big dog ran"])  # the client asks for base64
    np.testing.assert_allclose([one.embedding for one in found.data], wanted, atol=1e-6)
    floats = ai.embeddings.create(model="bert", input="the cat", encoding_format="float").data[0].embedding
    np.testing.assert_allclose(floats, wanted[0], atol=1e-6)
    ids = pipeline.tokenizer.encode_ids_batch(["the cat"])[0]
    given = ai.embeddings.create(model="bert", input=[ids])
    np.testing.assert_allclose(given.data[0].embedding, wanted[0], atol=1e-6)
    raw = ai.embeddings.with_raw_response.create(model="bert", input=ids, encoding_format="base64").http_response.json()
    np.testing.assert_allclose(
        np.frombuffer(base64.b64decode(raw["data"][0]["embedding"]), "<f4"), wanted[0], atol=1e-6
    )


def test_many_at_once_equal_each_alone(live, llama):
    prompts = [f"Story {n}: " + "and then " * (n % 7) for n in range(40)]

    async def all_of_them():
        async with openai.AsyncOpenAI(base_url=f"{live}/v1", api_key="secret", max_retries=0) as ai:
            asked = (ai.completions.create(model="llama", prompt=one, **GREEDY) for one in prompts)
            return await asyncio.gather(*asked)

    found = [one.choices[0].text for one in asyncio.run(all_of_them())]
    assert found == [solo(llama, prompt) for prompt in prompts]


def test_json_of_a_schema(ai):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}, "b": {"type": "boolean"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    found = ai.chat.completions.create(
        model="llama", messages=[{"role": "user", "content": "x"}], response_format=form, max_tokens=120, seed=1
    )
    answer = json.loads(found.choices[0].message.content)
    assert found.choices[0].finish_reason == "stop"
    assert set(answer) == {"a", "b"}
    assert isinstance(answer["b"], bool)
    wrong = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}}
    with pytest.raises(openai.BadRequestError, match="schema cannot be followed"):
        ai.chat.completions.create(model="llama", messages=[{"role": "user", "content": "x"}], response_format=wrong)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"model": "other"}, openai.NotFoundError, "there is no model 'other'; this server has llama"),
        ({"model": "demo"}, openai.BadRequestError, "is for translation"),
        ({"max_tokens": 300}, openai.BadRequestError, "context of 256"),
        ({"prompt": "x" * 300}, openai.BadRequestError, "300 tokens"),
        ({"prompt": ""}, None, ""),
        ({"n": 9}, openai.BadRequestError, "n is 9"),
        ({"stop": list("abcde")}, openai.BadRequestError, "stop"),
        ({"logit_bias": {"999": 1}}, openai.BadRequestError, "999"),
        ({"suffix": "x"}, openai.BadRequestError, "suffix"),
    ],
)
def test_errors_are_the_clients_exceptions(ai, changes, error, words):
    asked = {"model": "llama", "prompt": "Once", "max_tokens": 2} | changes
    if error is None:
        ai.completions.create(**asked)
        return
    with pytest.raises(error, match=words):
        ai.completions.create(**asked)


@pytest.mark.parametrize("name", ["temperature", "top_p", "min_p", "repetition_penalty"])
def test_the_smallest_numbers_are_no_division_by_zero(ai, name):
    found = ai.completions.create(model="llama", prompt="Once", max_tokens=3, extra_body={name: 5e-324})
    assert found.choices[0].finish_reason in ("length", "stop")


def test_a_key_is_needed(live):
    with (
        openai.OpenAI(base_url=f"{live}/v1", api_key="wrong", max_retries=0) as ai,
        pytest.raises(openai.AuthenticationError),
    ):
        ai.models.list()
