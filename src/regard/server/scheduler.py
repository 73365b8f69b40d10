"""Continuous batching: texts join and leave the running batch at every token.

A turn reads a part of the prompts that wait to be read, then takes one step with all texts that are being generated.
A long prompt is so read in parts between the steps of the others. A text's tokens do not depend on its neighbors.

Memory is bounded by tokens in the KV cache. Texts are admitted while there is room for their prompts; where the cache
fills up while they grow, the youngest goes back to the queue, and goes on later from the tokens it has.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import torch

from regard.generation.decode import Limits as DecodeLimits
from regard.generation.decode import banned_ids, eos_ids
from regard.server.choosing import choose, prompt_scores
from regard.server.cores import Cores
from regard.server.errors import APIError
from regard.server.lanes import Lane, stopping
from regard.server.metrics import Metrics
from regard.server.models import ServedModel
from regard.server.settings import ServerSettings
from regard.server.slots import Slots, slots_for
from regard.server.texts import Text

PREFILL_TOKENS = 128  # of prompts read in a turn
HEADROOM = 16  # tokens that must be free beside a prompt for its text to be admitted


class TextLane(Lane):
    """The texts of one language model."""

    def __init__(
        self,
        served: ServedModel,
        cores: Cores,
        settings: ServerSettings,
        metrics: Metrics,
        after_turn: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(served, cores)
        self.settings, self._metrics, self._after_turn = settings, metrics, after_turn
        tokenizer = served.pipeline.tokenizer
        self._limits = DecodeLimits([], stop_ids=tokenizer.eos_ids, vocab_size=tokenizer.vocab_size)
        special_ids = served.pipeline.model.config.special_ids
        self._ends = set(eos_ids(special_ids, self._limits))
        self._banned = banned_ids(special_ids, self._limits, 0, served.pipeline.model.config.vocab_size)
        self._queue: deque[Text] = deque()
        self._reading: list[Text] = []
        self._running: list[Text] = []
        self._slots: Slots | None = None
        self._rate = _Rate()

    # ------------------------------------------------ from the event loop

    def submit(self, texts: Sequence[Text]) -> None:
        """Generate these; APIError 429 where the queue is full."""
        with self._changed:
            if self._is_stopping:
                raise stopping()
            if (full := self.full(len(texts))) is not None:
                raise full
            self._queue.extend(texts)
            self._changed.notify()

    def full(self, count: int = 1) -> APIError | None:
        """The error where the queue has no room for so many texts."""
        if len(self._queue) + count <= max(self.settings.max_queue, count if not self._queue else 0):
            return None
        self._metrics.refused.labels(self.served.name).inc()
        return APIError(
            429,
            f"the queue of {self.served.name} is full ({len(self._queue)} texts wait); try again later",
            code="queue_full",
            retry_after=self._rate.seconds(len(self._queue)),
        )

    def cancel(self, texts: Sequence[Text]) -> None:
        """Their client has gone: their slots are free before the next token."""
        with self._changed:
            for text in texts:
                text.is_cancelled = True
            self._changed.notify()

    @property
    def num_waiting(self) -> int:
        return len(self._queue)

    @property
    def num_running(self) -> int:
        return len(self._running) + len(self._reading)

    @property
    def slots(self) -> Slots | None:
        return self._slots

    # ------------------------------------------------ a turn

    def _has_work(self) -> bool:
        return bool(self._queue or self._reading or self._running)

    @torch.inference_mode()
    def _turn(self) -> None:
        self._leave()
        with self._cores.turn(self.served.name):
            self._admit()
            self._read()
            self._step()
        for text in (*self._running, *self._reading):
            text.flush()
        self._metrics.after_turn(self)
        self._after_turn()

    def _leave(self) -> None:
        """Texts whose client has gone, or whose time is over, leave."""
        now = time.monotonic()
        with self._changed:
            gone = [text for text in self._queue if text.is_cancelled or text.deadline < now]
            for text in gone:
                self._queue.remove(text)
        for text in (*gone, *self._reading, *self._running):
            if text.is_cancelled:
                self._close(text)
            elif text.deadline < now:
                self._close(text)
                text.flush()
                text.fail(late(text))

    def _close(self, text: Text) -> None:
        for several in (self._reading, self._running):
            if text in several:
                several.remove(text)
        if text.slot is not None:
            assert self._slots is not None
            self._slots.close(text.slot)
            text.slot = None

    def _admit(self) -> None:
        """Texts of the queue get slots, in their order, while there is room for their prompts."""
        if self._slots is None:
            count = self.settings.max_running
            self._slots = slots_for(self.served.pipeline.model, count, self.settings.kv_cache_megabytes << 20)
        while self._queue:
            text = self._queue[0]
            slot = self._slots.open(text.so_far, reuse=not text.scores_prompt)
            if slot is None:
                return
            missing = len(text.so_far) - len(slot.tokens) + HEADROOM
            if not self._slots.make_room(slot, missing) and self.num_running:
                self._slots.close(slot)
                return
            with self._changed:
                if not self._queue or self._queue[0] is not text:
                    self._slots.close(slot)
                    continue
                self._queue.popleft()
            text.slot, text.num_reused = slot, len(slot.tokens)
            self._reading.append(text)

    def _read(self) -> None:
        """A part of the prompts; those that are read whole begin to be generated."""
        assert self._slots is not None
        budget = PREFILL_TOKENS
        for text in list(self._reading):
            assert text.slot is not None
            prompt = text.so_far
            start = len(text.slot.tokens)
            part = prompt[start : min(len(prompt) - 1, start + budget)]
            if part:
                self._slots.make_room(text.slot, len(part))
                if text.scores_prompt:
                    logits = self._slots.read_scored(text.slot, part)
                    following = prompt[start + 1 : start + 1 + len(part)]
                    text.scores += prompt_scores(logits, following, text.num_top or 0)
                else:
                    self._slots.read(text.slot, part)
            budget -= len(part)
            if len(text.slot.tokens) == len(prompt) - 1:
                self._reading.remove(text)
                if text.max_new_tokens:
                    self._running.append(text)
                else:
                    self._finish(text, "length")
            if budget <= 0:
                return

    def _step(self) -> None:
        """One more token in every running text."""
        assert self._slots is not None
        self._make_room()
        if not self._running:
            return
        texts = list(self._running)
        slots = [text.slot for text in texts if text.slot is not None]
        assert len(slots) == len(texts)
        begun = time.perf_counter()
        logits = self._slots.step(slots, [text.so_far[-1] for text in texts])
        chosen = choose(logits, texts, self._banned)
        self._metrics.step(self.served.name, len(texts), time.perf_counter() - begun)
        for text, token in zip(texts, chosen, strict=True):
            self._add(text, token)

    def _make_room(self) -> None:
        """The youngest texts go back to the queue where the cache has no room for the next token of all."""
        assert self._slots is not None
        while self._running:
            text = next((one for one in self._running if one.slot and not self._slots.make_room(one.slot, 1)), None)
            if text is None or len(self._running) == 1:
                return
            youngest = max(self._running, key=lambda one: one.submitted)
            slot = youngest.slot
            self._close(youngest)
            youngest.scores_prompt = False  # it has them
            if slot is not None:
                self._slots.forget(slot)
            with self._changed:
                self._queue.appendleft(youngest)
            self._metrics.preempted.labels(self.served.name).inc()

    def _add(self, text: Text, token: int) -> None:
        if token < 0:
            self._close(text)
            text.fail(APIError(500, "the model's logits are not finite: its weights are damaged", code="not_finite"))
            return
        if text.first_token is None:
            text.first_token = time.monotonic()
            self._metrics.first_token.labels(self.served.name).observe(text.first_token - text.submitted)
        if text.grammar is not None:
            text.grammar.accept(token)
        if token in self._ends:
            if text.num_top is not None:
                text.scores.pop()  # the end is no part of the text
            self._finish(text, "stop")
            return
        text.tokens.append(token)
        if text.stream.on_token(0, text.tokens) or (text.grammar is not None and text.grammar.is_done):
            self._finish(text, "stop")
        elif len(text.tokens) >= text.max_new_tokens:
            self._finish(text, "length")

    def _finish(self, text: Text, reason: str) -> None:
        self._close(text)
        rest = text.stream.finish(text.tokens)
        if text.stream.on_text is None:
            text.parts.append(rest)
        text.flush(reason)
        self._rate.add()
        self._metrics.finished(self.served.name, text, reason)

    def _refuse_all(self, error: APIError) -> None:
        with self._changed:
            waiting = list(self._queue)
            self._queue.clear()
        for text in (*self._reading, *self._running):
            waiting.append(text)
        for text in waiting:
            self._close(text)
            text.fail(error)
        self._after_turn()


class _Rate:
    """How fast texts have been finished lately, for Retry-After."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=32)
        self._lock = threading.Lock()

    def add(self) -> None:
        with self._lock:
            self._times.append(time.monotonic())

    def seconds(self, count: int) -> float:
        """How long so many texts take."""
        with self._lock:
            if len(self._times) < 2:
                return 1.0
            each = (time.monotonic() - self._times[0]) / len(self._times)
        return min(60.0, max(1.0, each * count))


def late(text: Text) -> APIError:
    waited = time.monotonic() - text.submitted
    return APIError(
        504,
        f"the request took longer than this server allows ({waited:.0f} s, {len(text.tokens)} tokens); "
        "ask for fewer tokens, or try when it is less busy",
        code="deadline_exceeded",
    )
