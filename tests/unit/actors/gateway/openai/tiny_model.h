#pragma once
// A served model without a file: a tokenizer of single bytes and a few longer tokens, and a small
// chat template.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/model_catalogue.h"

namespace troupe::test {

// Token ids: 0..255 are the bytes; then these.
inline constexpr TokenId kImStart = 256;
inline constexpr TokenId kImEnd = 257;      // the end token
inline constexpr TokenId kHello = 258;      // "Hello"
inline constexpr TokenId kWorld = 259;      // " world"
inline constexpr TokenId kOtter = 260;      // the first three bytes of U+1F9A6
inline constexpr TokenId kOtterTail = 261;  // the fourth, and "!"
inline constexpr uint32_t kTinyVocab = 262;
inline constexpr uint32_t kTinyContext = 200;

[[nodiscard]] std::unique_ptr<Tokenizer> make_tiny_tokenizer();

class TinyModel final {
 public:
  TinyModel();
  // With a template of the test's own.
  explicit TinyModel(const std::string& chat_template,
                     RequestTemplates request_templates = RequestTemplates::kRefused,
                     std::optional<ToolFormat> tool_format = {});
  [[nodiscard]] const ServedModel& served() const { return catalogue_.at(0).served(); }
  // Only this model.
  [[nodiscard]] const ModelCatalogue& catalogue() const { return catalogue_; }
  // The same model without a chat template.
  [[nodiscard]] const ServedModel& without_template() const { return without_template_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  std::unique_ptr<Tokenizer> tokenizer_;
  ChatTemplate template_;
  ServedModel without_template_;
  ModelCatalogue catalogue_;
};

// One token per byte.
[[nodiscard]] std::vector<TokenId> byte_tokens(std::string_view text);

}  // namespace troupe::test
