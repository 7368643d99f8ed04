#pragma once
// Reads one call, byte by byte, in the forms in which models write them.

#include <cstdint>
#include <optional>
#include <string>

#include "actors/gateway/tools/json_scanner.h"

namespace troupe {

enum class CallForm {
  kObject,  // {"name": "f", "arguments": {...}} in any order; "parameters" is the same
  kNamed,   // f[ARGS]{...} or f[CALL_ID]x[ARGS]{...} or f{...}
};

// Value type. Accepts arguments as an object, as a string that holds the JSON text of one, and as
// null or nothing for none.
class CallReader {
 public:
  explicit CallReader(CallForm form)
      : form_(form), place_(form == CallForm::kObject ? Place::kOpen : Place::kName) {}

  enum class Step : uint8_t { kMore, kDone, kBad };
  // Not to be called after another answer than kMore. The byte behind kDone is not the call's.
  [[nodiscard]] Step push(char c);

  // The name, once it is known for certain.
  [[nodiscard]] const std::optional<std::string>& name() const { return name_; }
  // Whether the arguments are being read, or have been: as an object, so that they can be shown as
  // they come.
  [[nodiscard]] bool in_arguments() const { return in_arguments_; }
  // The arguments' text as far as it is known and was not taken before. After kDone all of it has
  // been taken once this has been called.
  [[nodiscard]] std::string take_arguments();

 private:
  enum class Place : uint8_t {
    kOpen,  // kObject: before {
    kFirstKey,
    kKey,
    kInKey,
    kColon,
    kBeforeValue,
    kInValue,
    kBehindValue,
    kName,  // kNamed
    kMark,
    kCallId,
    kBeforeArguments,
  };
  enum class Member : uint8_t { kName, kArguments, kOther };

  [[nodiscard]] Step push_object(char c);
  [[nodiscard]] Step push_key(char c);
  [[nodiscard]] Step push_value(char c);
  [[nodiscard]] Step push_behind_value(char c);
  [[nodiscard]] Step push_named(char c);
  [[nodiscard]] bool key_ended();
  [[nodiscard]] bool value_ended();
  [[nodiscard]] bool begin_value(char c);
  [[nodiscard]] Step begin_arguments(char c);

  CallForm form_;
  Place place_;
  JsonScanner scanner_;
  std::string text_;  // of the key, value or mark that is being read, where it is wanted
  Member member_ = Member::kOther;
  std::optional<std::string> name_;
  std::string arguments_;  // not taken yet
  bool in_arguments_ = false;
  bool has_arguments_ = false;
};

}  // namespace troupe
