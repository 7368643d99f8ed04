#include "loadgen/words.h"

#include <charconv>
#include <string_view>

#include "base/assert.h"
#include "loadgen/limits.h"

namespace troupe::loadgen {
namespace {

constexpr std::string_view kCommonWords =
    "time year people way day man thing woman life child world school state family student "
    "group country problem hand part place case week company system program question work "
    "government number night point home water room mother area money story fact month lot "
    "right study book eye job word business issue side kind head house service friend father "
    "power hour game line end member law car city community name president team minute idea "
    "kid body information back parent face others level office door health person art war "
    "history party result change morning reason research girl guy moment air teacher force "
    "education foot boy age policy music market sense nation plan college interest death "
    "experience effect use class control care field development role effort rate heart show "
    "leader light voice wife police mind price report decision son view relationship town "
    "road arm difference value building action season society tax director position player "
    "record paper space ground form event official matter center couple site project "
    "activity star table need court oil situation cost industry figure street image phone "
    "data picture practice piece land product doctor wall patient worker news test movie "
    "north love support technology step baby computer type attention film tree source hair "
    "window culture chance brother energy period course summer plant opportunity term letter "
    "condition choice rule daughter south husband floor campaign material population call "
    "economy hospital church risk fire future bank west sport board subject officer rest "
    "behavior performance fight top goal second bed order author blood agency nature color "
    "store sound movement page race concern series language response animal factor article "
    "east artist scene stock career treatment approach size dog fund media sign thought list "
    "individual quality pressure answer resource meeting disease success cup amount ability "
    "staff character growth loss degree region television box training trade deal election "
    "feeling standard bill message analysis benefit lawyer section glass skill sister "
    "professor operation stage compare authority design sort knowledge station strategy "
    "truth song example environment leg dark public executive set rock";

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    out.emplace_back(text.substr(0, blank));
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  }
  return out;
}

}  // namespace

const std::vector<std::string>& common_words() {
  static const std::vector<std::string> words = split(kCommonWords);
  return words;
}

std::string random_words(const std::vector<std::string>& words, uint64_t count, Random& random) {
  TROUPE_ASSERT(!words.empty());
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += words[random.below(words.size())];
  }
  return text;
}

Result<LengthRange> parse_length_range(const std::string& flag, const std::string& text) {
  const size_t colon = text.find(':');
  const auto number = [](std::string_view digits, uint32_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value >= 1 &&
           value <= kTokensMax;
  };
  LengthRange range;
  const std::string_view whole = text;
  const bool is_range = colon != std::string::npos;
  if (!number(whole.substr(0, colon), range.least) ||
      !number(is_range ? whole.substr(colon + 1) : whole, range.most) || range.least > range.most) {
    return invalid_argument(flag + " must be a number of tokens from 1 to " +
                            std::to_string(kTokensMax) + ", or two with a colon, the lesser " +
                            "first, not \"" + text + "\"; write for example " + flag + " 128 or " +
                            flag + " 64:256");
  }
  return range;
}

}  // namespace troupe::loadgen
