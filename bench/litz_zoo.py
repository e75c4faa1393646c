"""The model zoo: real architectures built from configuration with fixed random weights, nothing downloaded.

`MODELS[name].make(small=False)` gives `(module, inputs)`, the module in eval mode and returning tensors only.
`small=True` gives the same architecture cut down for tests. A case with a `loss` can take a training step.
Vision models are written out here; the transformers come from the `transformers` package.
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


# --- convolutional networks ------------------------------------------------------------------------------------------


def conv_bn(inp: int, out: int, kernel: int, stride: int = 1, groups: int = 1, act: nn.Module | None = None,
            eps: float = 1e-5, momentum: float = 0.1) -> nn.Sequential:
    parts: list[nn.Module] = [
        nn.Conv2d(inp, out, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
        nn.BatchNorm2d(out, eps=eps, momentum=momentum),
    ]
    return nn.Sequential(*parts, *([act] if act else []))


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inp: int, planes: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(conv_bn(inp, planes, 3, stride, act=nn.ReLU(inplace=True)), conv_bn(planes, planes, 3))
        self.skip = nn.Identity() if stride == 1 and inp == planes else conv_bn(inp, planes, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.skip(x), inplace=True)


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inp: int, planes: int, stride: int):
        super().__init__()
        out = planes * self.expansion
        self.body = nn.Sequential(
            conv_bn(inp, planes, 1, act=nn.ReLU(inplace=True)),
            conv_bn(planes, planes, 3, stride, act=nn.ReLU(inplace=True)),
            conv_bn(planes, out, 1),
        )
        self.skip = nn.Identity() if stride == 1 and inp == out else conv_bn(inp, out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.skip(x), inplace=True)


class ResNet(nn.Module):
    """He et al. 2015, in the v1.5 form (the stride of a bottleneck sits in its 3x3 convolution)."""

    def __init__(self, block: type, depths: tuple[int, ...], width: int = 64, classes: int = 1000):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, width, 7, 2, act=nn.ReLU(inplace=True)), nn.MaxPool2d(3, 2, 1))
        inp, stages = width, []
        for stage, depth in enumerate(depths):
            planes = width * 2**stage
            for index in range(depth):
                stages.append(block(inp, planes, 2 if stage > 0 and index == 0 else 1))
                inp = planes * block.expansion
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(inp, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.stages(self.stem(x)), 1), 1))


def use_plausible_statistics(module: nn.Module) -> None:
    """Give batch norms running statistics that are not the identity, as a trained model has."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean, 0.0, 0.1)
            nn.init.uniform_(layer.running_var, 0.8, 1.2)


def resnet(block: type, depths: tuple[int, ...]) -> Callable[[bool], tuple[nn.Module, tuple[Tensor, ...]]]:
    def build(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
        module = ResNet(block, (1, 1), 8, 10) if small else ResNet(block, depths)
        use_plausible_statistics(module)
        return module, (torch.randn(2, 3, 33, 33) if small else torch.randn(4, 3, 224, 224),)

    return build


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, squeezed: int):
        super().__init__()
        self.reduce = nn.Conv2d(channels, squeezed, 1)
        self.expand = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * F.hardsigmoid(self.expand(F.relu(self.reduce(F.adaptive_avg_pool2d(x, 1)))))


