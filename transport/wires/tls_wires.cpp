#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/wires/secret_context.hpp"
#include "transport/wires/tls_wire.hpp"
#include "transport/wires/wire_address.hpp"
#include "transport/wires/wire_door.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

/// If a connection fails before the wire is up, for example because the peer's door is full, it is
/// tried again after this time.
constexpr std::chrono::milliseconds kRedialAfter{20};
/// The time in which the destructor delivers what was sent.
constexpr std::chrono::seconds kLinger{2};
/// If wires were closed in the middle of an exchange, the destructor waits this long for the other
/// ends to end, too.
constexpr std::chrono::milliseconds kDrain{500};
constexpr std::string_view kPurpose = "weft wires 1";

/// Dials one peer repeatedly until the peer's door accepts this chip.
class WireDial {
 public:
  WireDial(WireAddress address, WirePreamble first)
      : address_(std::move(address)), first_(std::move(first)) {}
  WireDial(const WireDial&) = delete;
  WireDial& operator=(const WireDial&) = delete;
  ~WireDial() {
    if (fd_ >= 0) ::close(fd_);
  }

  /// Returns the connection once its greeting has succeeded. Writes the reason of a failure to
  /// `why`.
  std::optional<TlsSession> progress(const TlsContext& context, const WireGreeting::Check& check,
                                     std::string& why) {
    if (fd_ < 0 && !greeting_ && !begin(why)) return {};
    if (fd_ >= 0 && !connected(context, why)) return {};
    const auto progress = greeting_->progress(check);
    if (progress == WireGreeting::Progress::waiting) return {};
    if (progress == WireGreeting::Progress::done) return greeting_->take();
    why = greeting_->why();
    greeting_.reset();
    again_ = Clock::now() + kRedialAfter;
    return {};
  }
  void add_events(std::vector<pollfd>& events) const {
    if (fd_ >= 0) events.push_back({fd_, POLLOUT, 0});
    if (greeting_) events.push_back({greeting_->fd(), greeting_->events(), 0});
  }
  /// Returns the time until the next dial; the maximum while a dial or its greeting is in progress.
  std::chrono::milliseconds pause() const {
    if (fd_ >= 0 || greeting_) return std::chrono::milliseconds::max();
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::ceil<std::chrono::milliseconds>(again_ - Clock::now()));
  }

 private:
  bool begin(std::string& why) {
    if (Clock::now() < again_) return false;
    fd_ = ::socket(address_.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0) return failed(errno, why);
    if (::connect(fd_, address_.get(), address_.size) == 0 || errno == EINPROGRESS) return true;
    return failed(errno, why);
  }
  bool connected(const TlsContext& context, std::string& why) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0) return false;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return failed(error, why);
    greeting_.emplace(context, std::exchange(fd_, -1), first_);
    return true;
  }
  bool failed(int error, std::string& why) {
    why = fmt::format("{}: {}", to_string(address_), std::strerror(error));
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    again_ = Clock::now() + kRedialAfter;
    return false;
  }

  WireAddress address_;
  WirePreamble first_;
  int fd_ = -1;  ///< the socket while it connects
  std::optional<WireGreeting> greeting_;
  Clock::time_point again_{};
};

/// The wires of a chip. The end with the smaller device id dials the other end.
class TlsWires final : public Wires {
 public:
  explicit TlsWires(const WireConfig& config)
      : config_(config),
        door_(config.host, config.ports, secret_context(config.secret, kPurpose, TlsSide::server),
              config.log),
        context_(secret_context(config.secret, kPurpose, TlsSide::client)),
        address_(door_.address()) {
    config_.secret.clear();
  }

