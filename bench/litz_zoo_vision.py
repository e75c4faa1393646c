"""Vision models, written out: the part of the model zoo (`litz_zoo`) that needs nothing but PyTorch, and two of the
`transformers` package.

Each builder takes `small` and gives the module and example inputs.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Built = tuple[nn.Module, tuple[Tensor, ...]]


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


def resnet(block: type, depths: tuple[int, ...]) -> Callable[[bool], Built]:
    def build(small: bool) -> Built:
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


def mobilenet(small: bool) -> Built:
    if small:
        module, x = MobileNetV3(MOBILENET_V3_LARGE[:4], 32, 10), torch.randn(2, 3, 33, 33)
    else:
        module, x = MobileNetV3(MOBILENET_V3_LARGE, 1280, 1000), torch.randn(4, 3, 224, 224)
    use_plausible_statistics(module)
    return module, (x,)


# --- more convolutional networks -------------------------------------------------------------------------------------


class DenseLayer(nn.Module):
    """What it computes joins what it is given."""

    def __init__(self, inp: int, growth: int):
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(inp), nn.BatchNorm2d(4 * growth)
        self.conv1 = nn.Conv2d(inp, 4 * growth, 1, bias=False)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(F.relu(self.norm1(x)))
        return torch.cat([x, self.conv2(F.relu(self.norm2(y)))], 1)


class DenseNet(nn.Module):
    """Huang et al. 2017."""

    def __init__(self, blocks: tuple[int, ...], growth: int, classes: int):
        super().__init__()
        width = 2 * growth
        parts: list[nn.Module] = [conv_bn(3, width, 7, 2, act=nn.ReLU()), nn.MaxPool2d(3, 2, 1)]
        for number, layers in enumerate(blocks):
            for _ in range(layers):
                parts.append(DenseLayer(width, growth))
                width += growth
            parts += [nn.BatchNorm2d(width), nn.ReLU()]
            if number + 1 < len(blocks):
                parts += [nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
                width //= 2
        self.features, self.head = nn.Sequential(*parts), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.features(x), 1), 1))


def densenet(small: bool) -> Built:
    module = DenseNet((2, 2), 4, 10) if small else DenseNet((6, 12, 24, 16), 32, 1000)
    use_plausible_statistics(module)
    return module, (torch.randn(2, 3, 32, 32) if small else torch.randn(1, 3, 224, 224),)


class MBConv(nn.Module):
    """Tan and Le 2019: widened, depthwise, squeezed and excited, narrowed."""

    def __init__(self, inp: int, out: int, kernel: int, stride: int, expand: int):
        super().__init__()
        wide = inp * expand
        self.widen = conv_bn(inp, wide, 1, act=nn.SiLU()) if expand > 1 else nn.Identity()
        self.depthwise = conv_bn(wide, wide, kernel, stride, groups=wide, act=nn.SiLU())
        self.squeeze, self.excite = nn.Conv2d(wide, max(1, inp // 4), 1), nn.Conv2d(max(1, inp // 4), wide, 1)
        self.narrow = conv_bn(wide, out, 1)
        self.has_skip = stride == 1 and inp == out

    def forward(self, x: Tensor) -> Tensor:
        y = self.depthwise(self.widen(x))
        y = y * torch.sigmoid(self.excite(F.silu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        y = self.narrow(y)
        return x + y if self.has_skip else y


EFFICIENTNET_B0 = [  # expansion, channels, layers, stride, kernel
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
]


class EfficientNet(nn.Module):
    def __init__(self, settings: list[tuple[int, int, int, int, int]], width: int, last: int, classes: int):
        super().__init__()
        parts: list[nn.Module] = [conv_bn(3, width, 3, 2, act=nn.SiLU())]
        for expand, channels, layers, stride, kernel in settings:
            for layer in range(layers):
                parts.append(MBConv(width, channels, kernel, stride if layer == 0 else 1, expand))
                width = channels
        parts.append(conv_bn(width, last, 1, act=nn.SiLU()))
        self.features, self.head = nn.Sequential(*parts), nn.Linear(last, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.features(x), 1), 1))


def efficientnet(small: bool) -> Built:
    module = EfficientNet([(1, 8, 1, 1, 3), (6, 12, 2, 2, 5)], 8, 32, 10) if small else EfficientNet(EFFICIENTNET_B0, 32, 1280, 1000)
    use_plausible_statistics(module)
    return module, (torch.randn(2, 3, 33, 33) if small else torch.randn(4, 3, 224, 224),)


class UNet(nn.Module):
    """Ronneberger et al. 2015, with padded convolutions: halves down, doubles up, and joins both on each level."""

    def __init__(self, width: int, levels: int, classes: int):
        super().__init__()
        widths = [width << level for level in range(levels)]
        self.down = nn.ModuleList(self.two(i, o) for i, o in zip([3, *widths], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[:-1])
        self.join = nn.ModuleList(self.two(2 * w, w) for w in widths[:-1])
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def two(inp: int, out: int) -> nn.Module:
        return nn.Sequential(conv_bn(inp, out, 3, act=nn.ReLU()), conv_bn(out, out, 3, act=nn.ReLU()))

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        for level in reversed(range(len(self.up))):
            x = self.join[level](torch.cat([skips[level], self.up[level](x)], 1))
        return self.head(x)


def unet(small: bool) -> Built:
    module = UNet(4, 3, 5) if small else UNet(32, 5, 21)
    use_plausible_statistics(module)
    return module, (torch.randn(1, 3, 24, 24) if small else torch.randn(1, 3, 256, 256),)


# --- mixtures of both ------------------------------------------------------------------------------------------------


class Features(nn.Module):
    """The pooled features of a vision model of the `transformers` package."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor) -> Tensor:
        return self.model(pixel_values=pixels, return_dict=False)[1]


