"""One end of the measurement of Mooncake's transfer engine in bench/transport/run, over TCP:

  mooncake_peer.py serve TOKENS                      prints "HOST:PORT ADDRESS"
  mooncake_peer.py drive HOST:PORT ADDRESS TOKENS S  prints GB/s as JSON

The shapes are those of kv_transfer.cc: scattered blocks, in as large batches as Mooncake takes.
Mooncake writes without a checksum."""

import ctypes
import json
import sys
import time

from mooncake.engine import TransferEngine

BLOCK, BLOCK_TOKENS, LAYERS = 12288, 16, 30
BATCH = 1024  # blocks; it refuses some more


def scattered(blocks):
    return (list(range(0, blocks, 2)) + list(range(1, blocks, 2)))[::-1]


def start(tokens):
    engine = TransferEngine()
    if engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") != 0:
        sys.exit("mooncake does not start")
    blocks = LAYERS * tokens // BLOCK_TOKENS
    buffer = ctypes.create_string_buffer(blocks * BLOCK)
    ctypes.memset(buffer, 1, len(buffer))
    address = ctypes.addressof(buffer)
    if engine.register_memory(address, len(buffer)) != 0:
        sys.exit("mooncake does not register memory")
    return engine, buffer, address, blocks


def main():
    if sys.argv[1] == "serve":
        engine, buffer, address, _ = start(int(sys.argv[2]))
        print(f"127.0.0.1:{engine.get_rpc_port()} {address}", flush=True)
        sys.stdin.read()
        return
    target, remote, tokens, seconds = sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    engine, buffer, address, blocks = start(tokens)
    order = scattered(blocks)
    batches = []
    for i in range(0, blocks, BATCH):
        some = order[i:i + BATCH]
        batches.append(([address + j * BLOCK for j in some], [remote + j * BLOCK for j in some],
                        [BLOCK] * len(some)))
    moves, began = -1, 0.0
    while moves < 2 or time.monotonic() - began < float(seconds):
        for batch in batches:
            if engine.batch_transfer_sync_write(target, *batch) != 0:
                sys.exit("mooncake does not transfer")
        moves += 1
        if moves == 0:  # the first one connects
            began = time.monotonic()
    took = time.monotonic() - began
    print(json.dumps({"gb_per_s": moves * blocks * BLOCK / took / 1e9}))


main()
