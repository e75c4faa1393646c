"""The model zoo: real architectures built from configuration with fixed random weights, nothing downloaded.

`MODELS[name].make(small=False)` gives `(module, inputs)`, the module in eval mode and returning tensors only.
`small=True` gives the same architecture cut down for tests. A case with a `loss` can take a training step.
Vision models are in `litz_zoo_vision`; the transformers come from the `transformers` package.
"""
from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from litz_zoo_vision import (
    BasicBlock, Bottleneck, ResNet, convnext, densenet, efficientnet, mixer, mobilenet, resnet, swin, unet, use_plausible_statistics, vit,
)

__all__ = ["BasicBlock", "Bottleneck", "ResNet", "use_plausible_statistics"]


@dataclass(frozen=True)
class ModelCase:
    """One model: how to build it, and its training loss where it is trained."""

    name: str
    build: Callable[[bool], tuple[nn.Module, tuple[Tensor, ...]]]
    loss: Callable[[Any, tuple[Tensor, ...]], Tensor] | None = None

    def make(self, small: bool = False, seed: int = 0) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """The module in eval mode and its example inputs; the same weights and inputs on every call with one seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module, inputs = self.build(small)
        return module.eval(), inputs


# --- plain networks --------------------------------------------------------------------------------------------------


def mlp(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    width, hidden, rows = (32, 64, 9) if small else (512, 2048, 256)
    module = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
    return module, (torch.randn(rows, width),)


class WrittenLSTM(nn.Module):
    """A stack of LSTM layers, the cell written out over time steps."""

    def __init__(self, size: int, hidden: int, layers: int):
        super().__init__()
        sizes = [size] + [hidden] * (layers - 1)
        self.from_input = nn.ModuleList(nn.Linear(n, 4 * hidden) for n in sizes)
        self.from_state = nn.ModuleList(nn.Linear(hidden, 4 * hidden, bias=False) for _ in sizes)
        self.hidden = hidden

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        for from_input, from_state in zip(self.from_input, self.from_state):
            h = x.new_zeros(x.shape[0], self.hidden)
            c = x.new_zeros(x.shape[0], self.hidden)
            outputs = []
            for step in from_input(x).unbind(1):
                i, f, g, o = (step + from_state(h)).chunk(4, dim=-1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                outputs.append(h)
            x = torch.stack(outputs, dim=1)
        return x, h, c


def lstm(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    size, hidden, layers, batch, steps = (12, 20, 2, 3, 4) if small else (256, 256, 2, 16, 24)
    return WrittenLSTM(size, hidden, layers), (torch.randn(batch, steps, size),)


class DLRM(nn.Module):
    """Dense features through an MLP, categorical ones through embedding bags, pairwise dot products, a top MLP."""

    def __init__(self, tables: int, rows: int, dense: int, dim: int, hidden: int):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(dense, hidden), nn.ReLU(), nn.Linear(hidden, dim), nn.ReLU())
        self.tables = nn.ModuleList(nn.Embedding(rows, dim) for _ in range(tables))
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(dim + pairs, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        first, second = torch.tril_indices(tables + 1, tables + 1, offset=-1)
        self.register_buffer("first", first)
        self.register_buffer("second", second)

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        x = self.bottom(dense)
        bags = [table(sparse[:, i]).sum(1) for i, table in enumerate(self.tables)]
        features = torch.stack([x, *bags], dim=1)
        dots = torch.bmm(features, features.transpose(1, 2))
        return torch.sigmoid(self.top(torch.cat([x, dots[:, self.first, self.second]], dim=1)))


def dlrm(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    tables, rows, dense, dim, hidden, batch, bag = (3, 50, 5, 8, 16, 4, 3) if small else (8, 20000, 13, 64, 256, 256, 8)
    module = DLRM(tables, rows, dense, dim, hidden)
    return module, (torch.randn(batch, dense), torch.randint(rows, (batch, tables, bag)))


# --- transformers ----------------------------------------------------------------------------------------------------


class FirstOutput(nn.Module):
    """A `transformers` model that returns its first output as a tensor and keeps no key-value cache."""

    def __init__(self, model: nn.Module, **more: Any):
        super().__init__()
        self.model, self.more = model, more

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.model(input_ids=ids, attention_mask=mask, return_dict=False, **self.more)[0]


def bert(layers: int, batch: int, length: int) -> Callable[[bool], tuple[nn.Module, tuple[Tensor, ...]]]:
    def build(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
        from transformers import BertConfig, BertModel

        size = dict(vocab_size=99, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48) if small \
            else dict(hidden_size=768, num_hidden_layers=layers, num_attention_heads=12, intermediate_size=3072)
        config = BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **size)
        shape = (2, 9) if small else (batch, length)
        return FirstOutput(BertModel(config)), (torch.randint(config.vocab_size, shape), padding_mask(shape))

    return build


def padding_mask(shape: tuple[int, int]) -> Tensor:
    """Attention mask with the last row padded by a quarter."""
    mask = torch.ones(shape, dtype=torch.int64)
    mask[-1, -(shape[1] // 4):] = 0
    return mask


def gpt2(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    size = dict(vocab_size=99, n_embd=24, n_layer=2, n_head=3, n_positions=32,
                bos_token_id=0, eos_token_id=0) if small \
        else dict(vocab_size=50257, n_embd=768, n_layer=4, n_head=12)
    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **size)
    ids = torch.randint(config.vocab_size, (2, 9) if small else (4, 128))
    return FirstOutput(GPT2LMHeadModel(config), use_cache=False), (ids,)


def llama(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    from transformers import LlamaConfig, LlamaForCausalLM

    size = dict(vocab_size=99, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
                num_hidden_layers=2) if small \
        else dict(vocab_size=4096, hidden_size=768, intermediate_size=2048, num_attention_heads=12,
                  num_key_value_heads=4, num_hidden_layers=4)
    config = LlamaConfig(max_position_embeddings=256, **size)
    ids = torch.randint(config.vocab_size, (2, 9) if small else (2, 128))
    return FirstOutput(LlamaForCausalLM(config), use_cache=False), (ids,)


def t5_encoder(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    from transformers import T5Config, T5EncoderModel

    size = dict(vocab_size=99, d_model=24, d_kv=8, d_ff=48, num_layers=2, num_heads=3) if small \
        else dict(vocab_size=32128, d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8)
    config = T5Config(dropout_rate=0.0, **size)
    shape = (2, 9) if small else (4, 128)
    return FirstOutput(T5EncoderModel(config)), (torch.randint(config.vocab_size, shape), padding_mask(shape))


class WhisperEncoderOutput(nn.Module):
    """Whisper's encoder, from log-mel frames to features."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.encoder = model.encoder

    def forward(self, frames: Tensor) -> Tensor:
        return self.encoder(frames).last_hidden_state


