#pragma once
// Text that remembers who wrote each byte: the template's author or a user. It is what keeps a user
// who types "<|im_end|>" from closing a turn.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

enum class TextOrigin : bool {
  kData,      // from the context: message texts, names, tools, numbers; never a control token
  kTemplate,  // spelled in the template, or a token string that the model file defines
};

// UTF-8 bytes in runs of one origin each. Value type. Comparison is by bytes alone: a user's "user"
// equals the template's.
class TemplateText {
 public:
  struct Run {
    size_t end;  // byte offset behind the run
    TextOrigin origin;
    bool operator==(const Run&) const = default;
  };

  TemplateText() = default;
  TemplateText(std::string bytes, TextOrigin origin);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] size_t size() const { return bytes_.size(); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  // Ascending ends, none empty, neighbours differ in origin, the last ends at size().
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }

  void append(std::string_view bytes, TextOrigin origin);
  void append(const TemplateText& other);
  // Appends bytes [begin, end) of `other`; begin <= end <= other.size().
  void append_slice(const TemplateText& other, size_t begin, size_t end);
  [[nodiscard]] TemplateText slice(size_t begin, size_t end) const;
  // kTemplate only if every byte of [begin, end) is; an empty range counts as kTemplate.
  [[nodiscard]] TextOrigin origin_of(size_t begin, size_t end) const;

  bool operator==(const TemplateText& other) const { return bytes_ == other.bytes_; }
  auto operator<=>(const TemplateText& other) const { return bytes_ <=> other.bytes_; }

 private:
  // The first run that ends behind `position`.
  [[nodiscard]] size_t run_at(size_t position) const;

  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace troupe
