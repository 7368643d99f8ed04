#pragma once
// What an answer consists of, before any protocol has written it down: text, reasoning and calls of
// tools, piece by piece. Every wire format (chat completions, responses, messages) is made of
// these.

#include <cstdint>
#include <string>

namespace troupe {

enum class AnswerPartKind {
  kText,           // the next piece of what the user is to read
  kReasoning,      // the next piece of the thinking before it
  kCallStarted,    // a call begins: its name is known and declared
  kCallArguments,  // the next piece of the current call's arguments
  kCallFinished,   // the current call is whole
};

// One step of one choice. In order, within a choice:
//   kReasoning*, then any mix of kText and of calls;
//   a call is kCallStarted, kCallArguments*, kCallFinished, with nothing between; the last call of
//   a truncated answer has no kCallFinished.
// Pieces are whole UTF-8 characters. How a text is cut into pieces means nothing; joined they are
// the same for the same tokens. Markers of the model's call format and control tokens are in no
// piece.
struct AnswerPart {
  AnswerPartKind kind = AnswerPartKind::kText;
  uint32_t call = 0;  // of call parts: 0, 1, ... within the choice
  // kText, kReasoning: the piece, not empty. kCallArguments: a piece of the JSON text of an object,
  // not empty; the pieces of a finished call are one well-formed JSON object. kCallStarted: the
  // name.
  std::string text;
  std::string id;  // kCallStarted: unlike that of any other call of this server
  bool operator==(const AnswerPart&) const = default;
};

// Why a choice ended.
enum class AnswerEnd {
  kStop,       // an end token, a stop token or a stop string
  kLength,     // max_tokens or the context; also in the middle of a call
  kToolCalls,  // it ended by itself and has at least one call; all its calls are finished
};

}  // namespace troupe
