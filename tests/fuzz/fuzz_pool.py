"""Work in processes of their own: one that dies costs its item, not the run."""
from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

ITEMS_PER_PROCESS = 250  # loaded libraries stay loaded
SECONDS_PER_ITEM = 600.0
PROCESSES = multiprocessing.get_context("spawn")


def serve(connection: Connection, function: Callable[[Any], Any]) -> None:
    """What a worker's process does: answers items until there are no more."""
    torch.set_num_threads(1)
    try:
        while True:
            connection.send(function(connection.recv()))
    except EOFError:
        return


class Worker:
    """A process that applies a function to one item after the other. The answer to an item that it dies of is what `died`
    makes of the reason."""

    def __init__(self, function: Callable[[Any], Any], died: Callable[[str], Any] = str):
        self.function, self.died = function, died
        self.process = self.connection = None
        self.served = 0

    def start(self, item: Any) -> None:
        """Hands over an item; `finish` gives the answer."""
        if self.process is None or self.served >= ITEMS_PER_PROCESS:
            self.close()
            self.connection, theirs = PROCESSES.Pipe()
            self.process = PROCESSES.Process(target=serve, args=(theirs, self.function), daemon=True)
            self.process.start()
            theirs.close()
        self.served += 1
        self.connection.send(item)

    def finish(self) -> Any:
        if not self.connection.poll(SECONDS_PER_ITEM):
            self.process.terminate()
            self.close()
            return self.died(f"no answer within {SECONDS_PER_ITEM:.0f} s")
        try:
            return self.connection.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode
            self.close()
            return self.died(f"the process dies of signal {-code}" if code < 0 else f"the process ends with status {code}")

    def ask(self, item: Any) -> Any:
        self.start(item)
        return self.finish()

    def close(self) -> None:
        if self.process is not None:
            self.connection.close()
            self.process.join()
        self.process, self.served = None, 0


def answers(items: Iterable[Any], jobs: int, function: Callable[[Any], Any], died: Callable[[str], Any] = str) -> Iterator[tuple[Any, Any]]:
    """Each item with the function's answer, as they come, from so many processes."""
    left, busy, idle = iter(items), {}, [Worker(function, died) for _ in range(jobs)]
    try:
        while True:
            while idle and (item := next(left, None)) is not None:
                worker = idle.pop()
                worker.start(item)
                busy[worker.connection] = (worker, item)
            if not busy:
                return
            for connection in wait(list(busy), SECONDS_PER_ITEM) or list(busy):
                worker, item = busy.pop(connection)
                answer = worker.finish()
                idle.append(worker)
                yield item, answer
    finally:
        for worker, _ in busy.values():
            worker.process.terminate()
        for worker in idle:
            worker.close()
