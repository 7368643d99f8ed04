#include "loadgen/chunk.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "loadgen/limits.h"

namespace troupe::loadgen {
namespace {

using Json = nlohmann::json;

Status malformed(const std::string& what) {
  return {StatusCode::kDataLoss, "malformed event: " + what};
}

// Neither nlohmann's parser nor its destructors recurse, so nesting needs no limit of its own; its
// printing does, so nothing foreign is printed.
Json parse(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string words_of_error(const Json& error) {
  if (error.is_string()) return error.get<std::string>();
  return error.is_object() ? text_at(error, "message") : std::string();
}

std::optional<Usage> usage_of(const Json& json) {
  const auto count = [&json](const char* key) -> std::optional<uint32_t> {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
    const auto value = found->get<uint64_t>();
    return value > kTokensMax ? std::nullopt : std::optional(static_cast<uint32_t>(value));
  };
  const auto prompt = count("prompt_tokens"), completion = count("completion_tokens");
  if (!completion) return std::nullopt;
  return Usage{prompt.value_or(0), *completion};
}

Status read_choice(const Json& choice, Chunk& chunk) {
  if (!choice.is_object()) return malformed("a choice is no object");
  const auto finish = choice.find("finish_reason");
  chunk.is_finished = finish != choice.end() && finish->is_string();
  chunk.text = text_at(choice, "text");
  const auto delta = choice.find("delta");
  if (delta == choice.end() || delta->is_null()) return ok_status();
  if (!delta->is_object()) return malformed("delta is no object");
  for (const char* key : {"reasoning_content", "reasoning", "content"}) {
    chunk.text += text_at(*delta, key);
  }
  return ok_status();
}

}  // namespace

Result<Chunk> parse_chunk(std::string_view data) {
  Chunk chunk;
  if (data == "[DONE]") {
    chunk.is_done = true;
    return chunk;
  }
  const Json json = parse(data);
  if (!json.is_object()) return malformed("no JSON object: " + std::string(data.substr(0, 80)));
  if (const auto error = json.find("error"); error != json.end() && !error->is_null()) {
    chunk.error = words_of_error(*error);
    if (chunk.error->empty()) chunk.error = data;
    chunk.error->resize(std::min(chunk.error->size(), kErrorSampleBytesMax));
    return chunk;
  }
  if (const auto usage = json.find("usage"); usage != json.end() && usage->is_object()) {
    chunk.usage = usage_of(*usage);
  }
  const auto choices = json.find("choices");
  if (choices == json.end() || choices->is_null()) return chunk;
  if (!choices->is_array()) return malformed("choices is no array");
  chunk.has_choices = !choices->empty();
  if (chunk.has_choices) TROUPE_RETURN_IF_ERROR(read_choice(choices->front(), chunk));
  return chunk;
}

std::string error_message_of(std::string_view body) {
  const Json json = parse(body);
  std::string words;
  if (json.is_object()) {
    if (const auto error = json.find("error"); error != json.end()) words = words_of_error(*error);
    if (words.empty()) words = text_at(json, "message");
    if (words.empty()) words = text_at(json, "detail");
  }
  if (words.empty()) words = body;
  return words.substr(0, kErrorSampleBytesMax);
}

}  // namespace troupe::loadgen
