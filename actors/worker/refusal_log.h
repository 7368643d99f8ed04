#pragma once
#include <glog/logging.h>

#include <string>

#include "actors/wire/messages.h"

namespace troupe {

// Tells people that a router does not use this worker: once for each reason, though every heartbeat
// is answered.
class RefusalLog {
 public:
  void on_refused(const wire::Refused& refused) {
    if (refused.reason == logged_) return;
    logged_ = refused.reason;
    LOG(ERROR) << "this worker is refused: " << logged_;
  }

 private:
  std::string logged_;
};

}  // namespace troupe
