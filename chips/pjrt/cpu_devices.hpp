#pragma once
/// CpuDevices: this process's devices of a PJRT plug-in for CPUs, and the programs compiled for
/// them.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "chips/engine/compiled_store.hpp"
#include "chips/pjrt/client.hpp"

namespace weft::pjrt {

/// The right of one engine to use a device until the lease is destroyed. Clients and plug-ins stay
/// until the process ends, with or without leases.
class DeviceLease {
 public:
  DeviceLease(std::shared_ptr<Client> client, int number);
  DeviceLease(DeviceLease&& other) noexcept;
  DeviceLease& operator=(DeviceLease&&) = delete;
  ~DeviceLease();

  Client& client() const { return *client_; }
  const std::shared_ptr<Client>& shared_client() const { return client_; }
  std::size_t device() const { return static_cast<std::size_t>(number_); }

 private:
  std::shared_ptr<Client> client_;
  int number_;
};

/// Leases devices and compiles programs. of_process() returns the process's only object, which
/// has all clients. Any thread may use it.
///
/// No two engines use the same device, because a chip that waits in a collective holds a thread of
/// its client's pool, and the pool may have only one thread for each of the client's devices.
class CpuDevices {
 public:
  static CpuDevices& of_process();

  /// Leases a free device. `chips` is the number of chips of the caller's mesh in this process: if
  /// a new client is needed, it gets enough devices for them. Throws unavailable, with the command
  /// that installs a plug-in, if there is no plug-in for CPUs. Also throws the errors of
  /// Plugin::load(), Client::make() and test_plugin().
  DeviceLease lease(int chips);
  /// Returns a client with at least `devices` devices. Engines may share it if their programs don't
  /// call weft's collectives, which would hold threads of its pool. Throws the errors of lease().
  std::shared_ptr<Client> shared_client(int devices);
  /// Returns the executable of `text`. Compiles it unless a living plan or the store has it. Chips
  /// that load the same text at the same time share one compilation.
  std::shared_ptr<const Executable> compile(Client& client, const std::string& text,
                                            const CompiledStore& store);

 private:
  friend DeviceLease;
  void give_back(int number);
  std::shared_ptr<Client> client_for(int number, int chips);

  /// An executable that plans use, or that a thread is compiling while it holds `mutex`.
  struct Compiled {
    std::mutex mutex{};
    std::weak_ptr<const Executable> executable{};
  };

  std::mutex mutex_;
  std::set<int> used_;
  std::map<std::size_t, std::shared_ptr<Client>> clients_;  ///< key: the number of devices
  std::map<std::pair<const Client*, std::string>, std::shared_ptr<Compiled>> compiled_;
};

}  // namespace weft::pjrt