  ~TlsWires() override {
    door_.close();
    const Clock::time_point deadline = Clock::now() + kLinger;
    while (has_unsent() && Clock::now() < deadline) {
      progress();
      wait(std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()));
    }
    close();
    const Clock::time_point drained = Clock::now() + kDrain;
    while (has_unread_ && !drain() && Clock::now() < drained) {
      wait(std::chrono::ceil<std::chrono::milliseconds>(drained - Clock::now()));
    }
  }

  const std::string& address() const override { return address_; }
  std::span<const WirePeer> peers() const override { return peers_; }
  const WireStatus& status(int wire) const override { return at(wire).status; }

  void connect(std::vector<WirePeer> peers) override {
    WEFT_CHECK(peers_.empty());
    peers_ = std::move(peers);
    wires_.resize(peers_.size());
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const WirePeer& peer = peers_[i];
      const std::string field = fmt::format("wire address of {}", to_string(peer.end));
      WireAddress address = parse_wire_address(peer.address, field);
      dials_.emplace_back();
      if (peer.end.chip == config_.self.chip) {
        fail(Errc::invalid_argument, "{}: a chip has no wire to itself", field);
      }
      if (config_.self.chip < peer.end.chip) {
        dials_.back().emplace(std::move(address), preamble_to(config_, peer.end));
      }
      wires_[i].status.state = WireState::idle;
      if (!peer.connects_later) needed(static_cast<int>(i));
    }
  }

  void send(int wire, std::span<const std::byte> bytes) override { needed(wire).send(bytes); }
  void receive(int wire, std::span<std::byte> into) override { needed(wire).receive(into); }

  bool progress() override {
    bool has_moved = connecting_ > 0 && connect_more();
    for (TlsWire& wire : wires_) has_moved |= wire.progress();
    return has_moved;
  }

  void close() override {
    has_unread_ = has_unread_ || has_awaited();
    door_.close();
    for (auto& dial : dials_) dial.reset();
    for (TlsWire& wire : wires_) wire.end();
  }

  void wait(std::chrono::milliseconds longest) override {
    events_.clear();
    for (const TlsWire& wire : wires_) wire.add_events(events_);
    if (connecting_ > 0) door_.add_events(events_);
    for (std::size_t i = 0; connecting_ > 0 && i < dials_.size(); ++i) {
      if (!dials_[i] || wires_[i].status.state != WireState::connecting) continue;
      dials_[i]->add_events(events_);
      longest = std::min(longest, dials_[i]->pause());
    }
    const auto timeout = std::max<std::int64_t>(longest.count(), 0);
    ::poll(events_.data(), events_.size(), static_cast<int>(timeout));
  }

 private:
  TlsWire& at(int wire) { return wires_[static_cast<std::size_t>(wire)]; }
  const TlsWire& at(int wire) const { return wires_[static_cast<std::size_t>(wire)]; }
  TlsWire& needed(int wire) {
    TlsWire& needed = at(wire);
    if (needed.status.state == WireState::idle) {
      needed.status.state = WireState::connecting;
      ++connecting_;
    }
    return needed;
  }

  bool has_unsent() const {
    return std::ranges::any_of(wires_, [](const TlsWire& wire) {
      return wire.status.state == WireState::up && wire.status.sends > 0;
    });
  }

  bool has_awaited() const {
    return std::ranges::any_of(wires_,
                               [](const TlsWire& wire) { return wire.status.receives > 0; });
  }
  bool drain() {
    bool all = true;
    for (TlsWire& wire : wires_) all &= wire.drain();
    return all;
  }

  /// Continues dials and greetings while a wire is connecting. At other times the door isn't
  /// served, so strangers disturb nothing, and a peer that dials early waits in the queue of the
  /// kernel. The door is closed when all wires have been up, because a lost wire isn't connected
  /// again.
  bool connect_more() {
    bool has_moved = false;
    bool has_idle = false;
    connecting_ = 0;
    for (std::size_t i = 0; i < wires_.size(); ++i) {
      const WireState& state = wires_[i].status.state;
      if (dials_[i] && state == WireState::connecting) has_moved |= dial(i);
      connecting_ += state == WireState::connecting ? 1 : 0;
      has_idle = has_idle || state == WireState::idle;
    }
    if (connecting_ == 0) {
      if (!has_idle) door_.close();
      return has_moved;
    }
    return door_.progress([this](const WirePreamble& received) { return answer_to(received); },
                          [this](const WirePreamble& received, TlsSession session) {
                            admit(received, std::move(session));
                          }) ||
           has_moved;
  }

  bool dial(std::size_t i) {
    const auto check = [&](const WirePreamble& received) {
      require_same(received, expected_from(i));
      return WirePreamble();
    };
    auto session = dials_[i]->progress(context_, check, wires_[i].status.why);
    if (!session) return false;
    dials_[i].reset();
    wires_[i].begin(std::move(*session));
    return true;
  }

  WirePreamble expected_from(std::size_t i) const {
    WirePreamble expected = preamble_to(config_, peers_[i].end);
    std::swap(expected.from, expected.to);
    return expected;
  }

  std::optional<std::size_t> find(const WireEnd& end) const {
    const auto found =
        std::ranges::find(peers_, end.chip, [](const WirePeer& peer) { return peer.end.chip; });
    if (found == peers_.end() || found->end.chip > config_.self.chip) return {};
    return static_cast<std::size_t>(found - peers_.begin());
  }

  WirePreamble answer_to(const WirePreamble& received) const {
    const auto i = find(received.from);
    if (!i) {
      fail(Errc::invalid_argument, "this chip, {}, expects no connection from {}",
           to_string(config_.self), to_string(received.from));
    }
    require_same(received, expected_from(*i));
    if (!awaits(*i)) {
      fail(Errc::invalid_argument, "{} is connected already", to_string(received.from));
    }
    return preamble_to(config_, received.from);
  }

  void admit(const WirePreamble& received, TlsSession session) {
    const std::size_t i = *find(received.from);
    if (awaits(i)) wires_[i].begin(std::move(session));
  }

  /// Returns whether the wire may still come up. That includes an idle wire, which the peer may
  /// need before this end does.
  bool awaits(std::size_t i) const {
    const WireState state = wires_[i].status.state;
    return state == WireState::connecting || state == WireState::idle;
  }

  WireConfig config_;
  WireDoor door_;
  TlsContext context_;
  std::string address_;
  std::vector<WirePeer> peers_;
  std::deque<TlsWire> wires_;
  std::deque<std::optional<WireDial>> dials_;  ///< by wire; empty if the peer dials, or once up
  std::size_t connecting_ = 0;                 ///< an upper bound of the number of connecting wires
  bool has_unread_ = false;                    ///< close() was called while receives were posted
  std::vector<pollfd> events_;
};

}  // namespace

std::unique_ptr<Wires> make_tls_wires(const WireConfig& config) {
  require_usable(config);
  if (config.secret.size() < kWireSecretBytes) {
    fail(Errc::invalid_argument,
         "wire secret has {} bytes: expected at least {}, from a source of random bytes",
         config.secret.size(), kWireSecretBytes);
  }
  return std::make_unique<TlsWires>(config);
}

}  // namespace weft
