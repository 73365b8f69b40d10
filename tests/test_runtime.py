"""Where a process computes: found once, or refused in one line."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard import runtime
from regard.errors import ConfigError
from regard.runtime import HOST, Runtime, find_device, find_dtype, matrix_limit, prepare, runtime_of


@pytest.fixture
def two_gpus(monkeypatch):
    """A machine with two CUDA devices, as torch would describe it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda"))


def test_auto_is_the_cpu_where_there_is_no_accelerator():
    if torch.accelerator.is_available():
        pytest.skip("this machine has an accelerator")
    assert find_device("auto") == find_device("cpu") == HOST


@pytest.mark.parametrize("name", ["cuda", "cuda:1", "mps", "xpu"])
def test_a_device_that_is_not_there_is_refused(name):
    if getattr(torch, name.partition(":")[0]).is_available():
        pytest.skip(f"this machine has {name}")
    with pytest.raises(ConfigError, match=f"^--device {name}: there is no .* device here; use --device"):
        find_device(name)


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cpu:0", "cuda:-1", ""])
def test_what_is_no_name_of_a_device_is_refused(name):
    with pytest.raises(ConfigError, match=f"^--device {name}: wanted auto, cpu, cuda, cuda:1, mps or xpu$"):
        find_device(name)


def test_a_process_of_torchrun_takes_the_device_of_its_local_rank(two_gpus):
    assert find_device("auto") == find_device("cuda") == torch.device("cuda:0")
    assert find_device("auto", local_rank=1) == find_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ConfigError, match=r"^--device cuda:2: there are 2 here, from cuda:0 to cuda:1$"):
        find_device("cuda:2")
    with pytest.raises(ConfigError, match=r"^--device cuda:5: there are 2 here"):
        find_device("cuda", local_rank=5)


def test_a_dtype_that_the_device_cannot_compute_in_is_refused(two_gpus, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    with pytest.raises(ConfigError, match="^--dtype bfloat16: Tesla T4 cannot compute in it; try float16$"):
        find_dtype("bfloat16", torch.device("cuda:0"))
    assert find_dtype("float16", torch.device("cuda:0")) is torch.float16
    with pytest.raises(ConfigError, match="^--dtype int4: wanted float32, bfloat16, float16$"):
        find_dtype("int4", HOST)


def test_ranks_are_those_of_torchrun(monkeypatch):
    assert prepare("cpu") == Runtime(HOST, torch.float32, torch.get_num_threads(), 0, 1, 0)
    for name, value in {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    found = prepare("cpu", "bfloat16")
    assert (found.rank, found.world_size, found.local_rank, found.dtype) == (5, 8, 1, torch.bfloat16)
    assert not found.is_main
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(ConfigError, match="^RANK=first: wanted the number that torchrun sets"):
        prepare("cpu")


def test_int8_is_for_the_cpu(two_gpus):
    assert prepare("auto", precision="int8").device == HOST


@dataclass(frozen=True)
class Batch:
    ids: Tensor
    next: Tensor | None
    tokens: int


def test_a_batch_is_moved_as_a_whole():
    batch = Batch(torch.ones(2, 3), None, 6)
    assert Runtime().move(batch) is batch
    moved = Runtime(torch.device("meta")).move(batch)
    assert moved.ids.is_meta
    assert (moved.ids.shape, moved.next, moved.tokens) == ((2, 3), None, 6)
    assert Runtime(torch.device("meta")).move(batch.ids).is_meta


def test_float32_is_not_under_autocast_and_bfloat16_is():
    linear = torch.nn.Linear(4, 4)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        with Runtime(dtype=dtype).autocast():
            assert linear(torch.ones(2, 4)).dtype is dtype


def test_notes_say_what_differs():
    assert Runtime().notes() == []
    assert Runtime(dtype=torch.bfloat16).notes() == [
        "bfloat16 on a CPU: the C kernels are for float32, so torch's kernels compute"
    ]
    assert "without TF32" in Runtime(torch.device("cuda")).notes()[0]


def test_an_accelerator_gets_deterministic_kernels_without_tf32(two_gpus, monkeypatch):
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    before = torch.backends.cudnn.allow_tf32
    try:
        assert prepare("cuda").device == torch.device("cuda:0")
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert not torch.backends.cudnn.allow_tf32
        assert torch.get_float32_matmul_precision() == "highest"
        assert runtime.os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    finally:
        torch.use_deterministic_algorithms(False)
        torch.backends.cudnn.allow_tf32 = before


def test_the_matrix_limit_is_a_speed():
    assert 1e8 < matrix_limit(Runtime()) < 1e16
    assert runtime_of(torch.nn.Linear(2, 2)) == Runtime()
