#!/usr/bin/python3
"""PyTorch as a worker of bench/elastic.py: eager full training steps of a convolutional classifier in an ONNX file.

The nodes of the file are executed by torch functions in their order; a step is as in torch_train_worker.py. Only
what the classifiers of the bench are made of is known; anything else is named.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from peers import common, torch_train_worker, torch_worker  # noqa: E402
from peers.torch_worker import torch  # noqa: E402

onnx = common.require_module("onnx", "python3-onnx")
numpy_helper = common.require_module("onnx.numpy_helper", "python3-onnx")
functional = torch.nn.functional


class OnnxModule(torch.nn.Module):
    """The graph of an ONNX file as a module."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        graph = onnx.load(str(file)).graph
        self._input, self._output = graph.input[0].name, graph.output[0].name
        self._nodes = list(graph.node)
        self._names: dict[str, str] = {}
        statistics = {n for node in graph.node if node.op_type == "BatchNormalization" for n in node.input[3:5]}
        for index, tensor in enumerate(graph.initializer):
            value = torch.from_numpy(numpy_helper.to_array(tensor).copy())
            self._names[tensor.name] = f"tensor{index}"
            if value.is_floating_point() and value.dim() > 0 and tensor.name not in statistics:
                self.register_parameter(f"tensor{index}", torch.nn.Parameter(value))
            else:
                self.register_buffer(f"tensor{index}", value)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        values: dict[str, Any] = {self._input: images, "": None}
        values |= {name: getattr(self, attribute) for name, attribute in self._names.items()}
        for node in self._nodes:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            values[node.output[0]] = self._run(node.op_type, [values[n] for n in node.input], attributes)
        return values[self._output]

    def _run(self, op: str, x: list[Any], a: dict[str, Any]) -> Any:
        if op == "Conv":
            pads = a.get("pads", [0, 0, 0, 0])
            bias = x[2] if len(x) > 2 else None
            return functional.conv2d(x[0], x[1], bias, a.get("strides", 1), pads[:2], 1, a.get("group", 1))
        if op == "BatchNormalization":
            return functional.batch_norm(x[0], x[3], x[4], x[1], x[2], True, 0.1, a.get("epsilon", 1e-5))
        if op == "Relu":
            return functional.relu(x[0])
        if op == "Clip":
            return torch.clamp(x[0], float(x[1]), float(x[2]))
        if op == "Add":
            return x[0] + x[1]
        if op == "MaxPool":
            return functional.max_pool2d(x[0], a["kernel_shape"], a.get("strides"), a.get("pads", [0, 0])[:2])
        if op in ("GlobalAveragePool", "ReduceMean"):
            keep = op == "GlobalAveragePool" or a.get("keepdims", 1) == 1
            return x[0].mean((2, 3), keepdim=keep)
        if op in ("Flatten", "Reshape"):
            return torch.flatten(x[0], 1)
        if op == "Gemm":
            return functional.linear(x[0], x[1] if a.get("transB", 0) else x[1].t(), x[2])
        if op == "Constant":
            return torch.from_numpy(numpy_helper.to_array(a["value"]).copy())
        if op == "Identity":
            return x[0]
        raise common.UsageError(f"this worker does not know the operator {op}")


def main() -> int:
    parser = common.make_parser(__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--format", choices=list(torch_train_worker.FORMATS), default="contiguous")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    module = OnnxModule(arguments.model)
    shape = common.model_inputs(arguments.model)[0]
    images = torch.from_numpy(common.random_input(shape, arguments.batch, 1))
    trainer = torch_train_worker.Trainer(module, images, arguments.format)
    torch_worker.serve(torch_train_worker.Server(trainer, torch_train_worker.process_memory("VmRSS")))
    return 0


if __name__ == "__main__":
    common.run_main(main)
