"""2,000 streams that wait or are not read do not delay one that runs."""

import json
import os
import resource
import socket
import statistics
import time
import unittest

from server import MODEL, Server, chat, wait_until

IDLE = int(os.environ.get("TROUPE_IDLE_STREAMS", "2000"))
TOKENS = 64


def gaps(server):
    """Seconds between the events of one running stream."""
    line = server.open_stream({"prompt": "Once", "max_tokens": TOKENS, "ignore_eos": True,
                               "temperature": 0}, path="/v1/completions")
    got, times = b"", []
    while b"[DONE]" not in got:
        part = line.recv(65536)
        assert part, got[-300:]
        got += part
        times.append(time.monotonic())
    line.close()
    assert got.count(b"data: {") >= TOKENS, got[-300:]
    return [after - before for before, after in zip(times, times[1:])]


class IdleStreamsTest(unittest.TestCase):
    def test_a_busy_stream_among_2000_idle_ones(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 3 * IDLE + 1000), hard))
        try:
            # Without guesses each token is an event.
            with Server("--speculation", "off", "--max-requests", 2 * IDLE, "--max-running", 2,
                        "--context-length", 2048,
                        "--kv-memory-mib", 128) as server:
                self.among(server)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def among(self, server):
        gaps(server)  # warm
        alone = gaps(server)
        memory = server.resident_bytes()
        # One that runs for as long as this takes, so that all others wait in the queue.
        holder = server.open_stream(chat("Hold", max_tokens=1900, ignore_eos=True))
        holder.recv(100)
        busy = server.open_stream({"prompt": "Once", "max_tokens": 1900, "ignore_eos": True,
                                   "temperature": 0}, path="/v1/completions")
        body = json.dumps({"model": MODEL, "stream": True, "max_tokens": 4,
                           "messages": [{"role": "user", "content": "Wait"}]}).encode()
        head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
                f"\r\nContent-Length: {len(body)}\r\n\r\n").encode()
        idle = []
        try:
            for _ in range(IDLE):
                line = socket.create_connection(("127.0.0.1", server.port), timeout=30)
                line.sendall(head + body)
                idle.append(line)
            wait_until(lambda: server.metric("vllm:num_requests_waiting") >= IDLE, 60,
                       "all of them wait")
            self.assertGreaterEqual(server.metric("troupe_client_connections"), IDLE)
            per_stream = (server.resident_bytes() - memory) / IDLE
            began, events, among = time.monotonic(), 0, []
            last = began
            while events < TOKENS:
                part = busy.recv(65536)
                self.assertTrue(part)
                now = time.monotonic()
                events += part.count(b"data: {")
                among.append(now - last)
                last = now
            # Probes are answered meanwhile.
            asked = time.monotonic()
            self.assertEqual(server.get("/health").status, 200)
            probe = time.monotonic() - asked
            print(f"\nidle streams {IDLE}: {per_stream / 1024:.1f} KiB each; median gap "
                  f"{statistics.median(alone) * 1e3:.2f} ms alone, "
                  f"{statistics.median(among) * 1e3:.2f} ms among them; probe {probe * 1e3:.1f} ms")
            self.assertLess(statistics.median(among), 0.5)
            self.assertLess(per_stream, 64 << 10)
        finally:
            for line in [holder, busy, *idle]:
                line.close()
        server.wait_idle(30)


if __name__ == "__main__":
    unittest.main()
