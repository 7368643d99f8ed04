#pragma once
// What the command line says, as values. The flags themselves stand in main.cc.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/node/answer_options.h"
#include "apps/node/chat_templates.h"
#include "apps/node/engine_options.h"
#include "apps/node/frontend_options.h"
#include "troupe/status.h"

namespace troupe {

struct ServeOptions {
  EngineOptions engine;
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  std::optional<uint16_t> rpc_port;       // none: no RPC
  std::vector<std::string> models;        // paths; engine.model_path is not used
  std::vector<std::string> served_names;  // see served_names.h
  ChatTemplateOptions templates;
  AnswerOptions answers;
  FrontendOptions frontend;
  // As processes of this machine instead of one process.
  bool cluster = false;
  uint32_t prefill_workers = 2, decode_workers = 2;
  uint32_t worker_threads = 1;  // of each of them
};

// The sampling flags that `generate` and `chat` share.
struct SamplingOptions {
  float temperature = 0.0F;
  int32_t top_k = 0;
  float top_p = 1.0F;
  float min_p = 0.0F;
  float repetition_penalty = 1.0F;
  uint64_t seed = 0;
  uint32_t max_tokens = 256;
  std::vector<std::string> stop;
};

struct GenerateOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  std::string prompt;  // "-": standard input
  bool ignore_eos = false;
  bool json = false;  // one JSON object with ids and log-probabilities instead of the text
};

struct ChatOptions {
  EngineOptions engine;
  ChatTemplateOptions templates;
  SamplingOptions sampling;
  std::string system;
};

// The commands. Each returns the process's exit code and has printed why when it is not 0.
int run_serve(const ServeOptions& options);
int run_generate(const GenerateOptions& options);
int run_chat(const ChatOptions& options);
int run_inspect(const std::string& model_path);

// Prints "troupe: <message>" on standard error and returns 1, the exit code of a failed command.
int fail(const Status& status);

}  // namespace troupe
