"""Where the measured project lies, and on what machine."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/benchmarks.md"
KEPT = ROOT / "bench/results"   # by kind of machine
FRESH = ROOT / ".cache/bench"   # of the last runs; not kept
# By the names of tools/fetch_model: the file, and which of its tokens are ordinary ones.
DEFAULT_MODEL = "smollm2-135m"
MODELS = {"smollm2-135m": ("SmolLM2-135M-Instruct.Q4_1.gguf", (100, 49152)),
          "gemma3-270m": ("gemma-3-270m-Q4_K_M.gguf", (300, 255_000))}
# What `--cpu-features` says by itself: whatever the processor has.
ALL_FEATURES = "auto"
# By the flags of Linux, the best one first: what decides how fast integers are multiplied.
INSTRUCTION_SETS = [("amx", "amx_int8"), ("avx512vnni", "avx512_vnni"), ("avx512", "avx512bw"),
                    ("avx2", "avx2")]


def machine():
    """What a figure depends on, as it is written beside it."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")

    def field(name):
        match = re.search(rf"^{name}\s*: (.*)$", text, re.MULTILINE)
        return match[1].strip() if match else "unknown"
    flags = set(field("flags").split())
    memory = Path("/proc/meminfo").read_text(encoding="utf-8")
    able = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8")
            if flag in flags]
    return {"cpu": field("model name"), "family": field("cpu family"), "model": field("model"),
            "cores": os.cpu_count(), "flags": able, "l3": field("cache size"),
            "memory_gib": round(int(re.search(r"MemTotal:\s+(\d+)", memory)[1]) / 2**20),
            "kind": kind_of(field("vendor_id"), flags, os.cpu_count())}


def kind_of(vendor, flags, cores):
    """Machines of one kind are compared with each other: "intel-avx512vnni-2-cores"."""
    maker = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(vendor, "other")
    best = next((name for name, flag in INSTRUCTION_SETS if flag in flags), "scalar")
    return f"{maker}-{best}-{cores}-cores"


def describe(about):
    return (f"{about['cpu']} (family {about['family']}, model {about['model']}), "
            f"{about['cores']} cores, L3 {about['l3']}, {about['memory_gib']} GiB, "
            f"{' '.join(about['flags'])}")


def commit():
    said = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"],
                          capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def model_file(name):
    path = ROOT / "models" / MODELS[name][0]
    if not path.exists():
        raise SystemExit(f"{path} is missing: tools/python tools/fetch_model --model {name}")
    return path


def file_of(bench, model, features=ALL_FEATURES):
    return f"{part_of(bench, model, features).replace(' ', '-')}.json"


def fresh_file(bench, model, short, features=ALL_FEATURES):
    """Where a run writes its values; a short one never where a whole one does."""
    return (FRESH / "short" if short else FRESH) / file_of(bench, model, features)


def part_of(bench, model, features=ALL_FEATURES):
    """The part of the page: "engine", "engine gemma3-270m", "engine avx2"."""
    return " ".join([bench, *[model] * (model != DEFAULT_MODEL),
                     *[features] * (features != ALL_FEATURES)])


def write_page(part, section, writer):
    """Puts `section` between the marks of `part` in docs/benchmarks.md."""
    page = PAGE.read_text(encoding="utf-8")
    mark = f"<!-- {part}: begin, written by {writer} -->"
    begin, end = page.index(mark) + len(mark), page.index(f"<!-- {part}: end -->")
    PAGE.write_text(page[:begin] + "\n" + section + page[end:], encoding="utf-8")
    print(f"written into {PAGE.relative_to(ROOT)}")
