#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "loadgen/report.h"

namespace troupe::loadgen {
namespace {

// Sizes in pixels of the drawing's own coordinates.
constexpr double kWidth = 960, kHeight = 600;
constexpr double kLeft = 76, kRight = 24;
constexpr double kLatencyTop = 78, kLatencyBottom = 392;
constexpr double kTokensTop = 436, kTokensBottom = 548;
// Readable on white and on black; the marks differ by shape too.
constexpr const char* kInk = "#7a7a7a";
constexpr const char* kTtft = "#2f86d2";
constexpr const char* kE2e = "#d9772b";
constexpr const char* kFailed = "#dc3d4e";
constexpr const char* kTokens = "#2aa07a";
// Of the marks of one kind; more would hide each other, so only every n-th is drawn.
constexpr size_t kMarksMax = 4000;

std::string number(double value) {
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%.1f", value);
  return {text, static_cast<size_t>(size)};
}

std::string short_number(double value) {
  char text[32];
  const int size = std::snprintf(text, sizeof text, value < 1 ? "%.2g" : "%.6g", value);
  return {text, static_cast<size_t>(size)};
}

// A text may hold anything: a model's name, a server's words.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        // XML knows no other control characters; bytes of UTF-8 pass.
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return out;
}

std::string text_at(double x, double y, const std::string& text, const char* anchor = "start",
                    const char* colour = kInk) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor +
         "\" fill=\"" + colour + "\">" + escaped(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const char* colour,
                 const char* more = "") {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
         "\" y2=\"" + number(y2) + "\" stroke=\"" + colour + "\" " + more + "/>\n";
}

// 1, 2 or 5 times a power of ten, so that about `wanted` steps make `span`.
double step_of(double span, double wanted) {
  const double rough = std::max(span, 1e-9) / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double digit = rough / power;
  return power * (digit <= 1.0 ? 1.0 : digit <= 2.0 ? 2.0 : digit <= 5.0 ? 5.0 : 10.0);
}

// Seconds to the right, milliseconds upwards in powers of ten.
class Picture {
 public:
  Picture(const Report& report, const std::deque<RequestRecord>& records)
      : report_(report), records_(records), seconds_(std::max(report.measures.seconds, 1e-3)) {
    const Measures& m = report.measures;
    const double least = m.ttft.count > 0 ? std::min(m.ttft.least, m.e2el.least) : 1.0;
    const double most = m.e2el.count > 0 ? m.e2el.most : 1000.0;
    low_ = std::floor(std::log10(std::max(least, 0.01)) * 3.0) / 3.0;
    high_ = std::max(std::ceil(std::log10(std::max(most, 0.02)) * 3.0) / 3.0, low_ + 1.0 / 3.0);
  }

  std::string draw() {
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kWidth) + " " +
           number(kHeight) + "\" width=\"" + number(kWidth) + "\" height=\"" + number(kHeight) +
           "\" font-family=\"sans-serif\" font-size=\"12\">\n";
    out_ += "<title>" + escaped(report_.title) + "</title>\n";
    out_ += "<g font-size=\"15\">" + text_at(kLeft, 24, report_.title) + "</g>";
    legend();
    latency_axes();
    marks();
    percentiles();
    tokens();
    time_axis();
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  [[nodiscard]] double x_of(double seconds) const {
    return kLeft + std::clamp(seconds / seconds_, 0.0, 1.0) * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double y_of(double ms) const {
    const double place = (std::log10(std::max(ms, 1e-6)) - low_) / (high_ - low_);
    return kLatencyBottom - std::clamp(place, 0.0, 1.0) * (kLatencyBottom - kLatencyTop);
  }

  static std::string mark(const char* kind, double x, double y) {
    return std::string("<use href=\"#") + kind + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
           "\"/>\n";
  }

  void legend() {
    out_ += std::string("<defs>") +  //
            "<circle id=\"ttft\" r=\"2.6\" fill=\"" + kTtft + "\" fill-opacity=\"0.7\"/>" +
            "<path id=\"e2e\" d=\"M0-3.4 3.4 0 0 3.4-3.4 0z\" fill=\"" + kE2e +
            "\" fill-opacity=\"0.7\"/>" + "<path id=\"failed\" d=\"M-4-4 4 4M-4 4 4-4\" stroke=\"" +
            kFailed + "\" stroke-width=\"1.8\"/></defs>\n";
    double x = kLeft + 6;
    const auto entry = [&](const std::string& sign, const std::string& words, double width) {
      out_ += sign + text_at(x + 10, 52, words);
      x += width;
    };
    entry(mark("ttft", x, 48), "time to first token", 150);
    entry(mark("e2e", x, 48), "whole answer (E2E), at the request's start", 292);
    entry(line(x - 8, 48, x + 6, 48, kInk, "stroke-dasharray=\"5 3\""), "p99", 64);
    entry(mark("failed", x, 48), "failed (" + std::to_string(report_.measures.failed) + ")", 96);
    entry(line(x - 8, 48, x + 6, 48, kTokens, "stroke-width=\"2\""), "output tokens/s", 110);
  }

  void latency_axes() {
    out_ += text_at(kLeft - 8, kLatencyTop - 10, "ms", "end");
    for (double power = std::floor(low_); power <= high_; power += 1.0) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double ms = digit * std::pow(10.0, power), place = std::log10(ms);
        if (place < low_ - 1e-9 || place > high_ + 1e-9) continue;
        const double y = y_of(ms);
        out_ += line(kLeft, y, kWidth - kRight, y, kInk, "stroke-opacity=\"0.25\"");
        out_ += text_at(kLeft - 8, y + 4, short_number(ms), "end");
      }
    }
    out_ += line(kLeft, kLatencyTop, kLeft, kLatencyBottom, kInk);
    out_ += line(kLeft, kLatencyBottom, kWidth - kRight, kLatencyBottom, kInk);
  }

