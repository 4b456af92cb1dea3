"""The transformer of the built-in embedding model, as an OpenVINO graph over the weight file's blocks.

The matrices stay in 8 bits with one scale for 32 numbers, and activations are quantised as they come, which is
how the weights' author runs them (docs/decisions/built-in-embedder.md has what was measured).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from apps.models.builtin.weights import BLOCK, WeightFile, split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

STEP = 8  # lengths are padded to multiples, so that kernels are compiled for few shapes


class Network:
    """Ids to vectors. One call at a time: the caller holds a lock."""

    def __init__(self, weights: WeightFile, *, threads: int) -> None:
        import openvino

        shape = self.shape = weights.shape
        self._words = weights.blocks("emb.word").reshape(shape.words, -1, 18)
        types = weights.floats("emb.type")[: shape.width]
        self._positions = weights.floats("emb.pos").reshape(-1, shape.width) + types
        options = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": BLOCK,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,  # several processes would pin the same core
        }
        core = openvino.Core()
        known = core.get_property("CPU", "SUPPORTED_PROPERTIES")  # processors other than x86 know fewer
        options = {name: value for name, value in options.items() if name in known}
        compiled = core.compile_model(_graph(weights), "CPU", options)
        self._request: Any = compiled.create_infer_request()

    def read(self, windows: Sequence[Sequence[int]]) -> "tuple[Vectors, Vectors]":
        """Return the mean of each window's token states, [windows, width], and the states, [windows, length, width].

        A window is a text's ids without start and end, at most ``shape.positions - 2`` of them. Its states
        are those from place 1 on, as many as it has ids. Neither is normalised.
        """
        import numpy as np

        shape = self.shape
        longest = -(-(max(map(len, windows)) + 2) // STEP) * STEP
        longest = min(longest, shape.positions)
        ids = np.full((len(windows), longest), shape.padding, dtype=np.int64)
        mask = np.zeros((len(windows), longest), dtype=np.float32)
        for row, window in enumerate(windows):
            ids[row, : len(window) + 2] = [shape.start, *window, shape.end]
            mask[row, : len(window) + 2] = 1
        result = self._request.infer({0: self._embedded(ids) + self._positions[:longest], 1: mask})
        means, states = (np.array(result[output], dtype=np.float32) for output in (0, 1))
        return means, states

    def _embedded(self, ids: Any) -> Any:
        import numpy as np

        unique, places = np.unique(ids, return_inverse=True)
        scales, numbers = split(self._words[unique].reshape(-1, 18))
        rows = (numbers * scales.astype(np.float32)).reshape(len(unique), self.shape.width)
        return rows[places.reshape(ids.shape)]


def _graph(weights: WeightFile) -> Any:
    """Build the encoder: states and mask in, [batch, length, width] and [batch, length]; means and states out."""
    import numpy as np
    import openvino
    from openvino import opset13 as op

    shape = weights.shape
    size = shape.width // shape.heads

    def numbers(*values: int) -> Any:
        return op.constant(np.array(values, dtype=np.int64))

    def floats(value: Any) -> Any:
        return op.constant(np.ascontiguousarray(value, dtype=np.float32))

    def matrix(name: str, rows: int, columns: int) -> Any:
        scales, whole = split(weights.blocks(name))
        blocked = op.convert(op.constant(whole.reshape(rows, columns // BLOCK, BLOCK)), "f16")
        scaled = op.multiply(blocked, op.constant(scales.reshape(rows, columns // BLOCK, 1)))
        return op.convert(op.reshape(scaled, numbers(rows, columns), False), "f32")

    def linear(x: Any, name: str, rows: int, columns: int) -> Any:
        product = op.matmul(x, matrix(f"{name}.w", rows, columns), False, True)
        return op.add(product, floats(weights.floats(f"{name}.b")))

    def norm(x: Any, name: str) -> Any:
        centred = op.mvn(x, numbers(-1), True, shape.epsilon, "inside_sqrt")
        return op.add(op.multiply(centred, floats(weights.floats(f"{name}.w"))), floats(weights.floats(f"{name}.b")))

    def heads(x: Any, name: str) -> Any:
        split_up = op.reshape(linear(x, name, shape.width, shape.width), numbers(0, 0, shape.heads, size), True)
        return op.transpose(split_up, numbers(0, 2, 1, 3))

    states = op.parameter([-1, -1, shape.width], np.float32, "states")
    mask = op.parameter([-1, -1], np.float32, "mask")
    bias = op.unsqueeze(op.multiply(op.subtract(mask, floats(1.0)), floats(30_000.0)), numbers(1, 2))
    x = norm(states, "emb.ln")
    for layer in range(shape.layers):
        name = f"l{layer}"
        parts = [heads(x, f"{name}.{part}") for part in "qkv"]
        attended = op.transpose(op.scaled_dot_product_attention(*parts, bias), numbers(0, 2, 1, 3))
        joined = op.reshape(attended, numbers(0, 0, shape.width), True)
        x = norm(op.add(x, linear(joined, f"{name}.ao", shape.width, shape.width)), f"{name}.aln")
        inner = op.gelu(linear(x, f"{name}.fi", shape.inner, shape.width), "erf")
        x = norm(op.add(x, linear(inner, f"{name}.fo", shape.width, shape.inner)), f"{name}.oln")
    weighted = op.reduce_sum(op.multiply(x, op.unsqueeze(mask, numbers(-1))), numbers(1), False)
    mean = op.divide(weighted, op.reduce_sum(mask, numbers(1), True))
    return openvino.Model([mean, x], [states, mask], "multilingual-e5-small")
