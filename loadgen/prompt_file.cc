#include <algorithm>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>

#include "loadgen/limits.h"
#include "loadgen/prompts.h"

namespace troupe::loadgen {
namespace {

using Json = nlohmann::json;

// Of a recorded answer, where only its text is known: about as many bytes a token as English has.
constexpr size_t kBytesPerToken = 4;
constexpr uint32_t kRecordedTokensMax = 2048;

constexpr const char* kFix =
    "; write one JSON object a line, with \"prompt\": a text, or \"messages\": a list of objects "
    "with role and content, and if wanted \"output_tokens\"";

std::optional<std::string> text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

class Reader {
 public:
  Reader(std::string name, const PromptFileOptions& options)
      : name_(std::move(name)), options_(options), random_(options.seed, streams::kPrompts) {}

  Result<Conversation> of_line(const std::string& text, size_t number) {
    const std::string place = name_ + ":" + std::to_string(number) + ": ";
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return invalid_argument(place + "no JSON object" + kFix);
    if (json.contains("conversations")) return of_recorded(json, place);
    Conversation out;
    if (const auto prompt = text_at(json, "prompt")) {
      out.turns.push_back({{"user", *prompt}, 0, 0});
    } else {
      TROUPE_RETURN_IF_ERROR(read_messages(json, place, out));
    }
    TROUPE_ASSIGN_OR_RETURN(out.turns.back().output_tokens, output_tokens_of(json, place));
    return out;
  }

  // {"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}, …]}
  Result<Conversation> of_recorded(const Json& json, const std::string& place) {
    const auto found = json.is_object() ? json.find("conversations") : json.end();
    if (!json.is_object() || found == json.end() || !found->is_array()) {
      return invalid_argument(place + "no object with a list \"conversations\"; see " +
                              "`docs/bench.md`, Prompts from a file");
    }
    Conversation out;
    for (const Json& part : *found) {
      const auto from = part.is_object() ? text_at(part, "from") : std::nullopt;
      const auto value = part.is_object() ? text_at(part, "value") : std::nullopt;
      if (!from || !value) return invalid_argument(place + "a part lacks \"from\" or \"value\"");
      if (*from == "human" || *from == "user") {
        if (out.turns.size() == options_.turns) break;
        out.turns.push_back({{"user", *value}, options_.output_tokens.draw(random_), 0});
      } else if (*from == "system" && out.turns.empty()) {
        out.opening.push_back({"system", *value});
      } else if (!out.turns.empty() && options_.keep_output_tokens) {
        out.turns.back().output_tokens = std::clamp(
            static_cast<uint32_t>(std::min<size_t>(value->size() / kBytesPerToken, kTokensMax)), 1U,
            kRecordedTokensMax);
      }
    }
    return out;  // without turns: nobody asked anything, the caller leaves it out
  }

 private:
  static Status read_messages(const Json& json, const std::string& place, Conversation& out) {
    const auto messages = json.find("messages");
    if (messages == json.end() || !messages->is_array() || messages->empty()) {
      return invalid_argument(place + "neither a prompt nor messages" + kFix);
    }
    for (const Json& message : *messages) {
      const auto role = message.is_object() ? text_at(message, "role") : std::nullopt;
      const auto content = message.is_object() ? text_at(message, "content") : std::nullopt;
      if (!role || !content) {
        return invalid_argument(place + "a message lacks role or content as text" + kFix);
      }
      out.opening.push_back({*role, *content});
    }
    out.turns.push_back({std::move(out.opening.back()), 0, 0});
    out.opening.pop_back();
    return ok_status();
  }

  Result<uint32_t> output_tokens_of(const Json& json, const std::string& place) {
    for (const char* key : {"output_tokens", "max_tokens"}) {
      const auto found = json.find(key);
      if (found == json.end() || found->is_null()) continue;
      if (!found->is_number_unsigned() || found->get<uint64_t>() < 1 ||
          found->get<uint64_t>() > kTokensMax) {
        return invalid_argument(place + key + " must be a whole number from 1 to " +
                                std::to_string(kTokensMax));
      }
      if (options_.keep_output_tokens) return found->get<uint32_t>();
    }
    return options_.output_tokens.draw(random_);
  }

  const std::string name_;
  const PromptFileOptions options_;
  Random random_;
};

// The whole of `in`, or nothing where it is larger than allowed.
std::optional<std::string> read_all(std::istream& in) {
  std::string text;
  char block[1 << 16];
  while (in.read(block, sizeof block) || in.gcount() > 0) {
    text.append(block, static_cast<size_t>(in.gcount()));
    if (text.size() > kPromptFileBytesMax) return std::nullopt;
  }
  return text;
}

Result<std::vector<Conversation>> read_array(const std::string& text, const std::string& name,
                                             Reader& reader) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return invalid_argument(name + ": begins with \"[\" but is no JSON array");
  std::vector<Conversation> out;
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string place = name + ": element " + std::to_string(i) + ": ";
    TROUPE_ASSIGN_OR_RETURN(Conversation conversation, reader.of_recorded(json[i], place));
    if (!conversation.turns.empty()) out.push_back(std::move(conversation));
  }
  return out;
}

}  // namespace

Result<std::vector<Conversation>> read_prompts(std::istream& in, const std::string& name,
                                               const PromptFileOptions& options) {
  const auto text = read_all(in);
  if (!text) {
    return invalid_argument(name + ": larger than " + std::to_string(kPromptFileBytesMax) +
                            " bytes; take a part of it");
  }
  Reader reader(name, options);
  std::vector<Conversation> out;
  const size_t first = text->find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (*text)[first] == '[') {
    TROUPE_ASSIGN_OR_RETURN(out, read_array(*text, name, reader));
  } else {
    size_t number = 1;
    for (size_t begin = 0; begin < text->size(); ++number) {
      const size_t end = std::min(text->find('\n', begin), text->size());
      if (end - begin > kPromptLineBytesMax) {
        return invalid_argument(name + ":" + std::to_string(number) + ": longer than " +
                                std::to_string(kPromptLineBytesMax) + " bytes");
      }
      const std::string line = text->substr(begin, end - begin);
      begin = end + 1;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      TROUPE_ASSIGN_OR_RETURN(Conversation conversation, reader.of_line(line, number));
      if (!conversation.turns.empty()) out.push_back(std::move(conversation));
    }
  }
  if (out.empty()) return invalid_argument(name + ": no prompt is in there" + kFix);
  return out;
}

}  // namespace troupe::loadgen
