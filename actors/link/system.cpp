#include "actors/link/system.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/acceptor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>

#include <weft/tensor/error.hpp>

#include "actors/link/certificate_context.hpp"
#include "actors/link/door.hpp"
#include "actors/link/tls_sockets.hpp"
#include "actors/process/log.hpp"
#include "transport/wires/secret_context.hpp"

namespace weft {

/// The arguments of UnixMiddlemanActor that CAF's requests can't carry. They are set before each
/// request.
struct ControlSocket {
  std::shared_ptr<Door> door;  ///< for listening
  Preamble preamble{};         ///< for dialing
  int dialled = -1;            ///< over TLS: the bridge's plain end, which is already connected
  /// The bridge is destroyed after the actor system, because it carries the actors' last messages.
  std::shared_ptr<TlsBridge> bridge;

  ~ControlSocket() {
    if (dialled >= 0) ::close(dialled);
  }
};

namespace {

namespace net = caf::io::network;

/// The port under which a socket's only actor is published, because BASP finds published actors by
/// port.
constexpr std::uint16_t kSocketKey = 1;

/// Distinguishes control connections from other uses of the job's secret.
constexpr std::string_view kControlPurpose = "weft control";

/// The token of a door for other hosts. It is a constant, because TLS has already proved the
/// secret.
constexpr std::string_view kHostsToken = "weft: a host or worker of a job.";

bool make_address(const char* path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path == nullptr || std::strlen(path) >= sizeof address.sun_path) return false;
  std::strcpy(address.sun_path, path);
  return true;
}

/// Gives CAF the door's admitted connections, in place of accept().
struct FromTheDoor {
  std::shared_ptr<Door> door;

  bool try_accept(net::native_socket& result, net::native_socket) const {
    result = door->take();
    return result >= 0;
  }
};

class UnixDoorman : public caf::io::doorman {
 public:
  /// `proven` is a duplicate of door->fd() that this object owns.
  UnixDoorman(net::default_multiplexer& multiplexer, int proven, std::shared_ptr<Door> door)
      : caf::io::doorman(net::accept_hdl_from_socket(proven)),
        acceptor_(multiplexer, proven, FromTheDoor{std::move(door)}) {}

  bool new_connection() override {
    const int peer = acceptor_.accepted_socket();
    if (detached()) {
      ::close(peer);
      return false;
    }
    auto& multiplexer = acceptor_.backend();
    auto scribe = multiplexer.new_scribe(peer);
    const auto handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return caf::io::doorman::new_connection(&multiplexer, handle);
  }
  void graceful_shutdown() override {
    acceptor_.graceful_shutdown();
    detach(&acceptor_.backend(), false);
  }
  void launch() override { acceptor_.start(this); }
  void add_to_loop() override { acceptor_.activate(this); }
  void remove_from_loop() override { acceptor_.passivate(); }
  std::uint16_t port() const override { return kSocketKey; }
  std::string addr() const override { return "unix"; }

 private:
  net::acceptor_impl<FromTheDoor> acceptor_;
};

/// CAF's middleman actor with Unix sockets in place of TCP ("host" is a path).
class UnixMiddlemanActor : public caf::io::middleman_actor_impl {
 public:
  UnixMiddlemanActor(caf::actor_config& config, caf::actor basp,
                     std::shared_ptr<ControlSocket> control)
      : middleman_actor_impl(config, std::move(basp)), control_(std::move(control)) {}
  const char* name() const override { return "weft.sockets"; }

 protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& path, std::uint16_t) override {
    if (control_->dialled >= 0)
      return multiplexer().new_scribe(std::exchange(control_->dialled, -1));
    sockaddr_un address;
    if (!make_address(path.c_str(), address)) return caf::sec::invalid_argument;
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const Preamble& preamble = control_->preamble;
    if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::send(fd, preamble.data(), preamble.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(preamble.size())) {
      const std::string why = std::strerror(errno);
      if (fd >= 0) ::close(fd);
      return caf::make_error(caf::sec::cannot_connect_to_node, path, why);
    }
    return multiplexer().new_scribe(fd);
  }

