#pragma once
// The text of one choice, as it is generated, to what it means: text, reasoning and calls.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/text/stop_matcher.h"
#include "actors/gateway/tools/answer_parts.h"
#include "actors/gateway/tools/call_reader.h"
#include "actors/gateway/tools/tool_format.h"

namespace troupe {

struct AnswerParserOptions {
  AnswerFormat format;
  PromptEnd prompt_end = PromptEnd::kBeforeAnswer;
  // The tools that may be called; a call of another one is malformed.
  std::vector<std::string> tool_names;
  // A grammar holds calls to the canonical spelling, so what begins as one is one.
  bool guided = false;
  // The grammar admits nothing but calls.
  bool calls_only = false;
  // Ends the answer with its first call.
  bool one_call = false;
  // Stop strings look at text alone, never at calls, and at reasoning only if asked.
  std::vector<std::string> stops;
  StopText stop_text = StopText::kExclude;
  bool stop_in_reasoning = false;
  // Make the ids of calls: of the response, and which choice of it this is.
  std::string response_id;
  uint32_t choice = 0;
};

// One per choice. The parts, joined, are the same however the text was cut into pieces.
//
// A call is shown as it comes where a grammar guides it, else when it is whole: then one that turns
// out malformed (no JSON, no name, a tool that was not offered) has its raw text shown as text, and
// no client ever sees half of a call that is none. White space around calls and around reasoning
// belongs to the form and is dropped.
class AnswerParser {
 public:
  explicit AnswerParser(AnswerParserOptions options);

  // Takes the next piece, of whole characters, and appends what became certain to `out`. Not after
  // stopped() or finish().
  void push(std::string_view piece, std::vector<AnswerPart>& out);
  // The text ended: appends the rest. An unfinished call stays open if it was shown, and becomes
  // text if not; but where there can be nothing else than calls, its beginning is dropped.
  void finish(std::vector<AnswerPart>& out);

  // The choice has ended with what was pushed: a stop string, or the one call.
  [[nodiscard]] bool stopped() const { return stopped_; }
  // The stop string that ended it, or empty.
  [[nodiscard]] const std::string& stop_string() const { return stop_string_; }

  enum class Reasoning : uint8_t { kNone, kOpen, kClosed };
  [[nodiscard]] Reasoning reasoning() const { return reasoning_; }

  // At least one call, and each of them finished.
  [[nodiscard]] bool has_whole_calls() const { return calls_ > 0 && !call_open_; }

 private:
  enum class State : uint8_t {
    kStart,  // reasoning may begin
    kReasoning,
    kText,
    kBeforeCall,  // behind a marker or separator
    kInCall,
    kBehindCall,
    kDeaf,  // whatever comes now is nothing
  };
  struct Found {
    size_t at = std::string::npos;
    size_t size = 0;  // of the marker
  };

  // Each handles the beginning of held_; false: it needs more text.
  bool step();
  bool step_start();
  bool step_reasoning();
  bool step_text();
  bool step_before_call();
  bool step_in_call();
  bool step_behind_call();

  [[nodiscard]] Found find_call() const;
  // Moves `size` bytes from held_ to raw_.
  void take_raw(size_t size);
  void begin_call(CallForm form);
  void show_call();
  void finish_call();
  void malformed();
  void add_text(std::string_view text);
  void show_text(std::string_view text);
  void add_reasoning(std::string_view text);
  void close_text();
  void stop(const std::string& by);
  void add_part(AnswerPartKind kind, std::string text, std::string id = {});

  AnswerParserOptions options_;
  State state_;
  std::string held_;                        // not understood yet
  std::vector<AnswerPart>* out_ = nullptr;  // only within push() and finish()

  StopMatcher text_stops_;
  StopMatcher reasoning_stops_;
  bool stopped_ = false;
  std::string stop_string_;

  Reasoning reasoning_ = Reasoning::kNone;
  std::string reasoning_space_;  // held back: may be the end of the reasoning
  bool reasoning_begun_ = false;

  std::string text_space_;   // held back: a call may follow
  bool skip_space_ = false;  // behind reasoning or a call
  bool text_begun_ = false;  // something but white space came

  std::optional<CallReader> reader_;
  std::string raw_;       // of the call that is not certain yet, from its marker on
  bool in_list_ = false;  // kMistral
  bool list_begun_ = false;
  bool call_open_ = false;  // shown and not finished
  uint32_t calls_ = 0;      // shown
};

// The id of a call: a function of its place alone. Mistral's templates take only nine letters and
// digits.
[[nodiscard]] std::string call_id(ToolFormat format, std::string_view response_id, uint32_t choice,
                                  uint32_t call);

}  // namespace troupe
