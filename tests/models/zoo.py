"""Networks of the model zoo, as ordinary PyTorch code.

Every builder is a function without arguments that returns an untrained `nn.Module` taking one float image
tensor of shape (N, C, H, W). `export.py` gives them weights; `bench/peers/torch_worker.py` rebuilds them to
time PyTorch on the same network, so a parameter's name here is part of the contract with exported files.
"""

from __future__ import annotations

import math
from typing import Callable

import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn


# --- CIFAR residual networks: shortcuts by strided slice and zero padding ("option A" of He et al.) ---


class CifarBlock(nn.Module):
    """Two 3x3 convolutions with a parameter-free shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.grow = (outputs - inputs) // 2

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.grow:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.grow, self.grow))
        return F.relu(y + x)


class CifarResNet(nn.Module):
    """ResNet of depth 6n+2 for 3x32x32 images and 10 classes."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        blocks = (depth - 2) // 6
        self.layer1 = self._stage(16, 16, 1, blocks)
        self.layer2 = self._stage(16, 32, 2, blocks)
        self.layer3 = self._stage(32, 64, 2, blocks)
        self.linear = nn.Linear(64, 10)

    @staticmethod
    def _stage(inputs: int, outputs: int, stride: int, blocks: int) -> nn.Sequential:
        first = CifarBlock(inputs, outputs, stride)
        return nn.Sequential(first, *(CifarBlock(outputs, outputs, 1) for _ in range(blocks - 1)))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


# --- SENet-18 ------------------------------------------------------------------------------------------


