#include "troupe/status.h"

#include <glog/logging.h>

namespace troupe {

std::string_view to_string(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kContextLength:
      return "context length exceeded";
    case StatusCode::kResourceExhausted:
      return "resource exhausted";
    case StatusCode::kDeadlineExceeded:
      return "deadline exceeded";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kDataLoss:
      return "data loss";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kInternal:
      return "internal";
  }
  return "unknown";
}

void die_on_bad_result(const Status& status) {
  LOG(FATAL) << "a Result was asked for what it does not hold: " << to_string(status.code()) << ": "
             << status.message();
  std::abort();
}

}  // namespace troupe
