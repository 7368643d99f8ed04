#include "actors/gateway/rpc/serving_service.h"

#include <string>
#include <utility>

#include "actors/gateway/openai/prepared_request.h"
#include "actors/gateway/openai/service_bodies.h"
#include "actors/gateway/rpc/rpc_documents.h"
#include "actors/gateway/rpc/rpc_errors.h"
#include "actors/gateway/rpc/rpc_exchange.h"

namespace troupe {

Status ServingService::check_size(capnp::MessageSize size) const {
  const size_t limit = context_.load.limits().body_bytes_max;
  if (size.wordCount <= limit / sizeof(capnp::word)) return ok_status();
  return invalid_argument("the request must have at most " + std::to_string(limit) +
                          " bytes; send less");
}

Status ServingService::check_access() const {
  if (access_ == Access::kGranted || context_.keys == nullptr || !context_.keys->required()) {
    return ok_status();
  }
  return invalid_argument(
      "this server wants an API key; call authenticate() and use the capability that it gives");
}

kj::Promise<void> ServingService::authenticate(AuthenticateContext context) {
  const auto key = context.getParams().getKey();
  if (context_.keys != nullptr && context_.keys->required() &&
      !context_.keys->accepts({key.begin(), key.size()})) {
    return to_exception(invalid_argument("this server does not know this API key"));
  }
  context.getResults().setServing(kj::heap<ServingService>(context_, Access::kGranted));
  return kj::READY_NOW;
}

kj::Promise<void> ServingService::version(VersionContext context) {
  context.getResults().setVersion(context_.version.c_str());
  return kj::READY_NOW;
}

kj::Promise<void> ServingService::health(HealthContext context) {
  const Status health = context_.health.health();
  context.getResults().setReady(health.ok());
  context.getResults().setReason(health.message().c_str());
  return kj::READY_NOW;
}

kj::Promise<void> ServingService::models(ModelsContext context) {
  if (const Status access = check_access(); !access.ok()) return to_exception(access);
  std::vector<const ServedModel*> served;
  for (size_t i = 0; i < context_.models.size(); ++i) {
    const ServedModel& model = context_.models.at(i).served();
    if (context_.health.health_of(model.digest).ok()) served.push_back(&model);
  }
  auto out = context.getResults().initModels(static_cast<uint32_t>(served.size()));
  for (uint32_t i = 0; i < out.size(); ++i) {
    const ServedModel& model = *served[i];
    out[i].setName(model.name.c_str());
    out[i].setContextTokens(model.context_tokens);
    out[i].setVocabSize(static_cast<uint32_t>(model.tokenizer.vocab_size()));
    out[i].setCreated(model.created_unix_s);
    out[i].setChat(model.chat_template != nullptr);
  }
  return kj::READY_NOW;
}

kj::Promise<void> ServingService::tokenize(TokenizeContext context) {
  const auto tokens = [&]() -> Result<std::vector<TokenId>> {
    TROUPE_RETURN_IF_ERROR(check_access());
    TROUPE_RETURN_IF_ERROR(check_size(context.getParams().totalSize()));
    TROUPE_ASSIGN_OR_RETURN(const RequestDocument document, to_document(context.getParams()));
    TROUPE_ASSIGN_OR_RETURN(const TokenizeBody body,
                            check_tokenize(document, context_.models.rules()));
    return troupe::tokenize(body, context_.models.at(body.model), context_.clock.unix_seconds());
  }();
  if (!tokens.ok()) return to_exception(tokens.status());
  auto out = context.getResults().initTokens(static_cast<uint32_t>(tokens->size()));
  for (uint32_t i = 0; i < out.size(); ++i) {
    out.set(i, static_cast<uint32_t>(tokens.value()[i]));
  }
  return kj::READY_NOW;
}

kj::Promise<void> ServingService::detokenize(DetokenizeContext context) {
  const auto text = [&]() -> Result<std::string> {
    TROUPE_RETURN_IF_ERROR(check_access());
    TROUPE_RETURN_IF_ERROR(check_size(context.getParams().totalSize()));
    TROUPE_ASSIGN_OR_RETURN(const RequestDocument document, to_document(context.getParams()));
    TROUPE_ASSIGN_OR_RETURN(const DetokenizeBody body,
                            check_detokenize(document, context_.models.rules()));
    return troupe::detokenize(body, context_.models.at(body.model));
  }();
  if (!text.ok()) return to_exception(text.status());
  context.getResults().setText(kj::StringPtr(text->c_str(), text->size()));
  return kj::READY_NOW;
}

template <class Context, class Check>
kj::Promise<void> ServingService::generate(Context context, Check check) {
  context.allowCancellation();
  const uint64_t number = context_.load.next_request();
  const auto params = context.getParams();
  kj::Maybe<rpc::ResponseSink::Client> sink;
  if (params.hasSink()) sink = params.getSink();
  if (const Status access = check_access(); !access.ok()) return refuse(context_, access, sink);
  if (context_.draining) {
    return refuse(
        context_,
        {StatusCode::kUnavailable, "the server is shutting down; try again soon, or elsewhere"},
        sink);
  }
  // Before anything is read, so that a refusal costs little.
  Result<LoadTicket> ticket = context_.load.begin_generation();
  if (!ticket.ok()) return refuse(context_, ticket.status(), sink);
  Result<PreparedRequest> prepared = [&]() -> Result<PreparedRequest> {
    TROUPE_RETURN_IF_ERROR(check_size(params.totalSize()));
    TROUPE_ASSIGN_OR_RETURN(const RequestDocument document, to_document(params));
    TROUPE_ASSIGN_OR_RETURN(GenerationBody body, check(document, context_.models.rules()));
    const CataloguedModel& model = context_.models.at(body.model);
    return prepare_request(std::move(body), model, context_.clock.unix_seconds());
  }();
  if (!prepared.ok()) return refuse(context_, prepared.status(), sink);
  const auto given = params.getParameters().getLabel();
  const std::string label(given.begin(), given.size());
  const auto delivery = params.getParameters().getWhole() ? RpcExchange::Delivery::kWhole
                                                          : RpcExchange::Delivery::kChunks;
  context.releaseParams();  // a prompt may be large, and an answer may take minutes
  auto exchange =
      kj::heap<RpcExchange>(context_, std::move(ticket).value(), kj::mv(sink), delivery);
  RpcExchange& running = *exchange;
  return running.serve(std::move(prepared).value(), number, label)
      .then(
          [context, &running]() mutable { running.fill_answer(context.getResults().initAnswer()); })
      .attach(kj::mv(exchange));
}

kj::Promise<void> ServingService::complete(CompleteContext context) {
  return generate(context, check_completions);
}

kj::Promise<void> ServingService::chat(ChatContext context) {
  return generate(context, check_chat);
}

}  // namespace troupe
