#include "actors/gateway/rpc/rpc_documents.h"

#include <cmath>
#include <string>
#include <unordered_set>
#include <utility>

#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/tools/limits.h"
#include "engine/sample/validate.h"
#include "engine/tokenizer/utf8.h"

namespace troupe {

namespace {

using Json = RequestDocument;

std::string at(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

// As JSON text has it, and error texts show it: 3, not 3.0.
Json to_number(double value) {
  constexpr double kExactMax = 1e15;
  if (std::trunc(value) == value && std::abs(value) < kExactMax) {
    return static_cast<int64_t>(value);
  }
  return value;
}

Result<Json> to_text(capnp::Text::Reader text, const std::string& path) {
  const std::string_view bytes(text.begin(), text.size());
  if (const auto bad = find_invalid_utf8(bytes)) {
    return invalid_argument(
        path + " is not well-formed UTF-8 at byte " + std::to_string(*bad) + "; send UTF-8", path);
  }
  return Json(std::string(bytes));
}

// Puts a text that is given, that is: not empty.
Status put_text(Json& out, const char* field, capnp::Text::Reader text, const std::string& path) {
  if (text.size() == 0) return ok_status();
  TROUPE_ASSIGN_OR_RETURN(out[field], to_text(text, path));
  return ok_status();
}

// Puts the document that a text spells, if one is given.
Status put_json(Json& out, const char* field, capnp::Text::Reader text, const std::string& path) {
  if (text.size() == 0) return ok_status();
  TROUPE_ASSIGN_OR_RETURN(const Json spelled, to_text(text, path));
  auto parsed = parse_json(spelled.get_ref<const std::string&>());
  if (!parsed.ok()) {
    return invalid_argument(path + " must be JSON text: " + parsed.status().message(), path);
  }
  out[field] = std::move(parsed).value();
  return ok_status();
}

// A list that is longer than it may be is refused by its size alone, so it is not read: its
// elements, which may take no bytes in the message, stay null.
template <class List, class Convert>
Result<Json> to_array(const List& list, size_t size_max, const Convert& convert) {
  Json out = Json::array();
  auto& elements = out.get_ref<Json::array_t&>();
  elements.resize(list.size());
  if (list.size() > size_max) return out;
  for (uint32_t i = 0; i < list.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(elements[i], convert(list[i], i));
  }
  return out;
}

Result<Json> to_token_array(capnp::List<uint32_t>::Reader tokens, size_t size_max = SIZE_MAX) {
  return to_array(tokens, size_max,
                  [](uint32_t token, uint32_t) -> Result<Json> { return Json(token); });
}

Result<Json> to_bias_object(capnp::List<rpc::LogitBias>::Reader biases) {
  Json out = Json::object();
  // Appended without the look-up of operator[], which is linear.
  auto& entries = out.get_ref<Json::object_t&>();
  std::unordered_set<uint32_t> seen;
  for (const rpc::LogitBias::Reader bias : biases) {
    if (!seen.insert(bias.getToken()).second) {
      return invalid_argument(
          "logit_bias names the token " + std::to_string(bias.getToken()) + " twice; send it once",
          "logit_bias");
    }
    entries.emplace_back(std::to_string(bias.getToken()), to_number(bias.getBias()));
  }
  return out;
}

Result<Json> to_tool(rpc::Tool::Reader tool, const std::string& path) {
  const std::string prefix = path + ".function.";
  Json function = Json::object();
  TROUPE_ASSIGN_OR_RETURN(function["name"], to_text(tool.getName(), prefix + "name"));
  TROUPE_RETURN_IF_ERROR(
      put_text(function, "description", tool.getDescription(), prefix + "description"));
  TROUPE_RETURN_IF_ERROR(
      put_json(function, "parameters", tool.getParameters(), prefix + "parameters"));
  function["strict"] = tool.getStrict();
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

Status put_tools(Json& out, rpc::Parameters::Reader in) {
  if (in.getTools().size() > 0) {
    const auto convert = [](rpc::Tool::Reader tool, uint32_t i) {
      return to_tool(tool, at("tools", i));
    };
    TROUPE_ASSIGN_OR_RETURN(out["tools"], to_array(in.getTools(), kToolsMax, convert));
  }
  if (!in.getParallelToolCalls()) out["parallel_tool_calls"] = false;
  const rpc::Parameters::ToolChoice::Reader choice = in.getToolChoice();
  using Which = rpc::Parameters::ToolChoice::Which;
  switch (choice.which()) {
    case Which::STANDARD:
      break;
    case Which::NONE:
      out["tool_choice"] = "none";
      break;
    case Which::AUTOMATIC:
      out["tool_choice"] = "auto";
      break;
    case Which::REQUIRED:
      out["tool_choice"] = "required";
      break;
    case Which::NAMED: {
      TROUPE_ASSIGN_OR_RETURN(Json name, to_text(choice.getNamed(), "tool_choice.function.name"));
      out["tool_choice"] = {{"type", "function"}, {"function", {{"name", std::move(name)}}}};
      break;
    }
    default:
      return Status(StatusCode::kUnsupported,
                    "this server does not know this kind of tool_choice; it is older than yours",
                    "tool_choice");
  }
  return ok_status();
}

Status put_parameters(Json& out, rpc::Parameters::Reader in) {
  out["temperature"] = to_number(in.getTemperature());
  out["top_p"] = to_number(in.getTopP());
  out["top_k"] = in.getTopK();
  out["min_p"] = to_number(in.getMinP());
  out["repetition_penalty"] = to_number(in.getRepetitionPenalty());
  out["presence_penalty"] = to_number(in.getPresencePenalty());
  out["frequency_penalty"] = to_number(in.getFrequencyPenalty());
  out["n"] = in.getN();
  out["min_tokens"] = in.getMinTokens();
  out["include_stop_str_in_output"] = in.getIncludeStopText();
  out["ignore_eos"] = in.getIgnoreEos();
  if (in.getMaxTokens() != -1) out["max_tokens"] = in.getMaxTokens();
  if (in.getSeed().isValue()) out["seed"] = in.getSeed().getValue();
  if (in.hasLogitBias()) {
    TROUPE_ASSIGN_OR_RETURN(out["logit_bias"], to_bias_object(in.getLogitBias()));
  }
  if (in.hasStop()) {
    const auto convert = [](capnp::Text::Reader stop, uint32_t i) {
      return to_text(stop, at("stop", i));
    };
    TROUPE_ASSIGN_OR_RETURN(out["stop"], to_array(in.getStop(), kStopsMax, convert));
  }
  if (in.hasStopTokenIds()) {
    TROUPE_ASSIGN_OR_RETURN(out["stop_token_ids"],
                            to_token_array(in.getStopTokenIds(), kStopTokenIdsMax));
  }
  if (in.getAllowedTokenIds().size() > 0) {
    TROUPE_ASSIGN_OR_RETURN(out["allowed_token_ids"], to_token_array(in.getAllowedTokenIds()));
  }
  if (in.getBadWords().size() > 0) {
    const auto convert = [](capnp::Text::Reader word, uint32_t i) {
      return to_text(word, at("bad_words", i));
    };
    TROUPE_ASSIGN_OR_RETURN(out["bad_words"], to_array(in.getBadWords(), kBadWordsMax, convert));
  }
  TROUPE_RETURN_IF_ERROR(
      put_json(out, "structured_outputs", in.getStructuredOutputs(), "structured_outputs"));
  TROUPE_RETURN_IF_ERROR(put_tools(out, in));
  return put_text(out, "cache_salt", in.getCacheSalt(), "cache_salt");
}

Result<Json> to_tool_call(rpc::ToolCall::Reader call, const std::string& path) {
  Json function = Json::object();
  TROUPE_ASSIGN_OR_RETURN(function["name"], to_text(call.getName(), path + ".function.name"));
  TROUPE_ASSIGN_OR_RETURN(function["arguments"],
                          to_text(call.getArguments(), path + ".function.arguments"));
  Json out = Json::object();
  TROUPE_ASSIGN_OR_RETURN(out["id"], to_text(call.getId(), path + ".id"));
  out["function"] = std::move(function);
  return out;
}

Result<Json> to_message(rpc::Message::Reader message, const std::string& path) {
  Json out = Json::object();
  TROUPE_ASSIGN_OR_RETURN(out["role"], to_text(message.getRole(), path + ".role"));
  // Calls alone are an answer; an empty text beside them is none.
  const bool calls_only = message.getContent().size() == 0 && message.getToolCalls().size() > 0;
  if (!calls_only) {
    TROUPE_ASSIGN_OR_RETURN(out["content"], to_text(message.getContent(), path + ".content"));
  }
  TROUPE_RETURN_IF_ERROR(put_text(out, "name", message.getName(), path + ".name"));
  TROUPE_RETURN_IF_ERROR(
      put_text(out, "tool_call_id", message.getToolCallId(), path + ".tool_call_id"));
  if (message.getToolCalls().size() > 0) {
    const auto convert = [&](rpc::ToolCall::Reader call, uint32_t i) {
      return to_tool_call(call, at(path + ".tool_calls", i));
    };
    TROUPE_ASSIGN_OR_RETURN(out["tool_calls"],
                            to_array(message.getToolCalls(), kToolCallsMax, convert));
  }
  return out;
}

Result<Json> to_messages(capnp::List<rpc::Message>::Reader messages) {
  return to_array(messages, kMessagesMax, [](rpc::Message::Reader message, uint32_t i) {
    return to_message(message, at("messages", i));
  });
}

}  // namespace

Result<Json> to_document(rpc::Serving::CompleteParams::Reader request) {
  Json out = Json::object();
  TROUPE_RETURN_IF_ERROR(put_text(out, "model", request.getModel(), "model"));
  const rpc::Parameters::Reader parameters = request.getParameters();
  TROUPE_RETURN_IF_ERROR(put_parameters(out, parameters));
  if (parameters.getLogprobs() != -1) out["logprobs"] = parameters.getLogprobs();
  out["echo"] = parameters.getEcho();
  if (const rpc::Prompt::Reader prompt = request.getPrompt(); prompt.isTokens()) {
    TROUPE_ASSIGN_OR_RETURN(out["prompt"], to_token_array(prompt.getTokens()));
  } else if (prompt.isText()) {
    TROUPE_ASSIGN_OR_RETURN(out["prompt"], to_text(prompt.getText(), "prompt"));
  }
  return out;
}

Result<Json> to_document(rpc::Serving::ChatParams::Reader request) {
  Json out = Json::object();
  TROUPE_RETURN_IF_ERROR(put_text(out, "model", request.getModel(), "model"));
  const rpc::Parameters::Reader parameters = request.getParameters();
  TROUPE_RETURN_IF_ERROR(put_parameters(out, parameters));
  if (parameters.getLogprobs() != -1) {
    out["logprobs"] = true;
    out["top_logprobs"] = parameters.getLogprobs();
  }
  out["echo"] = parameters.getEcho();
  TROUPE_ASSIGN_OR_RETURN(out["messages"], to_messages(request.getMessages()));
  return out;
}

Result<Json> to_document(rpc::Serving::TokenizeParams::Reader request) {
  Json out = Json::object();
  TROUPE_RETURN_IF_ERROR(put_text(out, "model", request.getModel(), "model"));
  const bool chat = request.getMessages().size() > 0;
  if (request.hasPrompt() || !chat) {
    TROUPE_ASSIGN_OR_RETURN(out["prompt"], to_text(request.getPrompt(), "prompt"));
  }
  if (chat) {
    TROUPE_ASSIGN_OR_RETURN(out["messages"], to_messages(request.getMessages()));
  }
  out["add_special_tokens"] = request.getAddSpecialTokens();
  out["add_generation_prompt"] = request.getAddGenerationPrompt();
  return out;
}

Result<Json> to_document(rpc::Serving::DetokenizeParams::Reader request) {
  Json out = Json::object();
  TROUPE_RETURN_IF_ERROR(put_text(out, "model", request.getModel(), "model"));
  TROUPE_ASSIGN_OR_RETURN(out["tokens"], to_token_array(request.getTokens()));
  return out;
}

}  // namespace troupe
