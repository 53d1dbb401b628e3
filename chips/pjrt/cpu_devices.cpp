#include "chips/pjrt/cpu_devices.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "chips/pjrt/self_test.hpp"
#include "data/files/file_bytes.hpp"

namespace weft::pjrt {
namespace {

/// Returns the lines of /proc/cpuinfo that identify the processor for which a compiler makes code.
std::string processor() {
  constexpr std::string_view kNames[] = {"model name", "flags", "CPU part", "Features", "isa"};
  std::ifstream info("/proc/cpuinfo");
  std::string text;
  for (std::string line; std::getline(info, line) && !line.empty();) {
    const bool says =
        std::ranges::any_of(kNames, [&](std::string_view name) { return line.starts_with(name); });
    if (says) text += line + '\n';
  }
  return text;
}

/// Returns the store's key of an executable: everything on which the executable depends.
std::string key_of(const Client& client, const std::string& text) {
  const Plugin& plugin = client.plugin();
  const char* const xla_flags = std::getenv("XLA_FLAGS");  // XLA's defaults of other flags
  return fmt::format("{}\n{} {}\nAPI 0.{}\n{}{}\n{}\n{}", file_identity(plugin.path()),
                     client.platform(), client.platform_version(), plugin.minor(), processor(),
                     CompileOptions{.flags = client.flags()}.bytes(),
                     xla_flags != nullptr ? xla_flags : "", text);
}

Executable find_or_compile(Client& client, const std::string& text, const CompiledStore& store) {
  if (!store.is_on()) return client.compile(text);
  const std::string key = key_of(client, text);
  if (const auto found = store.find(key)) {
    try {
      return client.load(*found);
    } catch (const PluginError& error) {
      store.say(fmt::format("{}; the program is compiled again", error.what()));
    }
  }
  Executable executable = client.compile(text);
  try {
    store.keep(key, executable.serialize());
  } catch (const PluginError& error) {
    store.say(fmt::format("{}; the compiled program isn't kept", error.what()));
  }
  return executable;
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
  const auto client = Client::make(Plugin::load_for(DeviceKind::cpu), {{"cpu_device_count", count}},
                                   warn_on_stderr);
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

std::shared_ptr<const Executable> CpuDevices::compile(Client& client, const std::string& text,
                                                      const CompiledStore& store) {
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
    executable = std::make_shared<const Executable>(find_or_compile(client, text, store));
    compiled->executable = executable;
  }
  return executable;
}

}  // namespace weft::pjrt
