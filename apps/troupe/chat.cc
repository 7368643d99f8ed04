#include <glog/logging.h>
#include <kj/async-io.h>
#include <unistd.h>

#include <iostream>

#include "apps/troupe/local_cluster.h"
#include "apps/troupe/terminal_answer.h"
#include "base/os/system_clock.h"
#include "engine/chat_template/chat_context.h"

namespace troupe {
namespace {

// What the conversation needs of the loaded model and cluster.
struct Conversation {
  const ChatOptions& options;
  const LoadedModel& loaded;
  const ChatTemplate& chat_template;
  const Clock& clock;
  Generator& generator;
  kj::WaitScope& scope;
  std::vector<ChatMessage> messages;
};

ChatMessage message(std::string role, const std::string& text) {
  ChatMessage out;
  out.role = std::move(role);
  out.content = TemplateValue::data(text);
  return out;
}

Result<std::vector<TokenId>> prompt_of(const Conversation& conversation) {
  const Tokenizer& tokenizer = conversation.loaded.tokenizer();
  const auto spelling = [&](TokenId id) -> std::optional<std::string> {
    if (!tokenizer.has_token(id)) return std::nullopt;
    return std::string(tokenizer.token_bytes(id));
  };
  ChatContextOptions context;
  context.bos_token = spelling(tokenizer.bos());
  context.eos_token = spelling(tokenizer.eos());
  TROUPE_ASSIGN_OR_RETURN(
      const auto rendered,
      conversation.chat_template.render(make_chat_context(conversation.messages, context),
                                        conversation.clock.unix_seconds()));
  std::vector<TextPiece> pieces;
  for (const TemplatePiece& piece : rendered) pieces.push_back({piece.text, piece.from_template});
  return tokenizer.encode(pieces);
}

// One turn: the user's line in, the answer shown and remembered.
Status answer(Conversation& conversation, const std::string& line) {
  conversation.messages.push_back(message("user", line));
  GenerationRequest request;
  request.label = "chat";
  TROUPE_ASSIGN_OR_RETURN(request.prompt, prompt_of(conversation));
  const uint32_t context = conversation.loaded.context_tokens();
  if (request.prompt.size() >= context) {
    return {StatusCode::kContextLength, "the conversation has " +
                                            std::to_string(request.prompt.size()) +
                                            " tokens, the context only " + std::to_string(context) +
                                            "; start anew with /reset"};
  }
  SamplingOptions sampling = conversation.options.sampling;
  sampling.max_tokens =
      std::min(sampling.max_tokens, context - static_cast<uint32_t>(request.prompt.size()));
  // Each turn draws other numbers.
  sampling.seed += conversation.messages.size();
  const Tokenizer& tokenizer = conversation.loaded.tokenizer();
  TROUPE_ASSIGN_OR_RETURN(
      SamplingParams params,
      sampling_params_of(sampling, -1, static_cast<uint32_t>(tokenizer.vocab_size()), context));
  request.choices = {std::move(params)};
  TerminalAnswer shown(tokenizer, {sampling.stop, StopText::kExclude, {}},
                       [](std::string_view text) { std::cout << text << std::flush; });
  TROUPE_RETURN_IF_ERROR(shown.run(conversation.generator, std::move(request), conversation.scope));
  std::cout << std::endl;
  conversation.messages.push_back(message("assistant", shown.text()));
  return ok_status();
}

void start_anew(Conversation& conversation) {
  conversation.messages.clear();
  if (!conversation.options.system.empty()) {
    conversation.messages.push_back(message("system", conversation.options.system));
  }
}

Status chat(const ChatOptions& options) {
  const SystemClock clock;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  TROUPE_RETURN_IF_ERROR(ChatTemplates::check(options.templates));
  TROUPE_ASSIGN_OR_RETURN(const auto loaded, LoadedModel::load(options.engine, clock));
  TROUPE_ASSIGN_OR_RETURN(const ChatTemplates templates,
                          ChatTemplates::choose(options.templates, loaded->file()));
  if (templates.plain() == nullptr) {
    return {StatusCode::kUnsupported,
            options.engine.model_path +
                " has no chat template; use an instruction-tuned model, --chat-template, or "
                "`troupe generate`"};
  }
  ModelMetrics metrics;
  const std::vector<LocalModel> models{{*loaded, loaded->name()}};
  TROUPE_ASSIGN_OR_RETURN(const auto cluster,
                          LocalCluster::start(options.engine, models, clock, metrics,
                                              io.unixEventPort, io.provider->getTimer()));
  TROUPE_RETURN_IF_ERROR(cluster->wait_until_ready(io.waitScope));
  Conversation conversation{options,      *loaded, *templates.plain(), clock, cluster->gateway(),
                            io.waitScope, {}};
  start_anew(conversation);

  const bool interactive = isatty(STDIN_FILENO) != 0;
  if (interactive) std::cout << "Type a message; /reset forgets, /quit or Ctrl-D leaves.\n";
  std::string line;
  while (true) {
    if (interactive) std::cout << "> " << std::flush;
    if (!std::getline(std::cin, line) || line == "/quit") return ok_status();
    if (line.empty()) continue;
    if (line == "/reset") {
      start_anew(conversation);
      continue;
    }
    const size_t before = conversation.messages.size();
    if (const Status status = answer(conversation, line); !status.ok()) {
      conversation.messages.resize(before);  // as if it had not been said
      if (!interactive) return status;
      std::cout << "troupe: " << status.message() << std::endl;
    }
  }
}

}  // namespace

int run_chat(const ChatOptions& options) {
  FLAGS_minloglevel = google::GLOG_WARNING;
  const Status status = chat(options);
  return status.ok() ? 0 : fail(status);
}

}  // namespace troupe
