"""Usage: openvino_server.py MODEL PORT THREADS STREAMS

OpenVINO GenAI has no server: this is its continuous batching behind as little HTTP as the benchmark
needs, /health and streamed /v1/completions. Runs in an environment that has openvino-genai."""

import asyncio
import json
import sys

import numpy
import openvino
import openvino_genai as genai

KV_GIB = 4
STEP_TOKENS = 512
HEAD_BYTES_MAX = 1 << 16
BODY_BYTES_MAX = 1 << 22


class Batch:
    """The pipeline and who waits for its tokens. A step runs in a thread; what it gave is written
    before the next one begins, so that no token waits for a step that is not its own."""

    def __init__(self, model, threads, streams):
        scheduler = genai.SchedulerConfig()
        scheduler.cache_size = KV_GIB
        scheduler.max_num_seqs = streams
        scheduler.max_num_batched_tokens = STEP_TOKENS
        scheduler.enable_prefix_caching = True
        scheduler.dynamic_split_fuse = True
        self.pipeline = genai.ContinuousBatchingPipeline(
            model, scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads})
        self.tokenizer = self.pipeline.get_tokenizer()
        # Its own decoding would compute on the cores that the model needs.
        self.texts = {token: text.decode("utf-8", "replace")
                      for text, token in self.tokenizer.get_vocab().items()}
        self.number = 0
        self.running = {}  # number: (handle, queue of the answer)
        self.arrived = asyncio.Event()

    def add(self, prompt, tokens):
        """(length of the prompt, queue of lists of tokens; None is the end)."""
        if isinstance(prompt, str):
            ids = self.tokenizer.encode(prompt, add_special_tokens=False).input_ids
        else:
            ids = openvino.Tensor(numpy.array([prompt], dtype=numpy.int64))
        options = genai.GenerationConfig(max_new_tokens=tokens, ignore_eos=True, do_sample=False,
                                         apply_chat_template=False)
        queue = asyncio.Queue()
        self.running[self.number] = (self.pipeline.add_request(self.number, ids, options), queue)
        self.number += 1
        self.arrived.set()
        return ids.shape[1], queue

    async def compute(self):
        while True:
            await self.arrived.wait()
            await asyncio.to_thread(self.pipeline.step)
            for key, (handle, queue) in list(self.running.items()):
                if handle.can_read():
                    for output in handle.read().values():
                        queue.put_nowait(list(output.generated_ids))
                if handle.get_status() != genai.GenerationStatus.RUNNING:
                    queue.put_nowait(None)
                    del self.running[key]
            if not self.running:
                self.arrived.clear()
            await asyncio.sleep(0)  # the answers are written


async def read_request(reader):
    """(path, body), or None at the connection's end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in
                  (line.partition(":") for line in head[1:])}
        size = int(fields.get("content-length", 0))
        if size > BODY_BYTES_MAX:
            return None
        return head[0].split(" ")[1], await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def piece(text):
    return b"%x\r\n%s\r\n" % (len(text), text)


def event(body):
    return piece(b"data: " + json.dumps(body).encode() + b"\n\n")


async def complete(batch, body, writer):
    asked = json.loads(body)
    prompt_tokens, queue = batch.add(asked["prompt"], asked["max_tokens"])
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\n")
    about = {"id": "cmpl-1", "object": "text_completion", "created": 0, "model": "model"}
    count = 0
    while (tokens := await queue.get()) is not None:
        count += len(tokens)
        text = "".join(batch.texts[token] for token in tokens)
        last = count >= asked["max_tokens"]
        writer.write(event(about | {"choices": [{"index": 0, "text": text, "logprobs": None,
                                                 "finish_reason": "length" if last else None}]}))
        await writer.drain()
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": count,
             "total_tokens": prompt_tokens + count}
    writer.write(event(about | {"choices": [], "usage": usage}) + piece(b"data: [DONE]\n\n")
                 + b"0\r\n\r\n")
    await writer.drain()


async def serve(batch, reader, writer):
    try:
        while request := await read_request(reader):
            path, body = request
            if path == "/v1/completions":
                await complete(batch, body, writer)
            else:
                status = b"200 OK" if path == "/health" else b"404 Not Found"
                writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
    except ConnectionError:
        pass
    finally:
        writer.close()


async def main():
    model, port, threads, streams = sys.argv[1], *map(int, sys.argv[2:])
    batch = Batch(model, threads, streams)
    server = await asyncio.start_server(lambda r, w: serve(batch, r, w), "127.0.0.1", port,
                                        limit=HEAD_BYTES_MAX)
    await asyncio.gather(server.serve_forever(), batch.compute())


asyncio.run(main())
