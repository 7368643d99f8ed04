#include "actors/gateway/openai/request.h"

#include <utility>

#include "actors/gateway/openai/common_fields.h"
#include "actors/gateway/openai/field_tables.h"
#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/messages.h"
#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/openai/tool_fields.h"
#include "engine/sample/validate.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kChatFields[] = {
    {"model"},
    {"messages"},
    {"temperature"},
    {"top_p"},
    {"top_k"},
    {"min_p"},
    {"repetition_penalty"},
    {"presence_penalty"},
    {"frequency_penalty"},
    {"logit_bias"},
    {"allowed_token_ids"},
    {"bad_words"},
    {"seed"},
    {"n"},
    {"stop"},
    {"stop_token_ids"},
    {"include_stop_str_in_output"},
    {"ignore_eos"},
    {"min_tokens"},
    {"max_tokens"},
    {"max_completion_tokens"},
    {"logprobs"},
    {"top_logprobs"},
    {"stream"},
    {"stream_options"},
    {"cache_salt"},
    {"response_format"},
    {"structured_outputs"},
    {"guided_json"},
    {"guided_regex"},
    {"guided_choice"},
    {"guided_grammar"},
    {"guided_decoding_backend", kTolerated},
    {"guided_whitespace_pattern", kUnsupported},
    {"tools"},
    {"tool_choice"},
    {"parallel_tool_calls"},
    {"reasoning_effort"},
    {"stop_in_reasoning"},
    {"modalities"},
    {"priority"},
    {"skip_special_tokens"},
    {"separate_reasoning"},
    {"stream_reasoning"},
    {"include_reasoning"},
    {"user", kTolerated},
    {"store", kTolerated},
    {"metadata", kTolerated},
    {"service_tier", kTolerated},
    {"safety_identifier", kTolerated},
    {"prompt_cache_key", kTolerated},
    {"prompt_cache_retention", kTolerated},
    {"prompt_cache_options", kTolerated},
    {"moderation", kUnsupported},
    {"functions", kUnsupported},
    {"function_call", kUnsupported},
    {"audio", kUnsupported},
    {"prediction", kUnsupported},
    {"verbosity", kUnsupported},
    {"web_search_options", kUnsupported},
    {"echo", kUnsupported},
    {"chat_template"},
    {"chat_template_kwargs"},
    {"add_generation_prompt"},
    {"continue_final_message"},
    {"documents", kUnsupported},
    {"prompt_logprobs", kUnsupported},
    {"use_beam_search", kUnsupported},
    {"no_stop_trim", kUnsupported},
    {"return_hidden_states", kUnsupported},
    {"truncate_prompt_tokens", kUnsupported, "vLLM's; a cut template is no conversation"},
    {"thinking_token_budget", kUnsupported, "vLLM's"},
    {"mm_processor_kwargs", kUnsupported, "vLLM's; text only"},
    {"return_token_ids", kUnsupported, "vLLM's; `logprobs` and `/tokenize` tell tokens"},
    {"return_tokens_as_token_ids", kUnsupported, "vLLM's"},
    {"logprob_token_ids", kUnsupported, "vLLM's; `/v1/score` scores given tokens"},
    {"length_penalty", kUnsupported, "vLLM's, for beam search"},
    {"spaces_between_special_tokens", kUnsupported, "vLLM's"},
    {"logits_processors", kUnsupported, "vLLM's; code is not taken from clients"},
    {"repetition_detection", kUnsupported, "vLLM's"},
    {"kv_transfer_params", kUnsupported, "vLLM's; the router decides where KV goes"},
    {"vllm_xargs", kUnsupported, "vLLM's"},
    {"request_id", kUnsupported, "vLLM's; send the header `X-Request-Id`"},
};

Status check_modalities(const FieldReader& fields) {
  if (const Json* value = fields.find("modalities");
      value != nullptr && *value != Json::array({"text"})) {
    return Status(StatusCode::kUnsupported, "modalities must be [\"text\"]", "modalities");
  }
  return ok_status();
}

Status parse_chat_logprobs(const FieldReader& fields, SamplingParams& out) {
  bool logprobs = false;
  std::optional<int64_t> top;
  TROUPE_RETURN_IF_ERROR(fields.read("logprobs", logprobs));
  TROUPE_RETURN_IF_ERROR(fields.read("top_logprobs", 0, kLogprobsMax, top));
  if (top && !logprobs) {
    return invalid_argument("top_logprobs needs logprobs to be true", "top_logprobs");
  }
  if (logprobs) out.logprobs = static_cast<int32_t>(top.value_or(0));
  return ok_status();
}

}  // namespace

std::span<const KnownField> chat_fields() {
  return kChatFields;
}

Result<GenerationBody> parse_chat_body(std::string_view body,
                                       std::span<const RequestRules> models) {
  TROUPE_ASSIGN_OR_RETURN(const Json object, parse_object(body));
  return check_chat(object, models);
}

Result<GenerationBody> check_chat(const Json& object, std::span<const RequestRules> models) {
  TROUPE_RETURN_IF_ERROR(check_known_fields(object, "", kChatFields));
  const FieldReader fields(object, "");
  GenerationBody out;
  out.api = Api::kChat;
  TROUPE_ASSIGN_OR_RETURN(out.model, find_model(fields, models, ModelField::kRequired));
  const RequestRules& rules = models[out.model];
  TROUPE_RETURN_IF_ERROR(parse_common(fields, rules, out));
  TROUPE_RETURN_IF_ERROR(parse_chat_logprobs(fields, out.sampling));
  TROUPE_RETURN_IF_ERROR(check_modalities(fields));
  TROUPE_RETURN_IF_ERROR(fields.read("stop_in_reasoning", out.stop_in_reasoning));
  TROUPE_ASSIGN_OR_RETURN(out.chat, parse_chat_prompt(fields, rules.templates));
  TROUPE_ASSIGN_OR_RETURN(out.tools, parse_tools(fields));
  TROUPE_RETURN_IF_ERROR(check_tool_schemas(out.tools));
  out.chat.tools = tools_for_template(out.tools);
  TROUPE_ASSIGN_OR_RETURN(out.messages, parse_messages(fields.find("messages")));
  return out;
}

}  // namespace troupe
