#include "actors/gateway/http/endpoints.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "actors/gateway/anthropic/messages_answer.h"
#include "actors/gateway/anthropic/messages_request.h"
#include "actors/gateway/openai/embeddings_answer.h"
#include "actors/gateway/openai/generated_answer.h"
#include "actors/gateway/openai/json_answer.h"
#include "actors/gateway/openai/score_answer.h"
#include "actors/gateway/openai/service_bodies.h"
#include "actors/gateway/responses/responses_answer.h"

namespace troupe {
namespace {

RunIdentity identity_of(HttpContext& context, const HttpRequestFacts& request,
                        const ServedModel& model, const char* prefix) {
  RunIdentity identity;
  identity.response_id = context.load.response_id(prefix, request.number);
  identity.label = request.request_id;
  identity.model = model.name;
  identity.created_unix_s = context.clock.unix_seconds();
  identity.seed_default = context.load.default_seed(request.number);
  return identity;
}

// Makes the writer of a run from the sink.
using MakeWriter =
    std::function<std::unique_ptr<RunSink>(const RunIdentity& identity, JsonSink& sink)>;

PreparedAnswer generated(HttpContext& context, RunIdentity identity, PreparedRequest prepared,
                         MakeWriter make_writer) {
  const bool stream = prepared.body.stream;
  // A std::function must be copyable.
  auto owned = std::make_shared<PreparedRequest>(std::move(prepared));
  return {stream, [&context, identity = std::move(identity), owned = std::move(owned),
                   make_writer = std::move(make_writer)](JsonSink& sink) {
            return std::make_unique<GeneratedAnswer>(std::move(*owned), identity, context.generator,
                                                     make_writer(identity, sink));
          }};
}

Result<PreparedAnswer> prepare_openai(HttpContext& context, const HttpRequestFacts& request,
                                      Result<GenerationBody> parsed, const char* prefix) {
  if (!parsed.ok()) return parsed.status();
  const CataloguedModel& model = context.models.at(parsed->model);
  TROUPE_ASSIGN_OR_RETURN(
      PreparedRequest prepared,
      prepare_request(std::move(parsed).value(), model, context.clock.unix_seconds()));
  auto body = std::make_shared<const GenerationBody>(prepared.body);
  return generated(
      context, identity_of(context, request, model.served(), prefix), std::move(prepared),
      [body, &model](const RunIdentity& identity, JsonSink& sink) {
        return std::make_unique<JsonAnswer>(*body, identity, model.served().tokenizer, sink);
      });
}

Result<PreparedAnswer> prepare_chat(HttpContext& context, const HttpRequestFacts& request,
                                    std::string_view body) {
  return prepare_openai(context, request, parse_chat_body(body, context.models.rules()),
                        "chatcmpl-");
}

Result<PreparedAnswer> prepare_completions(HttpContext& context, const HttpRequestFacts& request,
                                           std::string_view body) {
  return prepare_openai(context, request, parse_completions_body(body, context.models.rules()),
                        "cmpl-");
}

Result<PreparedAnswer> prepare_responses(HttpContext& context, const HttpRequestFacts& request,
                                         std::string_view body) {
  TROUPE_ASSIGN_OR_RETURN(ResponsesRequest parsed,
                          parse_responses_body(body, context.models.rules(), context.responses));
  const CataloguedModel& model = context.models.at(parsed.body.model);
  const bool stream = parsed.body.stream;
  const bool wants_logprobs = parsed.body.sampling.logprobs >= 0;
  Result<PreparedRequest> prepared =
      prepare_request(std::exchange(parsed.body, {}), model, context.clock.unix_seconds());
  if (!prepared.ok()) return parsed.renames.apply(prepared.status());
  auto owned = std::make_shared<ResponsesRequest>(std::move(parsed));
  return generated(context, identity_of(context, request, model.served(), "resp_"),
                   std::move(prepared).value(),
                   [owned, stream, wants_logprobs, &model, &context](const RunIdentity& identity,
                                                                     JsonSink& sink) {
                     return std::make_unique<ResponsesAnswer>(
                         std::move(*owned), identity, stream, wants_logprobs,
                         model.served().tokenizer, context.clock, context.responses, sink);
                   });
}

Result<PreparedAnswer> prepare_messages(HttpContext& context, const HttpRequestFacts& request,
                                        std::string_view body) {
  TROUPE_ASSIGN_OR_RETURN(MessagesRequest parsed,
                          parse_messages_body(body, context.models.rules()));
  const CataloguedModel& model = context.models.at(parsed.body.model);
  const bool stream = parsed.body.stream;
  Result<PreparedRequest> prepared =
      prepare_request(std::move(parsed.body), model, context.clock.unix_seconds());
  if (!prepared.ok()) return parsed.renames.apply(prepared.status());
  return generated(context, identity_of(context, request, model.served(), "msg_"),
                   std::move(prepared).value(),
                   [stream](const RunIdentity& identity, JsonSink& sink) {
                     return std::make_unique<MessagesAnswer>(identity, stream, sink);
                   });
}

Result<PreparedAnswer> prepare_embeddings(HttpContext& context, const HttpRequestFacts& request,
                                          std::string_view body) {
  TROUPE_ASSIGN_OR_RETURN(EmbeddingsBody parsed,
                          parse_embeddings_body(body, context.models.rules()));
  const CataloguedModel& model = context.models.at(parsed.model);
  TROUPE_ASSIGN_OR_RETURN(auto inputs, encode_inputs(parsed, model));
  return PreparedAnswer{false,
                        [&context, &model, label = request.request_id, parsed = std::move(parsed),
                         inputs = std::move(inputs)](JsonSink& sink) {
                          return std::make_unique<EmbeddingsAnswer>(
                              parsed, inputs, label, model.served(), context.generator, sink);
                        }};
}

Result<PreparedAnswer> prepare_score(HttpContext& context, const HttpRequestFacts& request,
                                     std::string_view body) {
  TROUPE_ASSIGN_OR_RETURN(ScoreBody parsed, parse_score_body(body, context.models.rules()));
  const CataloguedModel& model = context.models.at(parsed.model);
  TROUPE_ASSIGN_OR_RETURN(ScoreTokens tokens, encode_score(parsed, model));
  RunIdentity identity = identity_of(context, request, model.served(), "score-");
  return PreparedAnswer{
      false, [&context, &model, identity = std::move(identity), parsed = std::move(parsed),
              tokens = std::move(tokens)](JsonSink& sink) {
        return std::make_unique<ScoreAnswer>(parsed, tokens, identity, model.served(),
                                             context.generator, sink);
      }};
}

Result<std::string> count_tokens(HttpContext& context, std::string_view body) {
  TROUPE_ASSIGN_OR_RETURN(MessagesRequest parsed, parse_count_body(body, context.models.rules()));
  const CataloguedModel& model = context.models.at(parsed.body.model);
  const Result<PreparedRequest> prepared =
      prepare_request(std::move(parsed.body), model, context.clock.unix_seconds());
  if (!prepared.ok()) return parsed.renames.apply(prepared.status());
  return format_count(prepared->prompts.at(0).tokens.size());
}

Result<std::string> tokenize_text(HttpContext& context, std::string_view body) {
  return answer_tokenize(body, context.models, context.clock.unix_seconds());
}

Result<std::string> detokenize_tokens(HttpContext& context, std::string_view body) {
  return answer_detokenize(body, context.models);
}

constexpr PostEndpoint kEndpoints[] = {
    {.path = "/v1/chat/completions", .prepare = prepare_chat},
    {.path = "/v1/completions", .prepare = prepare_completions},
    {.path = "/v1/responses", .prepare = prepare_responses},
    {.path = "/v1/messages", .prepare = prepare_messages},
    {.path = "/v1/messages/count_tokens", .answer = count_tokens},
    {.path = "/v1/embeddings", .prepare = prepare_embeddings},
    {.path = "/v1/score", .prepare = prepare_score},
    {.path = "/tokenize", .answer = tokenize_text},
    {.path = "/detokenize", .answer = detokenize_tokens},
};

}  // namespace

const PostEndpoint* find_post_endpoint(std::string_view path) {
  const auto* found =
      std::find_if(std::begin(kEndpoints), std::end(kEndpoints),
                   [path](const PostEndpoint& endpoint) { return endpoint.path == path; });
  return found == std::end(kEndpoints) ? nullptr : found;
}

}  // namespace troupe
