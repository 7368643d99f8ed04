#include "actors/gateway/openai/json_parse.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

// Builds the value from the parser's events. Returning false from an event stops the parser.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string& /*text*/) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) override { return false; }  // not in JSON text
  bool start_object(size_t /*elements*/) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t /*elements*/) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    Frame& frame = frames_.back();
    if (!frame.keys.insert(name).second) {
      frame.key = name;
      return fail("the key \"" + printable_excerpt(name, kExcerptBytesMax) +
                  "\" occurs twice in one object; send it once");
    }
    frame.key = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    // Of the library's own text only the kind of error is used: it quotes bytes of the input.
    const bool bad_utf8 = std::strstr(error.what(), "ill-formed UTF-8") != nullptr;
    const bool surrogate = std::strstr(error.what(), "surrogate U+") != nullptr;
    const std::string at = " at byte " + std::to_string(position);
    const std::string quoted = " `" + printable_excerpt(token, kExcerptBytesMax) + "`";
    if (bad_utf8) return fail("a string is not well-formed UTF-8" + at + "; send UTF-8");
    if (surrogate) return fail("a \\u escape is half a surrogate pair" + at + "; send both halves");
    if (error.id == kNumberOverflow) return fail("the number" + quoted + " is too large" + at);
    return fail("the text is not valid JSON" + at + ", near" + quoted);
  }

  [[nodiscard]] Status take_error() {
    TROUPE_ASSERT(error_.has_value(), frames_.size());
    return *std::exchange(error_, std::nullopt);
  }
  [[nodiscard]] Json take_value() { return std::move(root_); }

 private:
  static constexpr int kNumberOverflow = 406;  // nlohmann's number for it

  struct Frame {
    Json* value;  // an open array or object inside root_; stable, since only the last one grows
    std::string key;
    std::unordered_set<std::string> keys;
  };

  bool add(Json value) {
    insert(std::move(value));
    forget_key();
    return true;
  }

  // The value of the open object's key is complete.
  void forget_key() {
    if (!frames_.empty()) frames_.back().key.clear();
  }

  Json* insert(Json value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Frame& frame = frames_.back();
    if (frame.value->is_array()) {
      frame.value->push_back(std::move(value));
      return &frame.value->back();
    }
    // Appended without the look-up of operator[], which is linear in an ordered object; key() has
    // made sure that the name is new.
    auto& object = frame.value->get_ref<Json::object_t&>();
    object.emplace_back(frame.key, std::move(value));
    return &object.back().second;
  }

  bool open(Json container) {
    if (frames_.size() >= kJsonDepthMax) {
      return fail("arrays and objects are nested more than " + std::to_string(kJsonDepthMax) +
                  " deep; flatten the value");
    }
    frames_.push_back({insert(std::move(container)), {}, {}});
    return true;
  }

  bool close() {
    frames_.pop_back();
    forget_key();
    return true;
  }

  bool fail(std::string message) {
    error_ = invalid_argument(std::move(message), path());
    return false;
  }

  [[nodiscard]] std::string path() const {
    std::string out;
    for (const Frame& frame : frames_) {
      if (frame.value->is_array()) {
        // The element that is open is in the array already; one that is being read is not.
        const size_t open = &frame == &frames_.back() ? 0 : 1;
        out += "[" + std::to_string(frame.value->size() - open) + "]";
      } else if (!frame.key.empty()) {
        out += (out.empty() ? "" : ".") + printable_excerpt(frame.key, kExcerptBytesMax);
      }
      if (out.size() > kErrorBytesMax / 4) break;
    }
    return printable_excerpt(out, kErrorBytesMax / 4);
  }

  Json root_;
  std::vector<Frame> frames_;
  std::optional<Status> error_;
};

}  // namespace

Result<Json> parse_json(std::string_view text) {
  if (text.empty()) return invalid_argument("the body is empty; send a JSON object");
  Builder builder;
  if (!Json::sax_parse(text, &builder)) return builder.take_error();
  return builder.take_value();
}

std::string json_excerpt(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return value.empty() ? "an empty array" : "an array";
    case Json::value_t::string: {
      const auto& text = value.get_ref<const std::string&>();
      return '"' + printable_excerpt(text, kExcerptBytesMax - 2) + '"';
    }
    case Json::value_t::number_float:
      // Not from JSON text, which has none of these; the library would print null.
      if (!std::isfinite(value.get<double>())) return std::to_string(value.get<double>());
      [[fallthrough]];
    default:
      return printable_excerpt(value.dump(), kExcerptBytesMax);
  }
}

}  // namespace troupe
