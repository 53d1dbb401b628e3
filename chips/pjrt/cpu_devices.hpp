#pragma once
/// CpuDevices: this process's devices of a PJRT plug-in for CPUs, and what is compiled for them.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "chips/engine/compiled_store.hpp"
#include "chips/pjrt/client.hpp"

namespace weft::pjrt {

/// A device that one engine uses until the lease ends. It keeps nothing alive: clients and plug-ins
/// stay until the process ends.
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

/// The process's only object of this class has the clients. Any thread may use it.
///
/// A chip that waits in a collective holds a thread of its client's pool, which has at least as
/// many threads as the client has devices. So no two engines use one device.
class CpuDevices {
 public:
  static CpuDevices& of_process();

  /// Returns a free device. `chips` is the number of chips that the caller's mesh has here: a new
  /// client gets at least that many. Throws unavailable, with the command that installs a plug-in,
  /// if there is none for CPUs, and the errors of Plugin::load(), Client::make() and test_plugin().
  DeviceLease lease(int chips);
  /// Returns a client with at least that many devices, which engines may share: none of its
  /// programs waits for weft. Throws the errors of lease().
  std::shared_ptr<Client> shared_client(int devices);
  /// Returns the executable of a text. It is compiled if no plan that lives has it, and if the
  /// store doesn't have it either; chips that load the same text at once compile it once.
  std::shared_ptr<const Executable> compile(Client& client, const std::string& text,
                                            const CompiledStore& store);

 private:
  friend DeviceLease;
  void give_back(int number);
  std::shared_ptr<Client> client_for(int number, int chips);

  /// An executable that is used, or is being compiled under its mutex.
  struct Compiled {
    std::mutex mutex{};
    std::weak_ptr<const Executable> executable{};
  };

  std::mutex mutex_;
  std::set<int> used_;
  std::map<std::size_t, std::shared_ptr<Client>> clients_;  ///< by number of devices
  std::map<std::pair<const Client*, std::string>, std::shared_ptr<Compiled>> compiled_;
};

}  // namespace weft::pjrt
