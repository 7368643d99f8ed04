#include "transport/ucx/ucx_worker.h"

#include <dlfcn.h>
#include <ucs/debug/debug.h>
#include <uct/api/uct.h>

#include <csignal>

#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/os/environment.h"
#include "transport/ucx/address.h"
#include "transport/ucx/ucx_sockets.h"

namespace troupe::ucx {
namespace {

// UCX takes over the signals of crashes when its library is loaded; they belong to whoever had them
// before, or has taken them since.
void give_back_signals() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    struct sigaction current {};
    TROUPE_ASSERT(sigaction(signal, nullptr, &current) == 0, signal);
    Dl_info info{};
    // NOLINTNEXTLINE: a handler's address, whichever of the union's two it is
    const bool known = dladdr(reinterpret_cast<void*>(current.sa_sigaction), &info) != 0;
    const bool is_of_ucx =
        known && std::string_view(info.dli_fname).find("libucs") != std::string_view::npos;
    if (is_of_ucx) ucs_debug_disable_signal(signal);
  }
}

// The operator's variables win over these.
Status set(ucp_config_t* config, const char* variable, const char* name, const std::string& value) {
  if (environment_variable(variable)) return ok_status();
  return status_of(ucp_config_modify(config, name, value.c_str()), variable);
}

// The network devices that are no IP interfaces, by UCX's names.
void add_other_devices(std::string& devices) {
  uct_component_h* components = nullptr;
  unsigned component_count = 0;
  if (uct_query_components(&components, &component_count) != UCS_OK) return;
  for (unsigned c = 0; c < component_count; ++c) {
    uct_component_attr_t attributes{};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(components[c], &attributes) != UCS_OK) continue;
    std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = domains.data();
    if (uct_component_query(components[c], &attributes) != UCS_OK) continue;
    for (const uct_md_resource_desc_t& domain : domains) {
      uct_md_config_t* config = nullptr;
      if (uct_md_config_read(components[c], nullptr, nullptr, &config) != UCS_OK) continue;
      uct_md_h md = nullptr;
      const bool opened = uct_md_open(components[c], domain.md_name, config, &md) == UCS_OK;
      uct_config_release(config);
      if (!opened) continue;
      uct_tl_resource_desc_t* resources = nullptr;
      unsigned count = 0;
      if (uct_md_query_tl_resources(md, &resources, &count) == UCS_OK) {
        for (unsigned i = 0; i < count; ++i) {
          const std::string name = resources[i].dev_name;
          if (resources[i].dev_type != UCT_DEVICE_TYPE_NET || is_ip_interface(name)) continue;
          if (("," + devices + ",").find("," + name + ",") != std::string::npos) continue;
          devices += "," + name;
        }
        uct_release_tl_resource_list(resources);
      }
      uct_md_close(md);
    }
  }
  uct_release_component_list(components);
}

}  // namespace

Status status_of(ucs_status_t status, std::string_view doing) {
  if (status == UCS_OK) return ok_status();
  return {StatusCode::kUnavailable,
          "UCX: " + std::string(doing) + ": " + ucs_status_string(status)};
}

Result<std::unique_ptr<UcxWorker>> UcxWorker::create(std::string_view host,
                                                     std::string_view net_devices, bool zero_copy,
                                                     LaneReceiver& receiver) {
  std::unique_ptr<UcxWorker> worker(new UcxWorker(receiver));
  TROUPE_RETURN_IF_ERROR(worker->open(host, net_devices, zero_copy));
  return worker;
}

