// Prints the tables of docs/api.md: what becomes of each field of each endpoint. tools/golden
// compares the two.

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "actors/gateway/anthropic/messages_request.h"
#include "actors/gateway/openai/embeddings_request.h"
#include "actors/gateway/openai/field_tables.h"
#include "actors/gateway/openai/score_request.h"
#include "actors/gateway/responses/responses_request.h"

namespace troupe {
namespace {

const char* use_name(FieldUse use) {
  switch (use) {
    case FieldUse::kUsed:
      return "honoured";
    case FieldUse::kTolerated:
      return "no effect";
    case FieldUse::kUnsupported:
      return "refused";
  }
  return "";
}

void print_table(const char* endpoint, std::span<const KnownField> fields) {
  std::printf("### %s\n\n| field | | |\n|---|---|---|\n", endpoint);
  for (const FieldUse use : {FieldUse::kUsed, FieldUse::kTolerated, FieldUse::kUnsupported}) {
    for (const KnownField& field : fields) {
      if (field.use != use) continue;
      const std::string_view note = field.note.empty() ? shared_note(field.name) : field.note;
      std::printf("| `%.*s` | %s | %.*s |\n", static_cast<int>(field.name.size()),
                  field.name.data(), use_name(use), static_cast<int>(note.size()), note.data());
    }
  }
  std::printf("\n");
}

}  // namespace
}  // namespace troupe

int main() {
  using namespace troupe;
  print_table("POST /v1/chat/completions", chat_fields());
  print_table("POST /v1/completions", completions_fields());
  print_table("POST /v1/responses", responses_fields());
  print_table("POST /v1/messages, /v1/messages/count_tokens", messages_fields());
  print_table("POST /v1/embeddings", embeddings_fields());
  print_table("POST /v1/score", score_fields());
  print_table("POST /tokenize", tokenize_fields());
  print_table("POST /detokenize", detokenize_fields());
  return 0;
}
