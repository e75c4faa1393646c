"""The model zoo's small variants, compiled: as near to float64 as eager float32 is, in inference and training."""
import pytest
import torch

import litz_zoo

# Compiled float32 may be off by twice what eager float32 is, and by a little where eager happens to be exact.
FACTOR, FLOOR = 2.0, 2e-7


def check(case: litz_zoo.ModelCase, backend: str, train: bool) -> None:
    reference = litz_zoo.float64_reference(case, small=True, train=train)
    errors = {}
    for name in ("eager", backend):
        module, inputs = case.make(small=True)
        module.train(train)
        forward = module if name == "eager" else torch.compile(module, backend=name)
        if train:
            result = litz_zoo.training_step(module, inputs, forward, case)
        else:
            with torch.no_grad():
                result = litz_zoo.flat(forward(*inputs))
        errors[name] = litz_zoo.relative_error(result, reference)
    assert errors[backend] <= FACTOR * errors["eager"] + FLOOR, errors


@pytest.mark.parametrize("name", litz_zoo.MODELS)
def test_inference(name: str, backend: str) -> None:
    check(litz_zoo.MODELS[name], backend, train=False)


@pytest.mark.parametrize("name", [c.name for c in litz_zoo.MODELS.values() if c.loss])
def test_training_step(name: str, backend: str) -> None:
    check(litz_zoo.MODELS[name], backend, train=True)


def test_batch_norm_statistics_are_updated(backend: str) -> None:
    """A training step moves the running statistics as eager does."""
    case = litz_zoo.MODELS["resnet18"]
    buffers = []
    for name in ("eager", backend):
        module, inputs = case.make(small=True)
        module.train()
        litz_zoo.training_step(module, inputs, module if name == "eager" else torch.compile(module, backend=name), case)
        buffers.append(list(module.buffers()))
    torch.testing.assert_close(buffers[1], buffers[0], rtol=1e-5, atol=1e-6)


def test_several_steps_train(backend: str) -> None:
    """Ten optimizer steps: the compiled model's loss follows the eager one's."""
    case = litz_zoo.MODELS["mlp"]
    losses = []
    for name in ("eager", backend):
        module, inputs = case.make(small=True)
        forward = module if name == "eager" else torch.compile(module, backend=name)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        history = []
        for _ in range(10):
            history.append(float(litz_zoo.training_step(module, inputs, forward, case)[0]))
            optimizer.step()
        losses.append(history)
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[1][-1] < losses[1][0]
