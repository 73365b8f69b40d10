"""The traces that the page looks at: the newest ones, within a bound on their memory."""

import secrets
from collections import OrderedDict
from threading import Lock

from regard.inspection.trace import Trace
from regard.server.errors import APIError


class TraceStore:
    """Traces by a name of their own; the ones that were not used for longest are dropped."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self._lock = Lock()

    def add(self, trace: Trace) -> str:
        name = secrets.token_urlsafe(9)
        with self._lock:
            self._traces[name] = trace
            while len(self._traces) > 1 and sum(map(size_of, self._traces.values())) > self.max_bytes:
                self._traces.popitem(last=False)
        return name

    def get(self, name: str) -> Trace:
        """APIError 404 for a trace that was dropped: the page then asks for it again."""
        with self._lock:
            if name not in self._traces:
                raise APIError(404, "this trace is not kept any more; look at the input again", code="trace_not_found")
            self._traces.move_to_end(name)
            return self._traces[name]


def size_of(trace: Trace) -> int:
    return sum(value.nbytes for value in trace.values.values())