def convnext(small: bool) -> Built:
    from transformers import ConvNextConfig, ConvNextModel

    size: dict[str, Any] = dict(hidden_sizes=[8, 16], depths=[1, 2], num_stages=2) if small else {}
    return Features(ConvNextModel(ConvNextConfig(**size))), (torch.randn(2, 3, 32, 32) if small else torch.randn(1, 3, 224, 224),)


def swin(small: bool) -> Built:
    from transformers import SwinConfig, SwinModel

    size: dict[str, Any] = dict(image_size=32, patch_size=2, embed_dim=12, depths=[2, 2], num_heads=[2, 3], window_size=4) if small \
        else dict(image_size=224, embed_dim=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24], window_size=7)
    return Features(SwinModel(SwinConfig(**size))), (torch.randn(2, 3, 32, 32) if small else torch.randn(1, 3, 224, 224),)


class MixerBlock(nn.Module):
    """Tolstikhin et al. 2021: an MLP across the patches, and one across the channels."""

    def __init__(self, patches: int, dim: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tokens = nn.Sequential(nn.Linear(patches, dim // 2), nn.GELU(), nn.Linear(dim // 2, patches))
        self.channels = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, image: int, patch: int, dim: int, depth: int, classes: int):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, patch)
        self.blocks = nn.Sequential(*(MixerBlock((image // patch) ** 2, dim) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.patches(x).flatten(2).transpose(1, 2))).mean(1))


def mixer(small: bool) -> Built:
    return (Mixer(16, 4, 24, 2, 10), (torch.randn(2, 3, 16, 16),)) if small else (Mixer(224, 16, 512, 8, 1000), (torch.randn(4, 3, 224, 224),))


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


def vit(dim: int, heads: int, batch: int) -> Callable[[bool], Built]:
    def build(small: bool) -> Built:
        if small:
            return ViT(16, 4, 24, 2, 3, 10), (torch.randn(2, 3, 16, 16),)
        return ViT(224, 16, dim, 12, heads, 1000), (torch.randn(batch, 3, 224, 224),)

    return build
