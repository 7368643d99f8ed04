"""Usage: xllamacpp_server.py MODEL PORT THREADS: llama.cpp's server from the package xllamacpp."""

import os
import signal
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.port = int(sys.argv[2])
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[3])
params.n_ctx = 2304
params.n_parallel = 1
params.warmup = True
server = xllamacpp.Server(params)
signal.sigwait([signal.SIGINT, signal.SIGTERM])
os._exit(0)  # the library's own threads have no orderly end
