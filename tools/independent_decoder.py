"""Decoder-only transformers in numpy, straight from their formulas, in float64: what golden files of
the engine are compared with. Shares no code with the engine; written after the papers and the
reference code of Llama, Qwen 2, Qwen 3 and Gemma 3."""

import gguf
import numpy as np

GEMMA_GLOBAL_EVERY = 6


def silu(x):
    return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


class IndependentDecoder:
    """One GGUF file of architecture llama, qwen2, qwen3 or gemma3."""

    def __init__(self, reader):
        self.architecture = reader.fields["general.architecture"].contents()
        assert self.architecture in ("llama", "qwen2", "qwen3", "gemma3"), self.architecture

        def number(key, fallback=None):
            field = reader.fields.get(f"{self.architecture}.{key}")
            assert field is not None or fallback is not None, key
            return fallback if field is None else field.contents()

        self.layers = number("block_count")
        self.width = number("embedding_length")
        self.heads = number("attention.head_count")
        self.kv_heads = number("attention.head_count_kv", self.heads)
        self.head_size = number("attention.key_length", self.width // self.heads)
        self.epsilon = number("attention.layer_norm_rms_epsilon")
        self.rope_base = number("rope.freq_base", 10000.0)
        self.window = number("attention.sliding_window", 0)
        self.global_every = number("attention.sliding_window_pattern", GEMMA_GLOBAL_EVERY)
        self.packed = {t.name: t for t in reader.tensors}
        self.unpacked = {}

    @property
    def gemma(self):
        return self.architecture == "gemma3"

    def stored(self, name):
        """As float32, which holds every weight exactly."""
        if name not in self.unpacked:
            tensor = self.packed[name]
            self.unpacked[name] = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        return self.unpacked[name]

    def tensor(self, name):
        return self.stored(name).astype(np.float64)

    def norm(self, x, name):
        mean_square = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + self.epsilon) * self.tensor(name + ".weight")

    def is_windowed(self, layer):
        return self.gemma and self.window and (layer + 1) % self.global_every != 0

    def rope(self, x, base, factors):
        """x is [token, head, dim]."""
        dim = x.shape[-1]
        frequencies = float(base) ** (-np.arange(0, dim, 2) / dim) / factors
        angles = np.arange(x.shape[0])[:, None] * frequencies
        cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
        if self.architecture == "llama":  # the file's rows are ordered for neighbours as pairs
            a, b = x[..., 0::2], x[..., 1::2]
            return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)
        a, b = x[..., : dim // 2], x[..., dim // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def project(self, x, block, name, heads):
        out = x @ self.tensor(block + name + ".weight").T
        if block + name + ".bias" in self.packed:
            out = out + self.tensor(block + name + ".bias")
        return out.reshape(x.shape[0], heads, self.head_size)

    def attention(self, x, layer):
        block = f"blk.{layer}."
        count = x.shape[0]
        q = self.project(x, block, "attn_q", self.heads)
        k = self.project(x, block, "attn_k", self.kv_heads)
        v = self.project(x, block, "attn_v", self.kv_heads)
        if block + "attn_q_norm.weight" in self.packed:
            q, k = self.norm(q, block + "attn_q_norm"), self.norm(k, block + "attn_k_norm")
        windowed = self.is_windowed(layer)
        factors = 1.0
        if "rope_freqs.weight" in self.packed and not windowed:
            factors = self.tensor("rope_freqs.weight")
        base = 10000.0 if windowed else self.rope_base
        q, k = self.rope(q, base, factors), self.rope(k, base, factors)
        group = self.heads // self.kv_heads
        k, v = k.repeat(group, axis=1), v.repeat(group, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(self.head_size)
        distance = np.arange(count)[:, None] - np.arange(count)[None, :]
        hidden = distance < 0
        if windowed:
            hidden |= distance >= self.window
        scores[:, hidden] = -np.inf
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", scores, v).reshape(count, -1)
        return mixed @ self.tensor(block + "attn_output.weight").T

    def feed_forward(self, x, layer):
        block = f"blk.{layer}."
        gate = x @ self.tensor(block + "ffn_gate.weight").T
        up = x @ self.tensor(block + "ffn_up.weight").T
        act = gelu_tanh if self.gemma else silu
        return (act(gate) * up) @ self.tensor(block + "ffn_down.weight").T

    def logprobs(self, tokens, first=0):
        """[token, vocabulary]: of what follows each token from the first-th on."""
        x = self.stored("token_embd.weight")[np.asarray(tokens)].astype(np.float64)
        if self.gemma:
            x = x * np.sqrt(self.width)
        for layer in range(self.layers):
            block = f"blk.{layer}."
            added = self.attention(self.norm(x, block + "attn_norm"), layer)
            x = x + (self.norm(added, block + "post_attention_norm") if self.gemma else added)
            added = self.feed_forward(self.norm(x, block + "ffn_norm"), layer)
            x = x + (self.norm(added, block + "post_ffw_norm") if self.gemma else added)
        untied = "output.weight" in self.packed
        output = self.tensor("output.weight" if untied else "token_embd.weight")
        logits = self.norm(x[first:], "output_norm") @ output.T
        logits -= logits.max(axis=-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
