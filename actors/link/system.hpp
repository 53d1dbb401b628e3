#pragma once
/// System: the actor system of a weft process. It sets CAF's options and message types, and
/// provides the Unix socket for CAF's protocol, BASP, between the processes of a job, directly or
/// through TLS.

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/fwd.hpp>
#include <caf/io/middleman_actor.hpp>

#include <weft/job/tls.hpp>

#include "actors/link/messages.hpp"
#include "actors/link/tls_sockets.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/protocol/host_place.hpp"
#include "transport/wires/tls_session.hpp"

namespace weft {

/// Registers the types of messages before CAF's configuration is made.
struct RegisteredTypes {
  RegisteredTypes();
};

/// Sets the scheduler and the message types. Reads no configuration file and no command line.
class SystemConfig : private RegisteredTypes, public caf::actor_system_config {
 public:
  SystemConfig();
};

struct ControlSocket;

/// All actors must have quit before the System is destroyed.
class System {
 public:
  System();
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  caf::actor_system& caf() { return system_; }

  /// Accepts connections to `trainer` through a Door at `path`. Throws io.
  void publish(const TrainerActor& trainer, const std::string& path, std::string_view token);
  /// Accepts connections over TLS at tls.listen. Returns the address, "tls://host:port". Throws io,
  /// and the errors of certificate_context().
  std::string publish(const TrainerActor& trainer, const TlsConfig& tls, std::string_view token);
  /// Accepts connections of agents and of workers of all hosts at place.listener, which stays open.
  /// Returns place.trainer as an address, "tls://host:port". Throws io.
  std::string publish(const TrainerActor& trainer, const HostPlace& place);
  /// Must be called when process `pid` has ended. Bytes that the process has sent are still read.
  /// Then its connection is closed, even if another process holds it open.
  void hang_up(pid_t pid);
  /// Connects to the trainer. Throws timeout or io; version if the trainer has another interface
  /// version; unavailable if, over TLS, nothing listens at the address.
  TrainerActor dial(const std::string& path, std::string_view token,
                    std::chrono::milliseconds timeout);
  TrainerActor dial(const TlsAddress& address, const TlsConfig& tls, std::string_view token,
                    std::chrono::milliseconds timeout);
  TrainerActor dial(const HostPlace& place, std::chrono::milliseconds timeout);

 private:
  std::string publish_tls(const TrainerActor& trainer, const TlsAddress& address,
                          const TlsListener& listener, TlsContext context, std::string_view token);
  void publish_at_door(const TrainerActor& trainer, const std::string& place);
  TrainerActor dial_tls(const TlsAddress& address, const TlsContext& context,
                        std::string_view token, std::chrono::milliseconds timeout);
  TrainerActor ask(const std::string& place, std::chrono::milliseconds timeout);

  std::optional<StartingThreads> starting_;  // needed while the members below start their threads
  SystemConfig config_;
  std::shared_ptr<ControlSocket> control_;
  caf::actor_system system_;
  caf::io::middleman_actor sockets_;
};

/// Logs the messages that an actor doesn't expect. By default CAF prints them, or ends the actor
/// silently.
void route_to_log(caf::scheduled_actor* self, const char* logger_name);

}  // namespace weft