  void marks() {
    const size_t every = records_.size() / kMarksMax + 1;
    if (every > 1) {
      out_ += text_at(kWidth - kRight, 24, "every " + std::to_string(every) + "th request drawn",
                      "end");
    }
    for (size_t i = 0; i < records_.size(); i += every) {
      const RequestRecord& record = records_[i];
      const double x = x_of(to_seconds(record.start));
      if (record.ending == Ending::kOk) {
        out_ += mark("e2e", x, y_of(to_ms(record.latency())));
        out_ += mark("ttft", x, y_of(to_ms(record.ttft())));
      } else if (record.ending == Ending::kFailed) {
        out_ += mark("failed", x, kLatencyTop + 6);
      }
    }
  }

  // A dashed line each, with its name at the right end above it, or below where they would meet.
  void percentiles() {
    const Measures& m = report_.measures;
    if (m.completed == 0) return;
    const double ttft = y_of(m.ttft.p99), e2e = y_of(m.e2el.p99);
    const auto draw_one = [this](double y, double text_y, const std::string& words,
                                 const char* colour) {
      out_ += line(kLeft, y, kWidth - kRight, y, colour,
                   "stroke-dasharray=\"5 3\" stroke-width=\"1.4\"");
      out_ += text_at(kWidth - kRight - 4, text_y, words, "end", colour);
    };
    draw_one(e2e, e2e - 5, "E2E p99 " + short_number(std::round(m.e2el.p99 * 10) / 10) + " ms",
             kE2e);
    const bool is_near = std::abs(ttft - e2e) < 18;
    draw_one(ttft, is_near ? std::max(ttft, e2e) + 14 : ttft - 5,
             "TTFT p99 " + short_number(std::round(m.ttft.p99 * 10) / 10) + " ms", kTtft);
  }

  // Tokens of each second, or of each part of one when the run was short. A chunk stands for an
  // equal share of its answer's tokens.
  void tokens() {
    const double width = seconds_ >= 20 ? std::max(1.0, std::ceil(seconds_ / 400)) : seconds_ / 20;
    const auto count = static_cast<size_t>(std::ceil(seconds_ / width));
    std::vector<double> rates(std::max<size_t>(count, 1), 0.0);
    for (const RequestRecord& record : records_) {
      if (record.ending != Ending::kOk) continue;
      const double share = record.output_tokens / static_cast<double>(record.chunks.size()) / width;
      for (const Duration chunk : record.chunks) {
        const double at = to_seconds(record.start + chunk) / width;
        rates[std::min(static_cast<size_t>(std::max(at, 0.0)), rates.size() - 1)] += share;
      }
    }
    const double most = std::max(*std::max_element(rates.begin(), rates.end()), 1e-3);
    const double step = step_of(most, 3);
    const double top = std::ceil(most / step) * step;
    const auto y = [&](double rate) {
      return kTokensBottom - rate / top * (kTokensBottom - kTokensTop);
    };
    out_ += text_at(kLeft - 8, kTokensTop - 12, "tokens/s", "end");
    for (double rate = 0; rate <= top * 1.0001; rate += step) {
      out_ += line(kLeft, y(rate), kWidth - kRight, y(rate), kInk, "stroke-opacity=\"0.25\"");
      out_ += text_at(kLeft - 8, y(rate) + 4, short_number(rate), "end");
    }
    out_ += "<polyline fill=\"none\" stroke=\"" + std::string(kTokens) +
            "\" stroke-width=\"2\" points=\"";
    for (size_t i = 0; i < rates.size(); ++i) {
      const double begin = static_cast<double>(i) * width;
      out_ += number(x_of(begin)) + "," + number(y(rates[i])) + " " + number(x_of(begin + width)) +
              "," + number(y(rates[i])) + " ";
    }
    out_ += "\"/>\n" + line(kLeft, kTokensTop, kLeft, kTokensBottom, kInk);
  }

  void time_axis() {
    out_ += line(kLeft, kTokensBottom, kWidth - kRight, kTokensBottom, kInk);
    const double step = step_of(seconds_, 10);
    for (double at = 0; at <= seconds_ * 1.0001; at += step) {
      for (const double bottom : {kLatencyBottom, kTokensBottom}) {
        out_ += line(x_of(at), bottom, x_of(at), bottom + 5, kInk);
        out_ += text_at(x_of(at), bottom + 19, short_number(at), "middle");
      }
    }
    out_ += text_at((kLeft + kWidth - kRight) / 2, kHeight - 14, "seconds since the run began",
                    "middle");
  }

  const Report& report_;
  const std::deque<RequestRecord>& records_;
  const double seconds_;
  double low_ = 0.0, high_ = 1.0;  // of the latency axis, powers of ten
  std::string out_;
};

}  // namespace

std::string svg_of(const Report& report, const std::deque<RequestRecord>& records) {
  return Picture(report, records).draw();
}

}  // namespace troupe::loadgen
