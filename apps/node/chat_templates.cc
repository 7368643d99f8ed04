#include "apps/node/chat_templates.h"

#include <fstream>
#include <iterator>
#include <utility>

namespace troupe {
namespace {

Result<std::optional<ChatTemplate>> template_at(const GgufFile& file, const std::string& key) {
  if (!file.has(key)) return std::optional<ChatTemplate>{};
  TROUPE_ASSIGN_OR_RETURN(const std::string_view source, file.get_string(key));
  auto compiled = ChatTemplate::compile(std::string(source));
  if (!compiled.ok()) {
    return Status{compiled.status().code(),
                  file.name() + ": its chat template (" + key +
                      "): " + compiled.status().message() +
                      "; --chat-template FILE serves the model with another one"};
  }
  return std::optional<ChatTemplate>(std::move(compiled).value());
}

}  // namespace

void add_chat_template_settings(Settings& settings, ChatTemplateOptions& options) {
  settings.add({.name = "chat-template",
                .help = "File with a Jinja chat template to use instead of the model's"},
               &options.file);
  settings.add({.name = "trust-request-chat-template",
                .help = "Let requests bring a chat_template of their own"},
               &options.trusts_requests);
}

Result<ChatTemplates> ChatTemplates::of(const GgufFile& file) {
  ChatTemplates out;
  TROUPE_ASSIGN_OR_RETURN(out.plain_, template_at(file, "tokenizer.chat_template"));
  TROUPE_ASSIGN_OR_RETURN(out.with_tools_, template_at(file, "tokenizer.chat_template.tool_use"));
  return out;
}

Result<ChatTemplates> ChatTemplates::from_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Status{StatusCode::kNotFound,
                  "the chat template " + path + " cannot be read; check --chat-template"};
  }
  // One byte more than the limit is enough to be refused by it.
  std::string source(ChatTemplateLimits{}.source_bytes_max + 1, '\0');
  file.read(source.data(), static_cast<std::streamsize>(source.size()));
  if (file.bad() || (file.fail() && !file.eof())) {
    return Status{StatusCode::kNotFound,
                  "the chat template " + path + " cannot be read; it must be a text file"};
  }
  source.resize(static_cast<size_t>(file.gcount()));
  auto compiled = ChatTemplate::compile(std::move(source));
  if (!compiled.ok()) {
    return Status{compiled.status().code(), path + ": " + compiled.status().message()};
  }
  ChatTemplates out;
  out.plain_ = std::move(compiled).value();
  return out;
}

Status ChatTemplates::check(const ChatTemplateOptions& options) {
  return options.file.empty() ? ok_status() : from_file(options.file).status();
}

Result<ChatTemplates> ChatTemplates::choose(const ChatTemplateOptions& options,
                                            const GgufFile& file) {
  return options.file.empty() ? of(file) : from_file(options.file);
}

}  // namespace troupe
