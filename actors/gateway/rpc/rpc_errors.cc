#include "actors/gateway/rpc/rpc_errors.h"

#include "actors/gateway/openai/api_error.h"

namespace troupe {

namespace {

kj::Exception::Type type_of(StatusCode code) {
  switch (code) {
    case StatusCode::kResourceExhausted:
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kCancelled:
      return kj::Exception::Type::OVERLOADED;
    case StatusCode::kUnsupported:
      return kj::Exception::Type::UNIMPLEMENTED;
    default:
      return kj::Exception::Type::FAILED;
  }
}

rpc::ErrorCode code_of(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return rpc::ErrorCode::INVALID_ARGUMENT;
    case StatusCode::kNotFound:
      return rpc::ErrorCode::NOT_FOUND;
    case StatusCode::kContextLength:
      return rpc::ErrorCode::CONTEXT_LENGTH;
    case StatusCode::kResourceExhausted:
      return rpc::ErrorCode::RESOURCE_EXHAUSTED;
    case StatusCode::kDeadlineExceeded:
      return rpc::ErrorCode::DEADLINE_EXCEEDED;
    case StatusCode::kCancelled:
      return rpc::ErrorCode::CANCELLED;
    case StatusCode::kUnavailable:
      return rpc::ErrorCode::UNAVAILABLE;
    case StatusCode::kDataLoss:
      return rpc::ErrorCode::DATA_LOSS;
    case StatusCode::kUnsupported:
      return rpc::ErrorCode::UNSUPPORTED;
    case StatusCode::kOk:
    case StatusCode::kInternal:
      break;
  }
  return rpc::ErrorCode::INTERNAL;
}

}  // namespace

kj::Exception to_exception(const Status& status) {
  return kj::Exception(type_of(status.code()), __FILE__, __LINE__,
                       kj::str(to_api_error(status).message.c_str()));
}

void fill_error(const Status& status, rpc::Error::Builder out) {
  const ApiError error = to_api_error(status);
  out.setCode(code_of(status.code()));
  out.setMessage(error.message.c_str());
  out.setParam(error.param.c_str());
  out.setRetryAfterS(error.retry_after_s);
}

}  // namespace troupe
