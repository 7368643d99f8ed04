"""llama.cpp, run through the PyPI package xllamacpp: what golden files are made with."""

import json
import urllib.request

import xllamacpp


class LlamaServer:
    """One model, served on a loopback port for as long as this object lives."""

    def __init__(
        self, model, context=512, parallel=1, threads=1, cache_type=None, flash_attention=True
    ):
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_ctx = context * parallel
        params.n_parallel = parallel
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.warmup = False
        params.port = 0
        params.ctx_shift = False
        if cache_type is not None:
            params.cache_type_k = cache_type
            params.cache_type_v = cache_type
        if not flash_attention:
            params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self._server = xllamacpp.Server(params)

    def post(self, path, body):
        request = urllib.request.Request(
            self._server.listening_address + path,
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    def tokenize(self, text, parse_special):
        return self.post(
            "/tokenize", {"content": text, "parse_special": parse_special, "add_special": False}
        )["tokens"]


def version():
    from importlib.metadata import version as installed

    return "xllamacpp " + installed("xllamacpp")
