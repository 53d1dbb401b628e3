#include "chips/accelerator/accelerator_client.hpp"

#include <cstdlib>
#include <map>
#include <mutex>

#include "chips/pjrt/cpu_devices.hpp"
#include "chips/pjrt/discovery.hpp"
#include "chips/pjrt/self_test.hpp"

namespace weft {
namespace {

std::shared_ptr<pjrt::Client> make_client(DeviceKind kind) {
  const auto client = pjrt::Client::make(pjrt::Plugin::load_for(kind), {}, pjrt::warn_on_stderr);
  const bool is_tpu = client->platform() == "tpu";
  if (client->platform() == "cpu" || is_tpu != (kind == DeviceKind::tpu)) {
    fail(Errc::unavailable, "{}: its devices are of platform {}: expected a {}; install {}",
         client->plugin().name(), client->platform(), to_string(kind), pjrt::install_command(kind));
  }
  client->set_flag("xla_allow_excess_precision", false);  // each op rounds to its dtype
  if (kind == DeviceKind::gpu) {
    client->set_flag("xla_gpu_enable_scatter_determinism_expander", true);  // same bits in each run
  }
  pjrt::test_plugin(*client);
  return client;
}

}  // namespace

std::shared_ptr<pjrt::Client> accelerator_client(DeviceKind kind, int chips) {
  if (kind == DeviceKind::pjrt_mirrored) {
    return pjrt::CpuDevices::of_process().shared_client(chips);
  }
  static std::mutex mutex;
  static auto& clients = *new std::map<DeviceKind, std::shared_ptr<pjrt::Client>>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<pjrt::Client>& client = clients[kind];
  if (client == nullptr) client = make_client(kind);
  const std::size_t found = client->devices().size();
  if (found < static_cast<std::size_t>(chips)) {
    const char* const variable = pjrt::visibility_variable(kind);
    const char* const chosen = std::getenv(variable);
    fail(Errc::unavailable,
         "{}: the job has {} chips on this machine, but the plug-in sees {} of kind {} ({} {}): "
         "use fewer chips (scaling.chips_per_worker), or make more visible",
         client->plugin().name(), chips, found, to_string(kind), variable,
         chosen == nullptr ? "isn't set" : fmt::format("= \"{}\"", chosen));
  }
  return client;
}

}  // namespace weft
