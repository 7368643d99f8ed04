#pragma once
// The one error system of Troupe: a Status says what went wrong and what the caller may do about
// it.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

// Closed: a new code is added only when some caller reacts to it differently.
enum class StatusCode {
  kOk = 0,
  kInvalidArgument,    // the caller's input breaks a rule; repeating it cannot help
  kNotFound,           // the named thing does not exist; fix the name
  kContextLength,      // the prompt does not fit the model's context; shorten it
  kResourceExhausted,  // a limit or queue is full now; retry later
  kDeadlineExceeded,   // not done in time; retry elsewhere or later
  kCancelled,          // the caller gave up; nothing to do
  kUnavailable,        // the peer or worker is gone; retry elsewhere
  kDataLoss,           // bytes are truncated, corrupted or of a foreign format; get them anew
  kUnsupported,        // well-formed, but this build cannot do it
  kInternal,           // a bug of ours; report it
};

[[nodiscard]] std::string_view to_string(StatusCode code);

// Value type. `message` is one sentence for a person that names the input, the rule and the fix.
// `param` names the offending field of a request ("messages[0].role"), or is empty.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message, std::string param = {})
      : code_(code), message_(std::move(message)), param_(std::move(param)) {}

  [[nodiscard]] bool ok() const { return code_ == StatusCode::kOk; }
  [[nodiscard]] StatusCode code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] const std::string& param() const { return param_; }

  bool operator==(const Status&) const = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::string param_;
};

inline Status ok_status() {
  return {};
}
inline Status invalid_argument(std::string message, std::string param = {}) {
  return {StatusCode::kInvalidArgument, std::move(message), std::move(param)};
}

// Terminates the process with the status; the reaction to asking a failed Result for its value.
[[noreturn]] void die_on_bad_result(const Status& status);

// Either a T or a failed Status, never both. Asking for what it does not hold ends the process.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit by intent, like std::optional
  Result(Status status) : status_(std::move(status)) {  // NOLINT
    if (status_.ok()) die_on_bad_result(status_);
  }

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] T& value() & {
    if (!value_) die_on_bad_result(status_);
    return *value_;
  }
  [[nodiscard]] const T& value() const& {
    if (!value_) die_on_bad_result(status_);
    return *value_;
  }
  [[nodiscard]] T&& value() && {
    if (!value_) die_on_bad_result(status_);
    return std::move(*value_);
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace troupe

// Returns the status from the enclosing function unless it is ok.
#define TROUPE_RETURN_IF_ERROR(expression)                                    \
  do {                                                                        \
    if (::troupe::Status troupe_status_ = (expression); !troupe_status_.ok()) \
      return troupe_status_;                                                  \
  } while (false)

#define TROUPE_CONCAT_INNER(a, b) a##b
#define TROUPE_CONCAT(a, b) TROUPE_CONCAT_INNER(a, b)
// TROUPE_ASSIGN_OR_RETURN(auto x, f()): declares x from the Result, or returns its status.
#define TROUPE_ASSIGN_OR_RETURN(declaration, expression)       \
  auto TROUPE_CONCAT(troupe_result_, __LINE__) = (expression); \
  if (!TROUPE_CONCAT(troupe_result_, __LINE__).ok())           \
    return TROUPE_CONCAT(troupe_result_, __LINE__).status();   \
  declaration = std::move(TROUPE_CONCAT(troupe_result_, __LINE__)).value()