def divisible(value: float) -> int:
    rounded = max(8, int(value + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * value else rounded


class InvertedResidual(nn.Module):
    def __init__(self, inp: int, kernel: int, wide: int, out: int, excite: bool, act: type, stride: int):
        super().__init__()

        def bn(*args: int, **more: Any) -> nn.Sequential:
            return conv_bn(*args, eps=1e-3, momentum=0.01, **more)

        parts: list[nn.Module] = [bn(inp, wide, 1, act=act())] if wide != inp else []
        parts.append(bn(wide, wide, kernel, stride, wide, act=act()))
        if excite:
            parts.append(SqueezeExcite(wide, divisible(wide / 4)))
        parts.append(bn(wide, out, 1))
        self.body = nn.Sequential(*parts)
        self.residual = stride == 1 and inp == out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.residual else self.body(x)


# kernel, expanded channels, output channels, squeeze-excite, activation, stride: MobileNetV3-large, table 1 of the paper
MOBILENET_V3_LARGE = [
    (3, 16, 16, False, nn.ReLU, 1), (3, 64, 24, False, nn.ReLU, 2), (3, 72, 24, False, nn.ReLU, 1),
    (5, 72, 40, True, nn.ReLU, 2), (5, 120, 40, True, nn.ReLU, 1), (5, 120, 40, True, nn.ReLU, 1),
    (3, 240, 80, False, nn.Hardswish, 2), (3, 200, 80, False, nn.Hardswish, 1), (3, 184, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1), (3, 480, 112, True, nn.Hardswish, 1), (3, 672, 112, True, nn.Hardswish, 1),
    (5, 672, 160, True, nn.Hardswish, 2), (5, 960, 160, True, nn.Hardswish, 1), (5, 960, 160, True, nn.Hardswish, 1),
]


class MobileNetV3(nn.Module):
    def __init__(self, settings: list[tuple], last: int, classes: int):
        super().__init__()
        inp = 16
        parts: list[nn.Module] = [conv_bn(3, inp, 3, 2, act=nn.Hardswish(), eps=1e-3, momentum=0.01)]
        for kernel, wide, out, excite, act, stride in settings:
            parts.append(InvertedResidual(inp, kernel, wide, out, excite, act, stride))
            inp = out
        parts.append(conv_bn(inp, 6 * inp, 1, act=nn.Hardswish(), eps=1e-3, momentum=0.01))
        self.features = nn.Sequential(*parts)
        self.head = nn.Sequential(nn.Linear(6 * inp, last), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.features(x), 1), 1))


def mobilenet(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    if small:
        module, x = MobileNetV3(MOBILENET_V3_LARGE[:4], 32, 10), torch.randn(2, 3, 33, 33)
    else:
        module, x = MobileNetV3(MOBILENET_V3_LARGE, 1280, 1000), torch.randn(4, 3, 224, 224)
    use_plausible_statistics(module)
    return module, (x,)


# --- transformers ----------------------------------------------------------------------------------------------------


class ViTBlock(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Dosovitskiy et al. 2020: patches, a class token, learned positions, pre-norm blocks."""

    def __init__(self, image: int, patch: int, dim: int, depth: int, heads: int, classes: int):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, dim) * 0.02)
        self.blocks = nn.Sequential(*(ViTBlock(dim, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


def vit(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    if small:
        return ViT(16, 4, 24, 2, 3, 10), (torch.randn(2, 3, 16, 16),)
    return ViT(224, 16, 384, 12, 6, 1000), (torch.randn(4, 3, 224, 224),)


class FirstOutput(nn.Module):
    """A `transformers` model that returns its first output as a tensor and keeps no key-value cache."""

    def __init__(self, model: nn.Module, **more: Any):
        super().__init__()
        self.model, self.more = model, more

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.model(input_ids=ids, attention_mask=mask, return_dict=False, **self.more)[0]


def bert(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    from transformers import BertConfig, BertModel

    size = dict(vocab_size=99, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48) if small \
        else dict(hidden_size=768, num_hidden_layers=4, num_attention_heads=12, intermediate_size=3072)
    config = BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **size)
    shape = (2, 9) if small else (4, 128)
    return FirstOutput(BertModel(config)), (torch.randint(config.vocab_size, shape), padding_mask(shape))


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
        ModelCase("bert", bert, token_classes),
        ModelCase("gpt2", gpt2, next_token),
        ModelCase("llama", llama),
        ModelCase("vit_small", vit),
        ModelCase("t5_encoder", t5_encoder),
        ModelCase("lstm", lstm),
        ModelCase("dlrm", dlrm),
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
