#pragma once
// Keeps a set of programs running as our children: prints what they say, starts again what ends.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/node/child_process.h"
#include "base/clock.h"

namespace troupe {

// What a program says of itself on its standard output, one line each: "<key>: <value>".
inline constexpr std::string_view kSaysListening = "listening";  // address of its node
inline constexpr std::string_view kSaysHttp = "http";            // address of its HTTP port
inline constexpr std::string_view kSaysRpc = "rpc";              // address of its RPC port
inline constexpr std::string_view kSaysReady = "ready";          // it serves; for people

// A port that a member listens at. Once the member has said which one it took, it is asked to take
// that again in later lives: the others know it by its address.
struct PortFlag {
  std::string_view key;  // of the line that says the address
  std::string flag;
  uint16_t first = 0;  // asked for in the first life; 0: any
};

struct MemberSpec {
  std::string name;  // in front of its lines
  std::vector<std::string> arguments;
  std::vector<PortFlag> ports;  // added to the arguments
  bool says_ready = true;       // else it is taken to be ready once it runs
};

struct SupervisorOptions {
  std::vector<std::string> environment;  // of every member
  // A member that ends is started again after the pause, which doubles with each end up to the most
  // and is forgotten once it has run that long.
  std::chrono::milliseconds pause_first{500}, pause_most{10'000}, forgotten_after{30'000};
};

// Takes SIGINT, SIGTERM and SIGCHLD of its thread, which stay blocked. Single-threaded.
class Supervisor final {
 public:
  using Condition = std::function<bool()>;

  // Prints `text`, whole lines, for people: standard error.
  using Print = std::function<void(std::string_view text)>;
  // `clock` must outlive it.
  Supervisor(SupervisorOptions options, const Clock& clock, Print print);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Starts a member; its number is the count of those added before.
  [[nodiscard]] Result<size_t> add(MemberSpec spec);

  // Serves the members until the condition holds, which is looked at after each event. kCancelled:
  // SIGINT or SIGTERM came. kUnavailable: a member ended that was never ready. kDeadlineExceeded:
  // not within `limit`.
  [[nodiscard]] Status run_until(const Condition& condition, std::chrono::milliseconds limit);
  // Serves the members until SIGINT or SIGTERM comes.
  [[nodiscard]] Status run_until_signal();

  // Asks the members in [first, first + count) to end (SIGTERM) and waits for that, at most the
  // limit or until another signal comes; kills what is left. They are not started again.
  void end(size_t first, size_t count, std::chrono::milliseconds limit);

  [[nodiscard]] size_t size() const { return members_.size(); }
  // What the member's latest line of that key said, in this or an earlier life.
  [[nodiscard]] std::optional<std::string> said(size_t member, std::string_view key) const;
  // In its present life.
  [[nodiscard]] bool ready(size_t member) const;
  [[nodiscard]] bool all_ready() const;

 private:
  struct Member {
    MemberSpec spec;
    std::unique_ptr<ChildProcess> child;  // null while it waits to be started again
    std::map<std::string, std::string, std::less<>> said;
    bool ready = false, was_ready = false, ending = false;
    std::chrono::milliseconds pause{0};
    TimePoint started{}, start_again{};
  };

  [[nodiscard]] Status start(Member& member);
  void take_line(Member& member, ChildProcess::Stream stream, std::string_view line);
  // One turn: waits for an event, at most until `until`, and handles it.
  [[nodiscard]] Status turn(TimePoint until);
  void wait_for_event(TimePoint until);
  [[nodiscard]] Status on_end(Member& member, const std::string& ending);
  [[nodiscard]] TimePoint next_start(TimePoint until) const;
  void say(const std::string& text);

  const SupervisorOptions options_;
  const Clock& clock_;
  const Print print_;
  int signals_ = -1;  // signalfd
  bool signalled_ = false;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace troupe
