"""Which values of --cpu-features this machine can compute with, by what Linux says of it."""

from pathlib import Path

NEEDED_FLAGS = {  # of /proc/cpuinfo
    "scalar": set(), "avx2": {"avx2", "fma", "f16c"},
    "avx512": {"avx512f", "avx512dq", "avx512bw", "avx512vl"},
    "avx512vnni": {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512_vnni"},
    "amx": {"avx512_vnni", "amx_tile", "amx_int8"},
}


def lacking(isa):
    """The flags that `isa` needs and this machine has not; empty where it can be used."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("flags"):
            return NEEDED_FLAGS[isa] - set(line.split(":")[1].split())
    return NEEDED_FLAGS[isa]
