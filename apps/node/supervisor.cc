#include "apps/node/supervisor.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/assert.h"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kNeverMs = std::chrono::hours{24};
// How long what a member printed last may still come after its end.
constexpr int kLastLinesMost = 1024;

std::string seconds_text(std::chrono::milliseconds span) {
  const auto tenths = span.count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, const Clock& clock, Print print)
    : options_(std::move(options)), clock_(clock), print_(std::move(print)) {
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int number : {SIGINT, SIGTERM, SIGCHLD}) ::sigaddset(&taken, number);
  ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  signals_ = ::signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
  TROUPE_ASSERT(signals_ >= 0, errno);
}

Supervisor::~Supervisor() {
  members_.clear();  // kills what still runs
  ::close(signals_);
}

void Supervisor::say(const std::string& text) {
  print_("troupe: " + text + "\n");
}

Result<size_t> Supervisor::add(MemberSpec spec) {
  auto member = std::make_unique<Member>();
  member->spec = std::move(spec);
  TROUPE_RETURN_IF_ERROR(start(*member));
  members_.push_back(std::move(member));
  return members_.size() - 1;
}

Status Supervisor::start(Member& member) {
  ChildCommand command{member.spec.arguments, options_.environment};
  for (const PortFlag& port : member.spec.ports) {
    const auto said = member.said.find(port.key);
    command.arguments.push_back(port.flag);
    command.arguments.push_back(said == member.said.end()
                                    ? std::to_string(port.first)
                                    : said->second.substr(said->second.rfind(':') + 1));
  }
  TROUPE_ASSIGN_OR_RETURN(member.child, ChildProcess::start(command));
  member.started = clock_.now();
  member.ready = !member.spec.says_ready;
  member.was_ready |= member.ready;
  return ok_status();
}

void Supervisor::take_line(Member& member, ChildProcess::Stream stream, std::string_view line) {
  print_("[" + member.spec.name + "] " + std::string(line) + "\n");
  if (stream != ChildProcess::kOut) return;
  const size_t colon = line.find(": ");
  if (colon == std::string_view::npos) return;
  const std::string_view key = line.substr(0, colon);
  for (const std::string_view known : {kSaysListening, kSaysHttp, kSaysRpc, kSaysReady})
    if (key == known) member.said[std::string(key)] = line.substr(colon + 2);
  if (key == kSaysReady) member.ready = member.was_ready = true;
}

Status Supervisor::on_end(Member& member, const std::string& ending) {
  const auto take = [&](ChildProcess::Stream stream) {
    return [this, &member, stream](std::string_view line) { take_line(member, stream, line); };
  };
  for (const auto stream : {ChildProcess::kOut, ChildProcess::kErr}) {
    for (int i = 0; i < kLastLinesMost && member.child->descriptor(stream) >= 0; ++i)
      member.child->read_lines(stream, take(stream));
  }
  const std::string what =
      member.spec.name + " (process " + std::to_string(member.child->pid()) + ") " + ending;
  member.child.reset();
  member.ready = false;
  if (member.ending) return ok_status();
  if (!member.was_ready) {
    return {StatusCode::kUnavailable, what + " before it was ready; its last lines say why"};
  }
  const bool forgotten = clock_.now() - member.started > options_.forgotten_after;
  member.pause = forgotten || member.pause.count() == 0
                     ? options_.pause_first
                     : std::min(2 * member.pause, options_.pause_most);
  member.start_again = clock_.now() + member.pause;
  say(what + "; it is started again in " + seconds_text(member.pause));
  return ok_status();
}

TimePoint Supervisor::next_start(TimePoint until) const {
  for (const auto& member : members_)
    if (!member->child && !member->ending) until = std::min(until, member->start_again);
  return until;
}

void Supervisor::wait_for_event(TimePoint until) {
  std::vector<pollfd> fds{{signals_, POLLIN, 0}};
  for (const auto& member : members_) {
    if (!member->child) continue;
    for (const auto stream : {ChildProcess::kOut, ChildProcess::kErr})
      fds.push_back({member->child->descriptor(stream), POLLIN, 0});  // poll skips a -1
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.now());
  const auto bounded = std::clamp(wait, std::chrono::milliseconds{0}, kNeverMs);
  ::poll(fds.data(), fds.size(), static_cast<int>(bounded.count()));
  signalfd_siginfo signal{};
  while (::read(signals_, &signal, sizeof signal) == sizeof signal)
    signalled_ |= signal.ssi_signo != SIGCHLD;
}

Status Supervisor::turn(TimePoint until) {
  wait_for_event(next_start(until));
  for (const auto& owned : members_) {
    Member& member = *owned;
    if (member.child) {
      for (const auto stream : {ChildProcess::kOut, ChildProcess::kErr}) {
        member.child->read_lines(stream,
                                 [&](std::string_view line) { take_line(member, stream, line); });
      }
      if (const auto ending = member.child->ending())
        TROUPE_RETURN_IF_ERROR(on_end(member, *ending));
    } else if (!member.ending && clock_.now() >= member.start_again) {
      if (const Status status = start(member); !status.ok()) {
        member.start_again = clock_.now() + options_.pause_most;
        say(member.spec.name + " cannot be started now: " + status.message());
      }
    }
  }
  return ok_status();
}

Status Supervisor::run_until(const Condition& condition, std::chrono::milliseconds limit) {
  const TimePoint until = clock_.now() + limit;
  while (!condition()) {
    if (signalled_) {
      signalled_ = false;
      return {StatusCode::kCancelled, "a signal came"};
    }
    if (clock_.now() >= until) {
      return {StatusCode::kDeadlineExceeded, "not within " + seconds_text(limit)};
    }
    TROUPE_RETURN_IF_ERROR(turn(until));
  }
  return ok_status();
}

Status Supervisor::run_until_signal() {
  while (true) {
    const Status status = run_until([] { return false; }, kNeverMs);
    if (status.code() == StatusCode::kCancelled) return ok_status();
    if (status.code() != StatusCode::kDeadlineExceeded) return status;
  }
}

void Supervisor::end(size_t first, size_t count, std::chrono::milliseconds limit) {
  TROUPE_ASSERT(first + count <= members_.size(), first);
  const auto gone = [&] {
    return std::none_of(members_.begin() + static_cast<ptrdiff_t>(first),
                        members_.begin() + static_cast<ptrdiff_t>(first + count),
                        [](const auto& member) { return member->child != nullptr; });
  };
  for (size_t i = first; i < first + count; ++i) {
    members_[i]->ending = true;
    if (members_[i]->child) members_[i]->child->send_signal(SIGTERM);
  }
  if (const Status status = run_until(gone, limit); status.ok()) return;
  for (size_t i = first; i < first + count; ++i) {
    if (!members_[i]->child) continue;
    say(members_[i]->spec.name + " is ended at once");
    members_[i]->child.reset();
  }
}

std::optional<std::string> Supervisor::said(size_t member, std::string_view key) const {
  const auto& said = members_.at(member)->said;
  const auto at = said.find(key);
  if (at == said.end()) return std::nullopt;
  return at->second;
}

bool Supervisor::ready(size_t member) const {
  return members_.at(member)->ready;
}

bool Supervisor::all_ready() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const auto& member) { return member->ready; });
}

}  // namespace troupe
