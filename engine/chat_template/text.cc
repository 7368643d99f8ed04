#include "engine/chat_template/text.h"

#include <algorithm>

#include "base/assert.h"

namespace troupe {

TemplateText::TemplateText(std::string bytes, TextOrigin origin) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) runs_.push_back({bytes_.size(), origin});
}

void TemplateText::append(std::string_view bytes, TextOrigin origin) {
  if (bytes.empty()) return;
  bytes_.append(bytes);
  if (!runs_.empty() && runs_.back().origin == origin) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), origin});
  }
}

void TemplateText::append(const TemplateText& other) {
  append_slice(other, 0, other.size());
}

size_t TemplateText::run_at(size_t position) const {
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), position,
                                    [](size_t at, const Run& r) { return at < r.end; });
  return static_cast<size_t>(run - runs_.begin());
}

void TemplateText::append_slice(const TemplateText& other, size_t begin, size_t end) {
  TROUPE_ASSERT(begin <= end && end <= other.size(), begin, end, other.size());
  TROUPE_ASSERT(&other != this, "a text is not appended to itself");
  for (size_t run = other.run_at(begin); begin < end; ++run) {
    const size_t run_end = std::min(end, other.runs_[run].end);
    append(std::string_view(other.bytes_).substr(begin, run_end - begin), other.runs_[run].origin);
    begin = run_end;
  }
}

TemplateText TemplateText::slice(size_t begin, size_t end) const {
  TemplateText result;
  result.append_slice(*this, begin, end);
  return result;
}

TextOrigin TemplateText::origin_of(size_t begin, size_t end) const {
  TROUPE_ASSERT(begin <= end && end <= size(), begin, end, size());
  if (begin == end) return TextOrigin::kTemplate;
  // Neighbouring runs differ in origin, so a range over two of them holds data.
  const size_t run = run_at(begin);
  return runs_[run].end >= end ? runs_[run].origin : TextOrigin::kData;
}

}  // namespace troupe
