#pragma once
// What the parts of one RPC front end share. Loop thread only.

#include <kj/timer.h>

#include <set>
#include <string>

#include "actors/gateway/api_keys.h"
#include "actors/gateway/frontend_load.h"
#include "actors/gateway/generation.h"
#include "actors/gateway/health_source.h"
#include "actors/gateway/openai/model_catalogue.h"
#include "base/clock.h"

namespace troupe {

class RpcExchange;

struct RpcContext {
  kj::Timer& timer;
  Generator& generator;
  const ModelCatalogue& models;
  const HealthSource& health;
  const Clock& clock;
  FrontendLoad& load;
  std::string version;
  const ApiKeys* keys = nullptr;  // null, or none in it: clients need none

  std::set<RpcExchange*> exchanges = {};  // being generated now
  bool draining = false;                  // no request is taken any more
};

}  // namespace troupe