class SqueezeExcite(nn.Module):
    """Scales channels by a two-layer network over their means."""

    def __init__(self, channels: int, reduction: int = 16) -> None:
        super().__init__()
        self.fc1 = nn.Linear(channels, channels // reduction)
        self.fc2 = nn.Linear(channels // reduction, channels)

    def forward(self, x: Tensor) -> Tensor:
        n, c, _, _ = x.shape
        s = x.mean(dim=(2, 3)).view(n, c)
        s = torch.sigmoid(self.fc2(F.relu(self.fc1(s))))
        return x * s.view(n, c, 1, 1)


class SEBlock(nn.Module):
    """Basic residual block with squeeze-and-excitation before the addition."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.se = SqueezeExcite(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.se(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        return F.relu(y + self.shortcut(x))


def senet18() -> nn.Module:
    """ResNet-18 with squeeze-and-excitation, 224 px, 1000 classes."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for outputs, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(SEBlock(inputs, outputs, stride))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


# --- vision transformer -------------------------------------------------------------------------------


class Attention(nn.Module):
    """Multi-head self-attention with one projection for query, key and value."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, tokens, width = x.shape
        qkv = self.qkv(x).reshape(n, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        weights = ((q @ k.transpose(-2, -1)) * self.scale).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(n, tokens, width))


class TransformerBlock(nn.Module):
    """Pre-norm transformer block with a GELU MLP of four times the width."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """ViT with a class token and learned positions."""

    def __init__(self, size: int, patch: int, width: int, depth: int, heads: int, classes: int) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, width, patch, patch)
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, width))
        self.blocks = nn.Sequential(*(TransformerBlock(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


# --- ConvNeXt-like: depthwise 7x7, LayerNorm in channels-last permutes --------------------------------


class ConvNextBlock(nn.Module):
    """Depthwise convolution and an MLP over channels, with layer scale."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.expand = nn.Linear(channels, 4 * channels)
        self.project = nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(0.5 + 0.1 * torch.randn(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.depthwise(x).permute(0, 2, 3, 1)
        y = self.scale * self.project(F.gelu(self.expand(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of an NCHW tensor, written out as ConvNeXt does."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(1, keepdim=True)
        var = (x - mean).pow(2).mean(1, keepdim=True)
        x = (x - mean) / torch.sqrt(var + 1e-6)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


def convnext_small() -> nn.Module:
    """Two-stage ConvNeXt for 96 px images, 100 classes."""
    return nn.Sequential(
        nn.Conv2d(3, 48, 4, 4),
        ChannelNorm(48),
        *(ConvNextBlock(48) for _ in range(2)),
        ChannelNorm(48),
        nn.Conv2d(48, 96, 2, 2),
        *(ConvNextBlock(96) for _ in range(2)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.LayerNorm(96),
        nn.Linear(96, 100),
    )


# --- dense prediction ---------------------------------------------------------------------------------


def conv_bn_leaky(inputs: int, outputs: int, kernel: int) -> nn.Sequential:
    """The building block of Darknet."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, 1, kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.LeakyReLU(0.1),
    )


class YoloV3Tiny(nn.Module):
    """YOLOv3-tiny with its two raw detection heads, 80 classes."""

    def __init__(self) -> None:
        super().__init__()
        channels = (3, 16, 32, 64, 128, 256)
        stages: list[nn.Module] = []
        for i, (inputs, outputs) in enumerate(zip(channels, channels[1:])):
            stages += [nn.MaxPool2d(2, 2)] if i else []
            stages.append(conv_bn_leaky(inputs, outputs, 3))
        self.stem = nn.Sequential(*stages)
        self.deep = nn.Sequential(
            nn.MaxPool2d(2, 2),
            conv_bn_leaky(256, 512, 3),
            nn.ZeroPad2d((0, 1, 0, 1)),
            nn.MaxPool2d(2, 1),
            conv_bn_leaky(512, 1024, 3),
            conv_bn_leaky(1024, 256, 1),
        )
        self.head_coarse = nn.Sequential(conv_bn_leaky(256, 512, 3), nn.Conv2d(512, 255, 1))
        self.lateral = conv_bn_leaky(256, 128, 1)
        self.upsample = nn.Upsample(scale_factor=2, mode="nearest")
        self.head_fine = nn.Sequential(conv_bn_leaky(384, 256, 3), nn.Conv2d(256, 255, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        shallow = self.stem(x)
        deep = self.deep(shallow)
        merged = torch.cat((self.upsample(self.lateral(deep)), shallow), dim=1)
        return self.head_coarse(deep), self.head_fine(merged)


class UNet(nn.Module):
    """Three-level U-Net: transposed convolutions up, concatenated skips, 5 classes per pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = self._pair(3, 16), self._pair(16, 32), self._pair(32, 64)
        self.up2 = nn.ConvTranspose2d(64, 32, 2, 2)
        self.merge2 = self._pair(64, 32)
        self.up1 = nn.ConvTranspose2d(32, 16, 3, 2, 1, output_padding=1)
        self.merge1 = self._pair(32, 16)
        self.head = nn.Conv2d(16, 5, 1)

    @staticmethod
    def _pair(inputs: int, outputs: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for i in (inputs, outputs):
            layers += [nn.Conv2d(i, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        one = self.down1(x)
        two = self.down2(F.max_pool2d(one, 2))
        y = self.bottom(F.max_pool2d(two, 2))
        y = self.merge2(torch.cat((self.up2(y), two), 1))
        y = self.merge1(torch.cat((self.up1(y), one), 1))
        return self.head(y).softmax(dim=1)


class SegmentationOutput(nn.Module):
    """Turns torchvision's dictionary of segmentation outputs into the one tensor "out"."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)["out"]


def deeplabv3_mobilenet_v3_large() -> nn.Module:
    """torchvision's DeepLabV3 on MobileNetV3-Large, 21 classes."""
    build = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large
    return SegmentationOutput(build(weights=None, weights_backbone=None, num_classes=21))


# --- branches -----------------------------------------------------------------------------------------


class InceptionBlock(nn.Module):
    """Four parallel branches, with 1x7 and 7x1 kernels, joined by a concatenation."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.one = self._conv(inputs, 16, 1, 1)
        self.seven = nn.Sequential(
            self._conv(inputs, 16, 1, 1), self._conv(16, 24, 1, 7), self._conv(24, 24, 7, 1)
        )
        self.three = nn.Sequential(self._conv(inputs, 16, 1, 1), self._conv(16, 24, 3, 3))
        self.pool = self._conv(inputs, 8, 1, 1)

    @staticmethod
    def _conv(inputs: int, outputs: int, height: int, width: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, (height, width), padding=(height // 2, width // 2), bias=False),
            nn.BatchNorm2d(outputs, eps=1e-3),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        pooled = F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        return torch.cat((self.one(x), self.seven(x), self.three(x), self.pool(pooled)), dim=1)


def inception_small() -> nn.Module:
    """Two inception blocks for 75 px images, 10 classes."""
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, 2),
        nn.ReLU(),
        InceptionBlock(24),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        InceptionBlock(72),
        nn.AvgPool2d(3, 2, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(72, 10),
    )


def swin_small() -> nn.Module:
    """torchvision's Swin transformer with two stages: shifted windows, rolls, relative positions."""
    return torchvision.models.swin_transformer.SwinTransformer(
        patch_size=[4, 4], embed_dim=48, depths=[2, 2], num_heads=[3, 6], window_size=[7, 7], num_classes=50
    )


# --- networks of torchvision for images of 64 pixels: small enough to run in every test -----------------


def resnet50_small() -> nn.Module:
    """ResNet-50 with bottlenecks of half the width and a 3x3 stem that keeps the resolution."""
    block = torchvision.models.resnet.Bottleneck
    model = torchvision.models.ResNet(block, [3, 4, 6, 3], num_classes=20, width_per_group=32)
    model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    return model


def mobilenet_v2_small() -> nn.Module:
    """MobileNetV2 whose stem keeps the resolution."""
    model = torchvision.models.mobilenet_v2(weights=None, num_classes=20)
    model.features[0][0] = nn.Conv2d(3, 32, 3, 1, 1, bias=False)
    return model


def _torchvision(name: str) -> Callable[[], nn.Module]:
    return lambda: getattr(torchvision.models, name)(weights=None)


BUILDERS: dict[str, Callable[[], nn.Module]] = {
    **{
        name: _torchvision(name)
        for name in (
            "resnet18", "resnet50", "vgg16", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large",
            "shufflenet_v2_x1_0", "squeezenet1_1", "efficientnet_b0", "densenet121", "regnet_y_400mf",
            "efficientnet_v2_s", "regnet_x_400mf", "resnext50_32x4d", "mnasnet1_0",
        )
    },
    "senet18": senet18,
    "vit_tiny": lambda: VisionTransformer(size=224, patch=16, width=192, depth=12, heads=3, classes=1000),
    "deeplabv3_mobilenet_v3_large": deeplabv3_mobilenet_v3_large,
    "yolov3_tiny": YoloV3Tiny,
    "resnet50_small": resnet50_small,
    "mobilenet_v2_small": mobilenet_v2_small,
    "vit_small": lambda: VisionTransformer(size=64, patch=8, width=96, depth=9, heads=3, classes=20),
    "resnet20": lambda: CifarResNet(20),
    "resnet56": lambda: CifarResNet(56),
    "unet_small": UNet,
    "convnext_small": convnext_small,
    "inception_small": inception_small,
    "swin_small": swin_small,
}


def build(name: str) -> nn.Module:
    """Returns the untrained network `name`; raises KeyError for a name that is not in the zoo."""
    return BUILDERS[name]()


def perturb_batch_norm(model: nn.Module, samples: tuple[Tensor, ...], generator: torch.Generator) -> None:
    """Gives every batch normalisation believable statistics, in place.

    The running statistics are those of `samples` under the current weights, so that activations keep their
    scale through any depth; they and the affine parameters are then moved a little, so that an importer
    which drops or swaps one of the four vectors is caught. Leaves the model in evaluation mode.
    """
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    dropouts = [m for m in model.modules() if isinstance(m, nn.Dropout)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    for dropout in dropouts:
        dropout.eval()
    with torch.no_grad():
        if norms:
            model(*samples)
        for norm in norms:
            _move(norm, generator)
    model.eval()


def _move(norm: nn.modules.batchnorm._BatchNorm, generator: torch.Generator) -> None:
    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(norm.num_features, generator=generator)

    norm.running_var.clamp_(min=1e-2)
    norm.running_mean += uniform(-0.1, 0.1) * norm.running_var.sqrt()
    norm.running_var *= uniform(0.8, 1.25)
    if norm.affine:
        norm.weight.copy_(uniform(0.8, 1.2))
        norm.bias.copy_(uniform(-0.2, 0.2))


def output_scale(outputs: Tensor | tuple[Tensor, ...]) -> float:
    """Returns the largest magnitude over all outputs; NaN or infinity if any element is."""
    tensors = (outputs,) if isinstance(outputs, Tensor) else outputs
    largest = 0.0
    for tensor in tensors:
        value = float(tensor.double().abs().max()) if tensor.numel() else 0.0
        if not math.isfinite(value):
            return value
        largest = max(largest, value)
    return largest
