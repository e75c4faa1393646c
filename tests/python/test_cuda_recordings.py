"""What is decided in Python about recording runs as CUDA graphs; the rest needs a GPU (tests/gpu/check_cuda.py)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
from tqdm import tqdm

import litz
from litz import cuda_graphs


def others_that_may_wait():
    return [thread for thread in threading.enumerate() if cuda_graphs._may_wait_for_device(thread)]


def test_this_thread_and_monitors_do_not_wait_for_the_device():
    with tqdm(total=1):  # starts tqdm's monitor
        assert any(type(thread).__module__.startswith("tqdm") for thread in threading.enumerate())
        assert others_that_may_wait() == []


def test_threads_of_the_program_may_wait_for_the_device():
    done = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(done.wait)
        own = threading.Thread(target=done.wait)
        own.start()
        try:
            assert own in others_that_may_wait() and len(others_that_may_wait()) == 2
        finally:
            done.set()
            own.join()


def test_threads_that_run_builtin_functions_may_wait_for_the_device():
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.acquire, daemon=True)
    thread.start()
    try:
        assert thread in others_that_may_wait()
    finally:
        lock.release()
        thread.join()


@pytest.mark.parametrize(
    "ops,may",
    [
        ([], True),
        ([("aten::addmm", "", "addmm", "direct"), ("aten::sort", "", "sort", "dispatcher")], True),
        ([("aten::addmm", "", "addmm", "direct"), ("mylib::counted", "", "counted", "dispatcher")], False),
        ([("aten::_local_scalar_dense", "", "item", "python")], False),
    ],
)
def test_graphs_that_nobody_asked_to_record_have_only_ops_of_torch(ops, may):
    assert cuda_graphs.may_record_unasked(SimpleNamespace(library_ops=ops)) is may


def test_graphs_on_the_cpu_are_not_recorded():
    compiled = torch.compile(lambda x: x + 1, backend="litz", options={"cuda_graphs": True, "auto_cuda_graphs": True})
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
    assert litz.report().graphs[-1].kernels
