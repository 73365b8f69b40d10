"""What /metrics says, in Prometheus' format."""

from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from regard.server.scheduler import TextLane
    from regard.server.texts import Text

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counters, gauges and histograms of one server; each has the label `model`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def make(kind: type, name: str, text: str, labels: tuple[str, ...] = ("model",), **options: Any) -> Any:
            return kind(f"regard_{name}", text, labels, registry=self.registry, **options)

        self.requests = make(Counter, "requests", "Requests by route and status", ("route", "status"))
        self.refused = make(Counter, "refused", "Requests refused because the queue was full")
        self.preempted = make(Counter, "preempted", "Texts that went back to the queue for want of memory")
        self.waiting = make(Gauge, "waiting", "Texts or inputs that wait")
        self.running = make(Gauge, "running", "Texts that are generated")
        self.tokens = make(Counter, "generated_tokens", "Tokens generated")
        self.prompt_tokens = make(Counter, "prompt_tokens", "Tokens of prompts")
        self.reused_tokens = make(Counter, "prompt_tokens_reused", "Tokens of prompts whose keys and values were there")
        self.first_token = make(Histogram, "time_to_first_token_seconds", "Time to first token", buckets=SECONDS)
        self.each_token = make(Histogram, "time_per_token_seconds", "Time of a decoding step", buckets=SECONDS)
        self.batch = make(Histogram, "batch_rows", "Rows of a step or a batch", buckets=ROWS)
        self.cache = make(Gauge, "kv_cache_used_tokens", "Tokens whose memory is taken in the KV cache")
        self.cache_size = make(Gauge, "kv_cache_max_tokens", "Tokens that the KV cache may have")
        self.slots_used = make(Gauge, "kv_cache_slots_used", "Slots of the KV cache in use")

    def step(self, model: str, rows: int, seconds: float) -> None:
        self.tokens.labels(model).inc(rows)
        self.batch.labels(model).observe(rows)
        self.each_token.labels(model).observe(seconds)

    def finished(self, model: str, text: "Text", reason: str) -> None:
        self.prompt_tokens.labels(model).inc(len(text.prompt))
        self.reused_tokens.labels(model).inc(text.num_reused)

    def after_turn(self, lane: "TextLane") -> None:
        name, slots = lane.served.name, lane.slots
        self.waiting.labels(name).set(lane.num_waiting)
        self.running.labels(name).set(lane.num_running)
        if slots is not None:
            self.cache.labels(name).set(slots.num_tokens)
            self.cache_size.labels(name).set(slots.max_tokens)
            self.slots_used.labels(name).set(slots.num_used)

    def text(self) -> bytes:
        return generate_latest(self.registry)
