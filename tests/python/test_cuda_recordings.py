"""What is decided in Python about recording runs as CUDA graphs; the rest needs a GPU (tests/gpu/check_cuda.py)."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
from tqdm import tqdm

import litz
from litz import cuda_graphs


def others_that_may_wait():
    frames = other_frames()
    return [thread for thread in threading.enumerate() if cuda_graphs._may_wait_for_device(thread, frames.get(thread.ident))]


def other_frames():
    frames = sys._current_frames()
    del frames[threading.get_ident()]
    return frames


def test_this_thread_and_monitors_do_not_wait_for_the_device():
    with tqdm(total=1):  # starts tqdm's monitor
        assert any(type(thread).__module__.startswith("tqdm") for thread in threading.enumerate())
        assert others_that_may_wait() == []


def test_what_feeds_the_processes_of_a_data_loader_does_not_wait_for_the_device():
    loader = iter(torch.utils.data.DataLoader(torch.arange(8.0), batch_size=2, num_workers=1))
    assert torch.equal(next(loader), torch.tensor([0.0, 1.0]))
    assert len(threading.enumerate()) > 1
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


def test_a_thread_that_waits_for_autograd_does_not_wait_for_the_device():
    """What runs in backward does so while the thread that asked for it waits."""

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            # On this thread, as of all graphs on a CPU: another one looks at it meanwhile.
            pool.submit(look).result()
            return grad

    def look():
        found.append([thread for thread in others_that_may_wait() if thread is main])


    main, found = threading.main_thread(), []
    with ThreadPoolExecutor(1) as pool:
        pool.submit(look).result()
        x = torch.ones(2, requires_grad=True)
        Identity.apply(x).sum().backward()
        # Its own code runs again in `backward` above.
        assert found == [[main], [main]]
    waits = cuda_graphs._engine_run_backward.__code__
    frame = SimpleNamespace(f_code=waits)
    assert not cuda_graphs._may_wait_for_device(main, frame)



def test_threads_of_other_languages_that_run_no_python_do_not_wait():
    """Autograd's, while there is nothing for them to do."""
    assert not cuda_graphs._may_wait_for_device(threading.main_thread(), None)


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