  caf::expected<caf::io::doorman_ptr> open(std::uint16_t, const char* path, bool) override {
    const int proven = ::fcntl(control_->door->fd(), F_DUPFD_CLOEXEC, 0);
    if (proven < 0) {
      return caf::make_error(caf::sec::cannot_open_port, std::string(path),
                             std::string(std::strerror(errno)));
    }
    return caf::make_counted<UnixDoorman>(multiplexer(), proven, control_->door);
  }

 private:
  net::default_multiplexer& multiplexer() {
    return static_cast<net::default_multiplexer&>(system().middleman().backend());
  }

  std::shared_ptr<ControlSocket> control_;
};

/// Makes CAF's threads log to the log of the job that they work for.
class LogHook : public ThreadHook {
 public:
  explicit LogHook(std::shared_ptr<JobLog> log) : log_(std::move(log)) {}
  void thread_began() override { set_thread_log(log_); }
  void thread_terminates() override { set_thread_log(nullptr); }

 private:
  std::shared_ptr<JobLog> log_;
};

}  // namespace

RegisteredTypes::RegisteredTypes() {
  register_blocks<caf::id_block::weft_names, caf::id_block::weft_messages>();
}

// CAF 1.x moves its table of types when the table grows, which must not happen while an actor
// system runs, be it the application's own. Therefore the table grows before main().
static const RegisteredTypes kRegisteredTypes;

SystemConfig::SystemConfig() {
  add_thread_hook<LogHook>(current_log());
  load<caf::io::middleman>();
  set(caf_option("scheduler.policy"), caf_symbol("sharing"));
  set(caf_option("scheduler.max-threads"), 2);
  set(caf_option("middleman.workers"), 0);
  std::istringstream no_file;
  static_cast<void>(parse({}, no_file));
#define WEFT_ADD_MESSAGE(block, type, name) add_message<type>(*this, name);
  WEFT_LINK_MESSAGES(WEFT_ADD_MESSAGE)
#undef WEFT_ADD_MESSAGE
}

System::System()
    : starting_(std::in_place, "weft.caf"),
      control_(std::make_shared<ControlSocket>()),
      system_(config_),
      sockets_(system_.spawn<UnixMiddlemanActor, caf::detached + caf::hidden>(
          system_.middleman().named_broker<caf::io::basp_broker>(caf_symbol("BASP")), control_)) {
  starting_.reset();
}

System::~System() {
  if (control_->door) control_->door->close();
  caf::anon_send_exit(sockets_, caf::exit_reason::kill);
}

void System::hang_up(pid_t pid) {
  if (control_->door) control_->door->hang_up(pid);
}

void System::publish(const TrainerActor& trainer, const std::string& path, std::string_view token) {
  control_->door = std::make_shared<Door>(path, token);
  publish_at_door(trainer, path);
}

std::string System::publish(const TrainerActor& trainer, const TlsConfig& tls,
                            std::string_view token) {
  const TlsAddress address = parse_tls_address(tls.listen, "backend.tls.listen");
  TlsContext context = certificate_context(tls, TlsSide::server);
  return publish_tls(trainer, address, listen_tls(address), std::move(context), token);
}

std::string System::publish(const TrainerActor& trainer, const HostPlace& place) {
  const TlsAddress address = parse_tls_address(place.trainer, "WEFT_TRAINER");
  TlsContext context = secret_context(place.secret, kControlPurpose, TlsSide::server);
  const int fd = ::fcntl(place.listener, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) fail(Errc::io, "the socket of host 0: fcntl: {}", std::strerror(errno));
  return publish_tls(trainer, address, {.fd = fd, .port = address.port}, std::move(context),
                     kHostsToken);
}

std::string System::publish_tls(const TrainerActor& trainer, const TlsAddress& address,
                                const TlsListener& listener, TlsContext context,
                                std::string_view token) {
  control_->bridge = std::make_shared<TlsBridge>();
  control_->door =
      std::make_shared<Door>(TlsEntrance{listener.fd, std::move(context), control_->bridge}, token);
  const std::string place = "tls://" + to_string({.host = address.host, .port = listener.port});
  publish_at_door(trainer, place);
  return place;
}

