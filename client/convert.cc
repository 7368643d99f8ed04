#include "client/convert.h"

#include <string_view>
#include <utility>

namespace troupe::client {

namespace {

kj::StringPtr view(const std::string& text) {
  return {text.c_str(), text.size()};
}

void fill_tools(const Parameters& in, rpc::Parameters::Builder out) {
  if (!in.tools.empty()) {
    auto tools = out.initTools(static_cast<uint32_t>(in.tools.size()));
    for (uint32_t i = 0; i < tools.size(); ++i) {
      tools[i].setName(view(in.tools[i].name));
      tools[i].setDescription(view(in.tools[i].description));
      tools[i].setParameters(view(in.tools[i].parameters));
      tools[i].setStrict(in.tools[i].strict);
    }
  }
  out.setParallelToolCalls(in.parallel_tool_calls);
  auto choice = out.getToolChoice();
  switch (in.tool_choice.kind) {
    case ToolChoice::Kind::kStandard:
      return choice.setStandard();
    case ToolChoice::Kind::kNone:
      return choice.setNone();
    case ToolChoice::Kind::kAutomatic:
      return choice.setAutomatic();
    case ToolChoice::Kind::kRequired:
      return choice.setRequired();
    case ToolChoice::Kind::kNamed:
      return choice.setNamed(view(in.tool_choice.name));
  }
}

void fill(const Parameters& in, rpc::Parameters::Builder out) {
  out.setTemperature(in.temperature);
  out.setTopP(in.top_p);
  out.setTopK(in.top_k);
  out.setMinP(in.min_p);
  out.setRepetitionPenalty(in.repetition_penalty);
  out.setPresencePenalty(in.presence_penalty);
  out.setFrequencyPenalty(in.frequency_penalty);
  if (!in.logit_bias.empty()) {
    auto biases = out.initLogitBias(static_cast<uint32_t>(in.logit_bias.size()));
    for (uint32_t i = 0; i < biases.size(); ++i) {
      biases[i].setToken(in.logit_bias[i].first);
      biases[i].setBias(in.logit_bias[i].second);
    }
  }
  if (!in.allowed_token_ids.empty()) {
    auto ids = out.initAllowedTokenIds(static_cast<uint32_t>(in.allowed_token_ids.size()));
    for (uint32_t i = 0; i < ids.size(); ++i) ids.set(i, in.allowed_token_ids[i]);
  }
  if (!in.bad_words.empty()) {
    auto words = out.initBadWords(static_cast<uint32_t>(in.bad_words.size()));
    for (uint32_t i = 0; i < words.size(); ++i) words.set(i, view(in.bad_words[i]));
  }
  if (in.seed) out.getSeed().setValue(*in.seed);
  out.setN(in.n);
  if (in.max_tokens) out.setMaxTokens(*in.max_tokens);
  out.setMinTokens(in.min_tokens);
  if (!in.stop.empty()) {
    auto stops = out.initStop(static_cast<uint32_t>(in.stop.size()));
    for (uint32_t i = 0; i < stops.size(); ++i) stops.set(i, view(in.stop[i]));
  }
  if (!in.stop_token_ids.empty()) {
    auto ids = out.initStopTokenIds(static_cast<uint32_t>(in.stop_token_ids.size()));
    for (uint32_t i = 0; i < ids.size(); ++i) ids.set(i, in.stop_token_ids[i]);
  }
  out.setIncludeStopText(in.include_stop_text);
  out.setIgnoreEos(in.ignore_eos);
  if (in.logprobs) out.setLogprobs(*in.logprobs);
  out.setEcho(in.echo);
  out.setCacheSalt(view(in.cache_salt));
  out.setLabel(view(in.label));
  if (!in.structured_outputs.empty()) out.setStructuredOutputs(view(in.structured_outputs));
  fill_tools(in, out);
}

void fill(const Message& in, rpc::Message::Builder out) {
  out.setRole(view(in.role));
  out.setContent(view(in.content));
  if (!in.name.empty()) out.setName(view(in.name));
  if (!in.tool_call_id.empty()) out.setToolCallId(view(in.tool_call_id));
  if (in.tool_calls.empty()) return;
  auto calls = out.initToolCalls(static_cast<uint32_t>(in.tool_calls.size()));
  for (uint32_t i = 0; i < calls.size(); ++i) {
    calls[i].setId(view(in.tool_calls[i].id));
    calls[i].setName(view(in.tool_calls[i].name));
    calls[i].setArguments(view(in.tool_calls[i].arguments));
  }
}

std::vector<SampledToken> to_tokens(capnp::List<rpc::Token>::Reader in) {
  std::vector<SampledToken> out;
  out.reserve(in.size());
  for (const rpc::Token::Reader token : in) {
    SampledToken& sampled = out.emplace_back();
    sampled.token = token.getId();
    sampled.logprob = token.getLogprob();
    for (const rpc::TokenLogprob::Reader top : token.getTop()) {
      sampled.top.push_back({top.getToken(), top.getLogprob()});
    }
  }
  return out;
}

std::vector<ToolCall> to_calls(capnp::List<rpc::ToolCall>::Reader in) {
  std::vector<ToolCall> out;
  out.reserve(in.size());
  for (const rpc::ToolCall::Reader call : in) {
    out.push_back({to_string(call.getId()), to_string(call.getName()),
                   to_string(call.getArguments()), call.getIndex()});
  }
  return out;
}

FinishReason to_reason(rpc::FinishReason reason) {
  switch (reason) {
    case rpc::FinishReason::STOP:
      return FinishReason::kStop;
    case rpc::FinishReason::LENGTH:
      return FinishReason::kLength;
    case rpc::FinishReason::TOOL_CALLS:
      return FinishReason::kToolCalls;
    default:
      return FinishReason::kUnfinished;
  }
}

StatusCode to_code(rpc::ErrorCode code) {
  switch (code) {
    case rpc::ErrorCode::INVALID_ARGUMENT:
      return StatusCode::kInvalidArgument;
    case rpc::ErrorCode::NOT_FOUND:
      return StatusCode::kNotFound;
    case rpc::ErrorCode::CONTEXT_LENGTH:
      return StatusCode::kContextLength;
    case rpc::ErrorCode::RESOURCE_EXHAUSTED:
      return StatusCode::kResourceExhausted;
    case rpc::ErrorCode::DEADLINE_EXCEEDED:
      return StatusCode::kDeadlineExceeded;
    case rpc::ErrorCode::CANCELLED:
      return StatusCode::kCancelled;
    case rpc::ErrorCode::UNAVAILABLE:
      return StatusCode::kUnavailable;
    case rpc::ErrorCode::DATA_LOSS:
      return StatusCode::kDataLoss;
    case rpc::ErrorCode::UNSUPPORTED:
      return StatusCode::kUnsupported;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

void fill(const CompletionRequest& in, rpc::Serving::CompleteParams::Builder out) {
  out.setModel(view(in.model));
  if (const auto* text = std::get_if<std::string>(&in.prompt)) {
    out.initPrompt().setText(view(*text));
  } else {
    const auto& tokens = std::get<std::vector<Token>>(in.prompt);
    auto list = out.initPrompt().initTokens(static_cast<uint32_t>(tokens.size()));
    for (uint32_t i = 0; i < list.size(); ++i) list.set(i, tokens[i]);
  }
  fill(in.parameters, out.initParameters());
}

void fill(const ChatRequest& in, rpc::Serving::ChatParams::Builder out) {
  out.setModel(view(in.model));
  auto messages = out.initMessages(static_cast<uint32_t>(in.messages.size()));
  for (uint32_t i = 0; i < messages.size(); ++i) fill(in.messages[i], messages[i]);
  fill(in.parameters, out.initParameters());
}

std::vector<Choice> to_choices(capnp::List<rpc::Choice>::Reader in) {
  std::vector<Choice> out;
  out.reserve(in.size());
  for (const rpc::Choice::Reader choice : in) {
    out.push_back({choice.getIndex(), to_string(choice.getText()), to_tokens(choice.getTokens()),
                   to_tokens(choice.getPromptTokens()), to_reason(choice.getFinishReason()),
                   to_string(choice.getReasoning()), to_calls(choice.getToolCalls())});
  }
  return out;
}

Answer to_answer(rpc::Answer::Reader in) {
  Answer out;
  out.id = to_string(in.getId());
  out.model = to_string(in.getModel());
  out.created_unix_s = in.getCreated();
  out.choices = to_choices(in.getChoices());
  const rpc::Usage::Reader usage = in.getUsage();
  out.usage = {usage.getPromptTokens(), usage.getCompletionTokens(), {}};
  if (usage.getCachedTokens() >= 0) {
    out.usage.cached_tokens = static_cast<uint64_t>(usage.getCachedTokens());
  }
  return out;
}

Model to_model(rpc::Model::Reader in) {
  return {to_string(in.getName()), in.getContextTokens(), in.getVocabSize(), in.getCreated(),
          in.getChat()};
}

Status to_status(rpc::Error::Reader error) {
  return {to_code(error.getCode()), to_string(error.getMessage()), to_string(error.getParam())};
}

Status to_status(const kj::Exception& exception) {
  // What the library puts before the server's own words.
  constexpr std::string_view kRemote = "remote exception: ";
  std::string_view text(exception.getDescription().begin(), exception.getDescription().size());
  if (text.starts_with(kRemote)) text.remove_prefix(kRemote.size());
  switch (exception.getType()) {
    case kj::Exception::Type::OVERLOADED:
      return {StatusCode::kUnavailable, std::string(text)};
    case kj::Exception::Type::DISCONNECTED:
      return {StatusCode::kUnavailable,
              "the connection to the server was lost; try again: " + std::string(text)};
    case kj::Exception::Type::UNIMPLEMENTED:
      return {StatusCode::kUnsupported, std::string(text)};
    case kj::Exception::Type::FAILED:
      break;
  }
  return {StatusCode::kInvalidArgument, std::string(text)};
}

std::string to_string(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

}  // namespace troupe::client