def whisper_encoder(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    from transformers import WhisperConfig, WhisperModel

    size = dict(vocab_size=99, d_model=24, encoder_layers=2, encoder_attention_heads=3, encoder_ffn_dim=48, decoder_layers=1,
                decoder_attention_heads=3, decoder_ffn_dim=48, num_mel_bins=8, max_source_positions=15, pad_token_id=0,
                bos_token_id=1, eos_token_id=2, decoder_start_token_id=1) if small \
        else dict(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, decoder_layers=1,
                  decoder_attention_heads=6, decoder_ffn_dim=1536)
    config = WhisperConfig(**size)
    return WhisperEncoderOutput(WhisperModel(config)), (torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions),)


# --- losses ----------------------------------------------------------------------------------------------------------


def mean_square(output: Tensor, inputs: tuple[Tensor, ...]) -> Tensor:
    return output.square().mean()


def first_classes(output: Tensor, inputs: tuple[Tensor, ...]) -> Tensor:
    """Cross-entropy against the classes 0, 1, 2, ..."""
    return F.cross_entropy(output, torch.arange(output.shape[0], device=output.device) % output.shape[1])


def token_classes(output: Tensor, inputs: tuple[Tensor, ...]) -> Tensor:
    """Cross-entropy of each token's features against a class made from its id."""
    return F.cross_entropy(output.flatten(0, 1), inputs[0].flatten() % output.shape[-1])


