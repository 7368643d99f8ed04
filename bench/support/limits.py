"""What the machine allows at best, by the program `limits` (bench/limits)."""

import json
import subprocess
import tempfile
from pathlib import Path

LIMITS_S = 120


def measure_limits(build, model, threads, phases):
    """{(sequences, tokens, context): tokens per second}; empty where the program is not built."""
    program = build / "bin/limits"
    if not program.exists():
        print(f"no shares of limits: {program} is missing: tools/build release limits")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "limits.json"
        command = ["taskset", "-c", f"0-{threads - 1}", program, model, "--threads", threads,
                   "--json", out]
        for phase in phases:
            command += ["--phase", *phase]
        subprocess.run([*map(str, command)], check=True, timeout=LIMITS_S,
                       stdout=subprocess.DEVNULL)
        rows = json.loads(out.read_text(encoding="utf-8"))["model"]["phases"]
    return {tuple(row["shape"]): row["tokens_per_second"] for row in rows}