Status UcxWorker::open(std::string_view host, std::string_view net_devices, bool zero_copy) {
  give_back_signals();
  std::string devices(net_devices);
  if (devices.empty()) {
    TROUPE_ASSIGN_OR_RETURN(devices, interface_of(host));
    add_other_devices(devices);
  }
  ucp_config_t* config = nullptr;
  TROUPE_RETURN_IF_ERROR(status_of(ucp_config_read(nullptr, nullptr, &config), "read settings"));
  const std::unique_ptr<ucp_config_t, decltype(&ucp_config_release)> owned(config,
                                                                           &ucp_config_release);
  TROUPE_RETURN_IF_ERROR(set(config, "UCX_NET_DEVICES", "NET_DEVICES", devices));
  // Twice as fast between 64 KiB and 1 MiB as the default of 8 KiB. Receiving must not be smaller.
  TROUPE_RETURN_IF_ERROR(set(config, "UCX_TCP_RX_SEG_SIZE", "RX_SEG_SIZE", "256K"));
  TROUPE_RETURN_IF_ERROR(set(config, "UCX_TCP_TX_SEG_SIZE", "TX_SEG_SIZE", "256K"));
  if (!zero_copy) {
    TROUPE_RETURN_IF_ERROR(set(config, "UCX_ZCOPY_THRESH", "ZCOPY_THRESH", "inf"));
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;  // memory is mapped from any thread
  TROUPE_RETURN_IF_ERROR(status_of(ucp_init(&params, config, &context_), "start"));
  return open_worker();
}

Status UcxWorker::open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // opened by one thread, used by another
  const std::set<uint16_t> before = troupe::ucx::listening_ports();
  TROUPE_RETURN_IF_ERROR(
      status_of(ucp_worker_create(context_, &params, &worker_), "open the network"));
  for (const uint16_t port : troupe::ucx::listening_ports()) {
    if (!before.contains(port)) listening_ports_.insert(port);
  }
  TROUPE_RETURN_IF_ERROR(status_of(ucp_worker_get_efd(worker_, &event_fd_), "get events"));
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER | UCP_WORKER_ATTR_FIELD_ADDRESS;
  TROUPE_RETURN_IF_ERROR(status_of(ucp_worker_query(worker_, &attributes), "describe the network"));
  head_bytes_max_ = attributes.max_am_header;
  address_.assign(reinterpret_cast<const char*>(attributes.address), attributes.address_length);
  ucp_worker_release_address(worker_, attributes.address);
  for (Slot& slot : slots_) {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = static_cast<unsigned>(slot.kind);
    handler.cb = &UcxWorker::on_active_message;
    handler.arg = &slot;
    TROUPE_RETURN_IF_ERROR(
        status_of(ucp_worker_set_am_recv_handler(worker_, &handler), "receive messages"));
  }
  return ok_status();
}

UcxWorker::~UcxWorker() {
  if (is_abandoned_) return;
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  // Nothing touches it any more: memory that is never unregistered stays so until now.
  for (const auto& [address, handle] : maps_) ucp_mem_unmap(context_, handle);
  if (context_ != nullptr) ucp_cleanup(context_);
}

bool UcxWorker::is_flushed() {
  if (!is_flushing_) {
    is_flushing_ = true;
    const ucp_request_param_t how{};
    void* request = ucp_worker_flush_nbx(worker_, &how);
    if (UCS_PTR_IS_PTR(request)) flush_ = request;
  }
  if (flush_ == nullptr) return true;
  if (ucp_request_check_status(flush_) == UCS_INPROGRESS) return false;
  ucp_request_free(flush_);
  flush_ = nullptr;
  return true;
}

ucs_status_t UcxWorker::on_active_message(void* slot, const void* head, size_t head_bytes,
                                          void* data, size_t bytes,
                                          const ucp_am_recv_param_t* how) {
  const auto& [worker, kind] = *static_cast<Slot*>(slot);
  return worker->receiver_.on_active_message(kind, {static_cast<const char*>(head), head_bytes},
                                             data, bytes, *how);
}

Status UcxWorker::map(std::span<std::byte> memory) {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = memory.data();
  params.length = memory.size();
  ucp_mem_h handle = nullptr;
  if (const ucs_status_t status = ucp_mem_map(context_, &params, &handle); status != UCS_OK) {
    return {StatusCode::kResourceExhausted, "UCX cannot register " + std::to_string(memory.size()) +
                                                " bytes: " + ucs_status_string(status) +
                                                "; raise the limit of locked memory"};
  }
  const std::lock_guard lock(maps_mutex_);
  const bool inserted = maps_.emplace(memory.data(), handle).second;
  TROUPE_ASSERT(inserted);
  return ok_status();
}

void UcxWorker::unmap(std::span<std::byte> memory) {
  ucp_mem_h handle = nullptr;
  {
    const std::lock_guard lock(maps_mutex_);
    const auto found = maps_.find(memory.data());
    TROUPE_ASSERT(found != maps_.end());
    handle = found->second;
    maps_.erase(found);
  }
  const ucs_status_t status = ucp_mem_unmap(context_, handle);
  TROUPE_ASSERT(status == UCS_OK, ucs_status_string(status));
}

}  // namespace troupe::ucx