def next_token(output: Tensor, inputs: tuple[Tensor, ...]) -> Tensor:
    return F.cross_entropy(output[:, :-1].flatten(0, 1), inputs[0][:, 1:].flatten())


MODELS: dict[str, ModelCase] = {
    case.name: case
    for case in [
        ModelCase("mlp", mlp, mean_square),
        ModelCase("resnet18", resnet(BasicBlock, (2, 2, 2, 2)), first_classes),
        ModelCase("resnet50", resnet(Bottleneck, (3, 4, 6, 3))),
        ModelCase("mobilenet_v3", mobilenet),
        ModelCase("bert", bert(4, 4, 128), token_classes),
        ModelCase("gpt2", gpt2, next_token),
        ModelCase("llama", llama),
        ModelCase("vit_small", vit(384, 6, 4)),
        ModelCase("t5_encoder", t5_encoder),
        ModelCase("lstm", lstm),
        ModelCase("dlrm", dlrm),
        ModelCase("efficientnet_b0", efficientnet),
        ModelCase("convnext_tiny", convnext),
        ModelCase("densenet121", densenet),
        ModelCase("vit_base", vit(768, 12, 1)),
        ModelCase("swin_tiny", swin),
        ModelCase("bert_base", bert(12, 1, 128)),
        ModelCase("whisper_tiny_encoder", whisper_encoder),
        ModelCase("unet", unet),
        ModelCase("mlp_mixer", mixer),
    ]
}


# --- running and judging ---------------------------------------------------------------------------------------------


class Float64Everywhere(TorchDispatchMode):
    """Turns every float32 that a model asks for by name into float64.

    Models cast to float32 inside norms and rotary embeddings; without this a "float64" reference would be rounded there.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("dtype") is torch.float32:
            kwargs["dtype"] = torch.float64
        return func(*(torch.float64 if a is torch.float32 else a for a in args), **kwargs)


@contextlib.contextmanager
def float64_default() -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Float64Everywhere():
            yield
    finally:
        torch.set_default_dtype(before)


def flat(output: Any) -> list[Tensor]:
    """The tensors of a model's output, in order."""
    return [t for t in torch.utils._pytree.tree_leaves(output) if isinstance(t, Tensor)]


def training_step(module: nn.Module, inputs: tuple[Tensor, ...], forward: Callable, case: ModelCase) -> list[Tensor]:
    """Forward, loss and backward through `forward`, leaving the gradients in `module`; returns loss and gradients."""
    module.zero_grad(set_to_none=True)
    loss = case.loss(forward(*inputs), inputs)
    loss.backward()
    return [loss.detach()] + [p.grad for p in module.parameters() if p.grad is not None]


def float64_twin(case: ModelCase, small: bool, seed: int = 0) -> tuple[nn.Module, tuple[Tensor, ...]]:
    module, inputs = case.make(small, seed)
    return module.double(), tuple(t.double() if t.is_floating_point() else t for t in inputs)


def float64_reference(case: ModelCase, small: bool, train: bool = False, seed: int = 0) -> list[Tensor]:
    """The model's output (or loss and gradients) evaluated by eager PyTorch in float64 throughout."""
    module, inputs = float64_twin(case, small, seed)
    with float64_default():
        if train:
            return training_step(module.train(), inputs, module, case)
        with torch.no_grad():
            return flat(module(*inputs))


def relative_error(result: list[Tensor], reference: list[Tensor]) -> float:
    """Norm of the difference over norm of the reference, over all tensors together; inf where shapes differ or NaN."""
    if [t.shape for t in result] != [t.shape for t in reference]:
        return math.inf
    difference = sum(float((a.double() - b.double()).square().sum()) for a, b in zip(result, reference))
    norm = sum(float(b.double().square().sum()) for b in reference)
    if math.isnan(difference):
        return math.inf
    return math.sqrt(difference / norm) if norm else math.sqrt(difference)
