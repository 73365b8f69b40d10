"""The scheduler: texts do not depend on their neighbors, slots come free, queues and memory have bounds."""

import threading
import time

import pytest
import torch

from regard.generation import Greedy
from regard.generation.engine import Engine
from regard.server.cores import Cores
from regard.server.errors import APIError
from regard.server.metrics import Metrics
from regard.server.models import ServedModel
from regard.server.scheduler import TextLane
from regard.server.settings import ServerSettings
from regard.server.slots import PlainSlots, Slots
from regard.server.texts import Sampling, Text
from regard.tasks import find_task
from regard.tasks.language_modeling.pipeline import TextStream
from tests.ops.forms import needs_kernels


class Client:
    """Collects the pieces of texts."""

    def __init__(self):
        self.pieces, self.changed = [], threading.Condition()

    def send(self, piece):
        with self.changed:
            self.pieces.append(piece)
            self.changed.notify_all()

    def wait(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: sum(one.is_last for one in self.pieces) >= count, timeout=600)
        return {
            index: "".join(one.text for one in self.pieces if one.index == index)
            for index in {one.index for one in self.pieces}
        }


@pytest.fixture
def make_lane(llama):
    made = []

    def make(**settings):
        served = ServedModel("llama", find_task("language-modeling"), llama)
        lane = TextLane(served, Cores(), ServerSettings(**settings), Metrics())
        lane.start()
        made.append(lane)
        return lane

    yield make
    for lane in made:
        lane.stop()


def text(llama, client, index, prompt, tokens=12, **others):
    ids = llama.encode(prompt)
    parts = []
    stream = TextStream(llama.tokenizer, ids, (), parts.append if others.get("streams") else None)
    facts = {"sampling": Sampling(temperature=0), "deadline": time.monotonic() + 600, "streams": False} | others
    return Text(index=index, prompt=ids, max_new_tokens=tokens, send=client.send, stream=stream, parts=parts, **facts)


def solo(llama, prompts, tokens=12):
    return {n: llama.run(one, Greedy(), max_new_tokens=tokens).text for n, one in enumerate(prompts)}


PROMPTS = [f"{'The old captain ' * (n % 9)}number {n}" for n in range(24)]


def test_texts_that_come_and_go_are_those_alone(make_lane, llama):
    lane, client = make_lane(max_running=5), Client()
    for n, prompt in enumerate(PROMPTS):
        lane.submit([text(llama, client, n, prompt, 3 + n % 20)])
    found = client.wait(len(PROMPTS))
    assert found == {n: llama.run(one, Greedy(), max_new_tokens=3 + n % 20).text for n, one in enumerate(PROMPTS)}
    assert lane.slots.num_used == 0


def test_texts_for_which_the_cache_is_too_small_go_on_later(make_lane, llama):
    """Each of 8 texts takes up to 100 tokens; the cache has room for 160."""
    lane, client = make_lane(max_running=8), Client()
    warm = Client()
    lane.submit([text(llama, warm, 0, "a", 1)])
    warm.wait(1)
    lane.slots.max_tokens = 160
    prompts = [f"text {n}" for n in range(8)]
    lane.submit([text(llama, client, n, one, 90) for n, one in enumerate(prompts)])
    assert client.wait(8) == solo(llama, prompts, 90)
    assert lane.slots.num_tokens <= 160
    assert lane._metrics.preempted.labels("llama")._value.get() > 0


def test_the_queue_is_bounded(make_lane, llama):
    lane, client = make_lane(max_running=1, max_queue=3), Client()
    texts = [text(llama, client, n, "a", 200) for n in range(40)]
    with pytest.raises(APIError, match="full") as refused:
        [lane.submit([one]) for one in texts]
    assert refused.value.status == 429
    assert int(refused.value.headers["Retry-After"]) >= 1


def test_who_leaves_frees_the_slot_at_the_next_token(make_lane, llama):
    lane, client = make_lane(max_running=2), Client()

    def leave(piece):
        client.send(piece)
        lane.cancel(texts)

    texts = [text(llama, client, n, "a", 240, streams=True) for n in range(2)]
    for one in texts:
        one.send = leave
    lane.submit(texts)
    other = Client()
    lane.submit([text(llama, other, 0, "b", 2)])
    other.wait(1)
    assert lane.slots.num_used == 0
    assert len(client.pieces) == len(texts)  # the first of each
    assert max(len(texts[one.index].tokens) - one.num_tokens for one in client.pieces) <= 1


def test_a_deadline_ends_what_waits_and_what_runs(make_lane, llama):
    lane, client = make_lane(max_running=1), Client()
    lane.submit([text(llama, client, n, "a", 240, deadline=time.monotonic() + 0.02) for n in range(2)])
    client.wait(2)
    errors = [one.error for one in client.pieces if one.error]
    assert [one.status for one in errors] == [504] * len(errors)
    assert errors


def test_stopping_answers_everyone(make_lane, llama):
    lane, client = make_lane(max_running=1), Client()
    lane.submit([text(llama, client, n, "a", 240) for n in range(4)])
    lane.stop()
    client.wait(4)
    assert {one.error.status for one in client.pieces if one.error} == {503}
    with pytest.raises(APIError, match="shutting down"):
        lane.submit([text(llama, client, 9, "a")])


def test_a_prompt_that_begins_like_another_is_not_read_again(make_lane, llama):
    lane, client = make_lane(max_running=4), Client()
    shared = "You are a helpful machine that answers briefly. " * 2
    prompts = [shared + end for end in ("Who?", "Why?", "When was that?")]
    for n, prompt in enumerate(prompts):
        lane.submit([text(llama, client, n, prompt)])
        client.wait(n + 1)
    assert client.wait(3) == solo(llama, prompts)
    assert [one.num_reused >= len(shared) - 1 for one in client.pieces if one.is_last] == [False, True, True]


@needs_kernels
@torch.inference_mode()
def test_memory_of_slots_is_given_back(llama):
    slots = Slots(Engine(llama.model, slots=3, capacity=256), 3, 1 << 30)
    slots.max_tokens = 300
    one = slots.open(list(range(200)))
    slots.read(one, list(range(200)))
    slots.close(one)
    other = slots.open([9] * 150)
    assert other is not one
    assert slots.make_room(other, 150)
    assert (one.touched, one.tokens) == (0, [])
    slots.read(other, [9] * 150)
    assert slots.num_tokens == 150


@torch.inference_mode()
def test_the_plain_step_gives_the_same(llama):
    """What serves a model that has no recorded step."""
    slots = PlainSlots(llama.model, 2)
    prompt = llama.encode("Once upon")
    slot = slots.open(prompt)
    slots.read(slot, prompt[:-1])
    tokens = [prompt[-1]]
    for _ in range(6):
        tokens.append(int(slots.step([slot], tokens[-1:])[0].argmax()))
    assert llama.tokenizer.decode(tokens[1:]) == llama.run("Once upon", Greedy(), max_new_tokens=6).text
    scored = slots.open(prompt)
    found = slots.read_scored(scored, prompt)
    assert torch.allclose(found, llama.model(torch.tensor([prompt]))[0], atol=1e-4)


def test_the_model_with_the_least_time_goes_first():
    cores, order = Cores(), []
    cores._used = {"slow": 5.0, "fast": 1.0}

    def work(name):
        with cores.turn(name):
            order.append(name)

    with cores.turn("other"):
        threads = [threading.Thread(target=work, args=[name]) for name in ("slow", "fast")]
        for count, thread in enumerate(threads, 1):
            thread.start()
            while len(cores._waiting) < count:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == ["fast", "slow"]
