"""The child process that runs scripts on untrusted input: its bounds, and what does not count against them."""

import pytest

from regard.sandbox import LimitError, Worker

SCRIPT = """
import json, signal, sys, time

print("ready", flush=True)
for line in sys.stdin:
    signal.setitimer(signal.ITIMER_PROF, float(sys.argv[2]))
    request = json.loads(line)
    if request == "loop":
        while True: pass
    if request == "wait":
        time.sleep(0.6)
    print(json.dumps("a" * request if isinstance(request, int) else request), flush=True)
    signal.setitimer(signal.ITIMER_PROF, 0)
"""


@pytest.fixture
def worker(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    made = Worker(script, seconds=0.3, megabytes=1000, max_bytes=1000)
    yield made
    made.close()


def test_many_requests_are_answered_by_one_child(worker):
    assert [worker.ask(request) for request in (["a"], {"b": 1}, None)] == [["a"], {"b": 1}, None]


def test_processor_time_is_bounded_and_the_next_request_is_answered(worker):
    with pytest.raises(LimitError, match=r"^took more than 0\.3 s$"):
        worker.ask("loop")
    assert worker.ask("again") == "again"


def test_time_on_the_clock_does_not_count(worker):
    """A child that waits for its turn on a busy machine does nothing wrong."""
    assert worker.ask("wait") == "wait"


def test_output_is_bounded(worker):
    with pytest.raises(LimitError, match=r"^wrote more than 1,000 bytes$"):
        worker.ask(2000)
    assert worker.ask("again") == "again"
