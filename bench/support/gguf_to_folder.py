"""Usage: gguf_to_folder.py MODEL.gguf FOLDER: the model as vLLM reads it, a Hugging Face folder in
bf16. Runs in an environment that has transformers, gguf and accelerate."""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

file, folder = Path(sys.argv[1]).resolve(), sys.argv[2]
model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
model = model.to(torch.bfloat16)
# They are plain numbers now, which saving has to be told.
model.hf_quantizer = None
del model.config.quantization_config
model.save_pretrained(folder)
AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
