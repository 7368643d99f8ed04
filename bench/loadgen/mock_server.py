"""Usage: mock_server.py PORT FIRST_MS GAP_MS

An OpenAI-compatible server whose times are known: the first token leaves FIRST_MS after the request
has arrived, each further one GAP_MS after the one before, by deadlines that do not drift. One token
is one word. For comparing load generators: whatever they find beside these times is theirs."""

import asyncio
import json
import sys
import time


async def read_request(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    length = next((int(line.split(":")[1]) for line in lines
                   if line.lower().startswith("content-length:")), 0)
    return lines[0].split(" ")[1], await reader.readexactly(length) if length else b""


def reply(writer, status, body):
    content = json.dumps(body).encode()
    writer.write(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
                 f"Content-Length: {len(content)}\r\n\r\n".encode() + content)


def event(writer, data):
    content = b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"
    writer.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")


async def stream(writer, body, first_s, gap_s, arrived):
    is_chat = "messages" in body
    count = body.get("max_completion_tokens") or body.get("max_tokens") or 16
    prompt = str(body.get("prompt") or body["messages"])
    common = {"id": "x", "created": 0, "model": body["model"],
              "object": "chat.completion.chunk" if is_chat else "text_completion"}
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\n")
    for i in range(count):
        await asyncio.sleep(arrived + first_s + i * gap_s - time.monotonic())
        choice = {"index": 0, "finish_reason": "length" if i == count - 1 else None}
        choice |= {"delta": {"content": f" w{i}"}} if is_chat else {"text": f" w{i}"}
        event(writer, common | {"choices": [choice]})
    event(writer, common | {"choices": [], "usage": {
        "prompt_tokens": len(prompt.split()), "completion_tokens": count,
        "total_tokens": len(prompt.split()) + count}})
    event(writer, b"[DONE]")
    writer.write(b"0\r\n\r\n")


async def main():
    port, first_s, gap_s = int(sys.argv[1]), float(sys.argv[2]) / 1e3, float(sys.argv[3]) / 1e3

    async def serve(reader, writer):
        try:
            while True:
                path, content = await read_request(reader)
                arrived = time.monotonic()
                if path == "/v1/models":
                    reply(writer, 200, {"object": "list", "data": [{"id": "mock"}]})
                elif path == "/health":
                    reply(writer, 200, {})
                elif path == "/tokenize":
                    reply(writer, 200, {"count": len(json.loads(content)["prompt"].split())})
                elif path.endswith("completions"):
                    await stream(writer, json.loads(content), first_s, gap_s, arrived)
                else:
                    reply(writer, 404, {"error": {"message": "no such page"}})
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
