#pragma once
// What one render has left to spend. Everything that takes time or memory in proportion to foreign
// input charges for it first.

#include <cstdint>
#include <string>

#include "engine/chat_template/limits.h"
#include "engine/chat_template/text.h"
#include "troupe/status.h"

namespace troupe::chat_template {

// Of one render on one thread.
class Budget {
 public:
  explicit Budget(const ChatTemplateLimits& limits) : limits_(limits) {}

  [[nodiscard]] const ChatTemplateLimits& limits() const { return limits_; }

  // One evaluated node or visited element each.
  Status steps(uint64_t count) {
    if (count <= limits_.steps_max - steps_) {
      steps_ += count;
      return ok_status();
    }
    return exceeded("steps_max", limits_.steps_max, "steps");
  }
  // Bytes that are about to be copied or scanned.
  Status work(uint64_t bytes) {
    if (bytes <= limits_.work_bytes_max - work_bytes_) {
      work_bytes_ += bytes;
      return ok_status();
    }
    return exceeded("work_bytes_max", limits_.work_bytes_max, "bytes of work");
  }
  // A text of `size` bytes is about to grow by `added`.
  Status grow(uint64_t size, uint64_t added) {
    if (added > limits_.output_bytes_max || size > limits_.output_bytes_max - added) {
      return exceeded("output_bytes_max", limits_.output_bytes_max, "bytes of text");
    }
    return work(added);
  }
  // The same for a text with origins, whose runs take space too.
  Status append(const TemplateText& to, const TemplateText& added) {
    TROUPE_RETURN_IF_ERROR(grow(to.size(), added.size()));
    return work(added.runs().size() * sizeof(TemplateText::Run));
  }
  // A text with origins, or parts of it, is about to be copied.
  Status copy(const TemplateText& text) { return append(TemplateText(), text); }
  // A text of this size is about to be made.
  Status text(uint64_t bytes) { return grow(0, bytes); }
  // A list or dict of this many elements is about to be made.
  Status elements(uint64_t count) {
    TROUPE_RETURN_IF_ERROR(steps(count));
    return work(count * kElementBytes);
  }
  Status value_depth(uint32_t depth) {
    if (depth <= limits_.value_depth_max) return ok_status();
    return exceeded("value_depth_max", limits_.value_depth_max, "levels of nested values");
  }

  Status eval_depth(uint32_t depth) const {
    if (depth <= limits_.eval_depth_max) return ok_status();
    return exceeded("eval_depth_max", limits_.eval_depth_max, "nested evaluations");
  }

 private:
  // About what an element of a container takes, with its share of allocations.
  static constexpr uint64_t kElementBytes = 64;

  static Status exceeded(const char* name, uint64_t limit, const char* unit) {
    return invalid_argument("rendering needs more than " + std::string(name) + " = " +
                            std::to_string(limit) + " " + unit +
                            "; shorten the conversation or simplify the template");
  }

  const ChatTemplateLimits& limits_;
  uint64_t steps_ = 0;
  uint64_t work_bytes_ = 0;
};

}  // namespace troupe::chat_template
