#include "chips/pjrt/cpu_devices.hpp"

#include <cstdio>
#include <utility>

#include "chips/pjrt/discovery.hpp"
#include "chips/pjrt/self_test.hpp"

namespace weft::pjrt {
namespace {

const Plugin& plugin_for_cpus() {
  for (const PluginFile& file : find_plugins()) {
    if (file.kind.value_or(DeviceKind::cpu) == DeviceKind::cpu) return Plugin::load(file.path);
  }
  fail(Errc::unavailable,
       "there is no PJRT plug-in for CPUs: install one ({}), or name its file in WEFT_PJRT_PLUGIN",
       install_command(DeviceKind::cpu));
}

}  // namespace

DeviceLease::DeviceLease(std::shared_ptr<Client> client, int number)
    : client_(std::move(client)), number_(number) {}

DeviceLease::DeviceLease(DeviceLease&& other) noexcept
    : client_(std::move(other.client_)), number_(std::exchange(other.number_, -1)) {}

DeviceLease::~DeviceLease() {
  if (number_ >= 0) CpuDevices::of_process().give_back(number_);
}

CpuDevices& CpuDevices::of_process() {
  static auto& devices = *new CpuDevices;  // never destroyed: threads of plug-ins don't end
  return devices;
}

DeviceLease CpuDevices::lease(int chips) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  while (used_.contains(number)) ++number;
  std::shared_ptr<Client> client = client_for(number, chips);
  used_.insert(number);
  return {std::move(client), number};
}

std::shared_ptr<Client> CpuDevices::shared_client(int devices) {
  const std::lock_guard lock(mutex_);
  return client_for(devices - 1, 1);
}

void CpuDevices::give_back(int number) {
  const std::lock_guard lock(mutex_);
  used_.erase(number);
}

std::shared_ptr<Client> CpuDevices::client_for(int number, int chips) {
  const auto found = clients_.upper_bound(static_cast<std::size_t>(number));
  if (found != clients_.end()) return found->second;
  const std::int64_t count = number + chips;
  // A worker's stderr is in its log.
  const auto client =
      Client::make(plugin_for_cpus(), {{"cpu_device_count", count}},
                   [](const std::string& text) { fmt::print(stderr, "weft: {}\n", text); });
  if (client->platform() != "cpu" || client->devices().size() < static_cast<std::size_t>(count)) {
    fail(Errc::unavailable,
         "{}, platform {}: it has {} devices in this process: expected {} of a "
         "CPU; install another plug-in",
         client->plugin().name(), client->platform(), client->devices().size(), count);
  }
  client->set_flag("xla_allow_excess_precision", false);  // each op rounds to its dtype
  test_plugin(*client);
  return clients_[client->devices().size()] = client;
}

std::shared_ptr<const Executable> CpuDevices::compile(Client& client, const std::string& text) {
  std::shared_ptr<Compiled> compiled;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(compiled_, [](const auto& entry) {
      return entry.second.use_count() == 1 && entry.second->executable.expired();
    });
    std::shared_ptr<Compiled>& entry = compiled_[{&client, text}];
    if (entry == nullptr) entry = std::make_shared<Compiled>();
    compiled = entry;
  }
  const std::lock_guard lock(compiled->mutex);
  std::shared_ptr<const Executable> executable = compiled->executable.lock();
  if (executable == nullptr) {
    executable = std::make_shared<const Executable>(client.compile(text));
    compiled->executable = executable;
  }
  return executable;
}

}  // namespace weft::pjrt
