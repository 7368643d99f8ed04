#include "loadgen/request_body.h"

namespace troupe::loadgen {

using Json = nlohmann::json;

Result<Json> parse_extra_body(const std::string& text) {
  if (text.empty()) return Json::object();
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return invalid_argument("--extra-body must be a JSON object; write for example --extra-body '" +
                            std::string(R"({"top_p": 0.9})") + "'");
  }
  for (const char* key : {"messages", "prompt", "stream", "stream_options", "n"}) {
    if (json.contains(key)) {
      return invalid_argument("--extra-body may not set " + std::string(key) +
                              ", which the load decides; leave it out");
    }
  }
  return json;
}

std::string path_of(Endpoint endpoint) {
  return endpoint == Endpoint::kChat ? "/v1/chat/completions" : "/v1/completions";
}

std::string request_body(const RequestShape& shape, const std::vector<Message>& said,
                         uint32_t output_tokens) {
  Json body;
  body["model"] = shape.model;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  body["temperature"] = shape.temperature;
  if (shape.ignore_eos) body["ignore_eos"] = true;
  if (shape.endpoint == Endpoint::kChat) {
    body[shape.max_tokens_field] = output_tokens;
    Json& messages = body["messages"] = Json::array();
    for (const Message& message : said) {
      messages.push_back({{"role", message.role}, {"content", message.content}});
    }
  } else {
    body["max_tokens"] = output_tokens;
    std::string prompt;
    for (const Message& message : said) {
      if (!prompt.empty()) prompt += '\n';
      prompt += message.content;
    }
    body["prompt"] = std::move(prompt);
  }
  body.update(shape.extra);
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace troupe::loadgen