void System::publish_at_door(const TrainerActor& trainer, const std::string& place) {
  caf::scoped_actor self{system_};
  request_by(self, sockets_, std::chrono::seconds(10), caf::publish_atom_v, kSocketKey,
             caf::actor_cast<caf::strong_actor_ptr>(trainer),
             system_.message_types(CafList<TrainerActor>{}), place, false)
      .receive([](std::uint16_t) {},
               [&](const caf::error& error) {
                 fail(Errc::io, "control socket {}: {}", place, caf::to_string(error));
               });
}

TrainerActor System::dial(const std::string& path, std::string_view token,
                          std::chrono::milliseconds timeout) {
  control_->preamble = make_preamble(token);
  return ask(path, timeout);
}

TrainerActor System::dial(const TlsAddress& address, const TlsConfig& tls, std::string_view token,
                          std::chrono::milliseconds timeout) {
  return dial_tls(address, certificate_context(tls, TlsSide::client), token, timeout);
}

TrainerActor System::dial(const HostPlace& place, std::chrono::milliseconds timeout) {
  return dial_tls(parse_tls_address(place.trainer, "WEFT_TRAINER"),
                  secret_context(place.secret, kControlPurpose, TlsSide::client), kHostsToken,
                  timeout);
}

TrainerActor System::dial_tls(const TlsAddress& address, const TlsContext& context,
                              std::string_view token, std::chrono::milliseconds timeout) {
  const Preamble preamble = make_preamble(token);
  control_->bridge = std::make_shared<TlsBridge>();
  control_->dialled = control_->bridge->add(
      weft::dial_tls(address, context, {preamble.data(), preamble.size()}, timeout));
  return ask("tls://" + to_string(address), timeout);
}

TrainerActor System::ask(const std::string& place, std::chrono::milliseconds timeout) {
  caf::scoped_actor self{system_};
  TrainerActor trainer;
  request_by(self, sockets_, timeout, caf::connect_atom_v, place, kSocketKey)
      .receive(
          [&](const caf::node_id&, caf::strong_actor_ptr& actor,
              const std::set<std::string>& interfaces) {
            if (!actor) fail(Errc::io, "nobody answers at the control socket {}", place);
            if (!system_.assignable(interfaces, system_.message_types(CafList<TrainerActor>{}))) {
              fail(Errc::version,
                   "the trainer at {} speaks another version of weft; start trainer and workers "
                   "from one build",
                   place);
            }
            trainer = caf::actor_cast<TrainerActor>(actor);
          },
          [&](const caf::error& error) {
            if (error == caf::sec::request_timeout) {
              fail(Errc::timeout, "no answer from the trainer at {} for {} ms", place,
                   timeout.count());
            }
            if (error == caf::sec::disconnect_during_handshake) {
              fail(Errc::io,
                   "the trainer at {} closed the connection without an answer: WEFT_JOB_TOKEN "
                   "isn't the token of its job, or the trainer has another version of weft; "
                   "the trainer's log shows the reason",
                   place);
            }
            fail(Errc::io, "control socket {}: {}", place, caf::to_string(error));
          });
  return trainer;
}

void route_to_log(caf::scheduled_actor* self, const char* logger_name) {
  on_unexpected(self, [logger_name](const std::string& message) {
    logger(logger_name)->error("unexpected message: {}", message);
  });
  on_error(self, [logger_name](caf::scheduled_actor* actor, caf::error& error) {
    logger(logger_name)->error("actor {}: {}", actor->name(), caf::to_string(error));
    actor->quit(error);
  });
  self->set_exception_handler([logger_name](caf::scheduled_actor*, std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      logger(logger_name)->error("exception in an actor: {}", e.what());
      return caf::make_error(caf::sec::runtime_error, std::string(e.what()));
    } catch (...) {
      logger(logger_name)->error("exception of unknown type in an actor");
      return caf::make_error(caf::sec::runtime_error);
    }
  });
}

}  // namespace weft
