#include "engine/chat_template/strftime.h"

#include <algorithm>
#include <array>

namespace troupe::chat_template {
namespace {

struct Moment {
  int64_t year;
  int64_t month;     // 1 to 12
  int64_t day;       // of the month, from 1
  int64_t year_day;  // from 1
  int64_t week_day;  // 0 is Sunday
  int64_t hour;
  int64_t minute;
  int64_t second;
};

// Days since 1970-01-01 of a date in the proleptic Gregorian calendar. Years are counted from
// March, so that the leap day comes last: Howard Hinnant, "chrono-compatible low-level date
// algorithms".
int64_t days_from_date(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

Moment moment_at(int64_t unix_seconds) {
  constexpr int64_t kDaySeconds = 86400;
  int64_t days = unix_seconds / kDaySeconds;
  int64_t seconds = unix_seconds % kDaySeconds;
  if (seconds < 0) {
    seconds += kDaySeconds;
    --days;
  }
  Moment moment{};
  moment.hour = seconds / 3600;
  moment.minute = seconds / 60 % 60;
  moment.second = seconds % 60;
  moment.week_day = ((days + 4) % 7 + 7) % 7;  // 1970-01-01 was a Thursday
  const int64_t shifted = days + 719468;
  const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const int64_t day_of_era = shifted - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month_from_march = (5 * day_of_year + 2) / 153;
  moment.day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  moment.month = month_from_march + (month_from_march < 10 ? 3 : -9);
  moment.year = year_of_era + era * 400 + (moment.month <= 2 ? 1 : 0);
  moment.year_day = days - days_from_date(moment.year, 1, 1) + 1;
  return moment;
}

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

class Formatter {
 public:
  explicit Formatter(const Moment& moment) : moment_(moment) {}

  Status append(std::string_view format);
  std::string take() && { return std::move(out_); }

 private:
  // Each is false for a directive that it does not know.
  bool append_directive(char letter, char flag);
  bool append_number(char letter, char flag);
  bool append_words(char letter);
  bool append_composite(char letter);
  void put(int64_t value, int width, char flag, char pad = '0') {
    const std::string digits = std::to_string(value);
    if (flag == '_') pad = ' ';
    const auto missing =
        static_cast<size_t>(width) - std::min(digits.size(), static_cast<size_t>(width));
    if (flag != '-') out_.append(missing, pad);
    out_ += digits;
  }

  const Moment& moment_;
  std::string out_;
};

bool Formatter::append_directive(char letter, char flag) {
  return append_number(letter, flag) || append_words(letter) || append_composite(letter);
}

bool Formatter::append_number(char letter, char flag) {
  switch (letter) {
    case 'd':
      put(moment_.day, 2, flag);
      return true;
    case 'e':
      put(moment_.day, 2, flag, ' ');
      return true;
    case 'm':
      put(moment_.month, 2, flag);
      return true;
    case 'y':
      put((moment_.year % 100 + 100) % 100, 2, flag);
      return true;
    case 'Y':
      put(moment_.year, 1, flag);
      return true;
    case 'j':
      put(moment_.year_day, 3, flag);
      return true;
    case 'H':
      put(moment_.hour, 2, flag);
      return true;
    case 'I':
      put(moment_.hour % 12 == 0 ? 12 : moment_.hour % 12, 2, flag);
      return true;
    case 'M':
      put(moment_.minute, 2, flag);
      return true;
    case 'S':
      put(moment_.second, 2, flag);
      return true;
    case 'u':
      put(moment_.week_day == 0 ? 7 : moment_.week_day, 1, flag);
      return true;
    case 'w':
      put(moment_.week_day, 1, flag);
      return true;
    default:
      return false;
  }
}

bool Formatter::append_words(char letter) {
  const std::string_view day = kDays[static_cast<size_t>(moment_.week_day)];
  const std::string_view month = kMonths[static_cast<size_t>(moment_.month - 1)];
  switch (letter) {
    case 'a':
      out_ += day.substr(0, 3);
      return true;
    case 'A':
      out_ += day;
      return true;
    case 'b':
    case 'h':
      out_ += month.substr(0, 3);
      return true;
    case 'B':
      out_ += month;
      return true;
    case 'p':
      out_ += moment_.hour < 12 ? "AM" : "PM";
      return true;
    case 'n':
      out_ += '\n';
      return true;
    case 't':
      out_ += '\t';
      return true;
    case '%':
      out_ += '%';
      return true;
    case 'Z':
    case 'z':  // Python's datetime.now() knows no zone, so both are empty
      return true;
    default:
      return false;
  }
}

bool Formatter::append_composite(char letter) {
  switch (letter) {
    case 'F':
      return append("%Y-%m-%d").ok();
    case 'T':
    case 'X':
      return append("%H:%M:%S").ok();
    case 'R':
      return append("%H:%M").ok();
    case 'D':
    case 'x':
      return append("%m/%d/%y").ok();
    case 'c':
      return append("%a %b %e %H:%M:%S %Y").ok();
    default:
      return false;
  }
}

Status Formatter::append(std::string_view format) {
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      out_.push_back(format[at]);
      continue;
    }
    char flag = '\0';
    if (at + 1 < format.size() && (format[at + 1] == '-' || format[at + 1] == '_')) {
      flag = format[++at];
    }
    if (++at >= format.size() || !append_directive(format[at], flag)) {
      return invalid_argument("has a directive in '" + std::string(format) +
                              "' that is not supported");
    }
  }
  return ok_status();
}

}  // namespace

Result<std::string> format_time(int64_t unix_seconds, std::string_view format) {
  // The years -9999 to 9999 or so; anything else is no clock.
  constexpr int64_t kSecondsMax = 253'402'300'799;
  const Moment moment = moment_at(std::clamp(unix_seconds, -kSecondsMax, kSecondsMax));
  Formatter formatter(moment);
  TROUPE_RETURN_IF_ERROR(formatter.append(format));
  return std::move(formatter).take();
}

}  // namespace troupe::chat_template
