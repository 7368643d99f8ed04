#include "actors/gateway/text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace troupe {

namespace {

// Where the longest suffix of `text` begins that is a proper beginning of `stop`.
size_t possible_start(std::string_view text, std::string_view stop) {
  size_t begin = text.size() - std::min(text.size(), stop.size() - 1);
  for (; begin < text.size(); ++begin) {
    if (stop.starts_with(text.substr(begin))) break;
  }
  return begin;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops, StopText stop_text)
    : stops_(std::move(stops)), stop_text_(stop_text) {
  for (const std::string& stop : stops_) TROUPE_ASSERT(!stop.empty(), stops_.size());
}

StopMatcher::Match StopMatcher::find_first() const {
  Match first;
  for (const std::string& stop : stops_) {
    const size_t begin = held_.find(stop);
    const size_t end = begin + stop.size();
    if (begin < first.begin || (begin == first.begin && end < first.end)) {
      first = {begin, end, &stop};
    }
  }
  return first;
}

std::string StopMatcher::end_at(const Match& match) {
  matched_ = true;
  ended_ = true;
  found_ = *match.stop;
  held_.resize(stop_text_ == StopText::kInclude ? match.end : match.begin);
  return std::exchange(held_, {});
}

std::string StopMatcher::push(std::string_view piece) {
  if (ended_) return {};
  held_.append(piece);
  const Match match = find_first();
  size_t keep = held_.size();
  for (const std::string& stop : stops_) keep = std::min(keep, possible_start(held_, stop));
  // An occurrence that began earlier and is not complete yet would win over the one found.
  if (match.begin <= keep) return end_at(match);
  std::string out = held_.substr(0, keep);
  held_.erase(0, keep);
  return out;
}

std::string StopMatcher::flush() {
  if (ended_) return {};
  const Match match = find_first();
  if (match.begin < held_.size()) return end_at(match);
  ended_ = true;
  return std::exchange(held_, {});
}

}  // namespace troupe
