#include "engine/model/config_reader.h"

#include <cmath>
#include <utility>

#include "engine/model/model_config.h"
#include "engine/model/printable.h"

namespace troupe {

uint32_t ConfigReader::number(std::string_view suffix, uint32_t maximum) {
  refuse_per_layer(suffix);
  return in_range(suffix, file_.get_u32(key(suffix)), 1, maximum);
}

uint32_t ConfigReader::number_or(std::string_view suffix, uint32_t fallback, uint32_t maximum) {
  refuse_per_layer(suffix);
  return in_range(suffix, file_.get_u32_or(key(suffix), fallback), 1, maximum);
}

uint32_t ConfigReader::number_or_zero(std::string_view suffix, uint32_t maximum) {
  refuse_per_layer(suffix);
  return in_range(suffix, file_.get_u32_or(key(suffix), 0), 0, maximum);
}

float ConfigReader::in_range_or(std::string_view suffix, float fallback, float minimum,
                                float maximum) {
  const Result<float> value = file_.get_f32_or(key(suffix), fallback);
  if (!value.ok()) {
    fail(value.status());
    return fallback;
  }
  // So written that NaN fails.
  if (!(value.value() >= minimum && value.value() <= maximum)) {
    corrupt(suffix, "is " + std::to_string(value.value()) + "; it must be from " +
                        std::to_string(minimum) + " to " + std::to_string(maximum));
    return fallback;
  }
  return value.value();
}

float ConfigReader::factor_or(std::string_view suffix, float fallback) {
  return in_range_or(suffix, fallback, ModelLimits::kRopeFactorMin, ModelLimits::kRopeFactorMax);
}

float ConfigReader::positive_or(std::string_view suffix, float fallback) {
  const Result<float> value = file_.get_f32_or(key(suffix), fallback);
  if (!value.ok()) {
    fail(value.status());
    return fallback;
  }
  if (!std::isfinite(value.value()) || value.value() <= 0.0F) {
    corrupt(suffix,
            "is " + std::to_string(value.value()) + "; it must be a positive finite number");
  }
  return value.value();
}

void ConfigReader::corrupt(std::string_view suffix, const std::string& what) {
  fail({StatusCode::kDataLoss, file_.name() + ": metadata key " + quoted(key(suffix)) + " " + what +
                                   ". " + kConvertAgain});
}

void ConfigReader::unsupported(std::string_view suffix, const std::string& what) {
  fail({StatusCode::kUnsupported, file_.name() + ": metadata key " + quoted(key(suffix)) + " " +
                                      what + ". Use a plain " + architecture_ + " model."});
}

void ConfigReader::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void ConfigReader::refuse_per_layer(std::string_view suffix) {
  const GgufValue* value = file_.find_value(key(suffix));
  if (value != nullptr && value->type == GgufType::kArray)
    unsupported(suffix, "differs by layer, which is not supported");
}

uint32_t ConfigReader::in_range(std::string_view suffix, const Result<uint32_t>& value,
                                uint32_t minimum, uint32_t maximum) {
  if (!value.ok()) {
    fail(value.status());
    return 1;
  }
  if (value.value() < minimum || value.value() > maximum) {
    corrupt(suffix, "is " + std::to_string(value.value()) + "; it must be from " +
                        std::to_string(minimum) + " to " + std::to_string(maximum));
    return 1;
  }
  return value.value();
}

}  // namespace troupe
