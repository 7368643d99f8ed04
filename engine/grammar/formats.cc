#include "engine/grammar/formats.h"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

// RFC 3339, but February has 28 days, no second is a leap second, and years have four digits.
#define TROUPE_DATE                                                                            \
  "[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)" \
  "|02-(0[1-9]|1[0-9]|2[0-8]))"
#define TROUPE_TIME \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define TROUPE_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define TROUPE_LABEL "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?"
#define TROUPE_HOST TROUPE_LABEL "(\\." TROUPE_LABEL "){0,4}"

struct Format {
  std::string_view name, pattern;
};
constexpr std::array kFormats = {
    Format{"date", TROUPE_DATE},
    Format{"time", TROUPE_TIME},
    Format{"date-time", TROUPE_DATE "T" TROUPE_TIME},
    // RFC 3339, appendix A: at least one unit, in order.
    Format{"duration",
           "P([0-9]{1,4}Y([0-9]{1,2}M([0-9]{1,3}D)?)?|[0-9]{1,2}M([0-9]{1,3}D)?|[0-9]{1,3}D"
           "|[0-9]{1,3}W|T([0-9]{1,3}H([0-9]{1,2}M([0-9]{1,2}S)?)?|[0-9]{1,3}M([0-9]{1,2}S)?"
           "|[0-9]{1,3}S))"},
    Format{"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
    Format{"ipv4", TROUPE_BYTE "(\\." TROUPE_BYTE "){3}"},
    Format{"ipv6", "[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}"},
    Format{"hostname", TROUPE_HOST},
    Format{"email", "[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,32}){0,4}@" TROUPE_HOST},
    Format{"uri", "(https?|ftp)://" TROUPE_HOST
                  "(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~-]{0,64}){0,16}(\\?[A-Za-z0-9._~=&-]{0,128})?"
                  "(#[A-Za-z0-9._~-]{0,64})?"},
};

#undef TROUPE_DATE
#undef TROUPE_TIME
#undef TROUPE_BYTE
#undef TROUPE_LABEL
#undef TROUPE_HOST

}  // namespace

std::optional<std::string_view> pattern_of_format(std::string_view format) {
  const auto* found = std::find_if(kFormats.begin(), kFormats.end(),
                                   [format](const Format& known) { return known.name == format; });
  if (found == kFormats.end()) return std::nullopt;
  return found->pattern;
}

std::string_view format_names() {
  return "date, time, date-time, duration, uuid, ipv4, ipv6, hostname, email and uri";
}

}  // namespace troupe
