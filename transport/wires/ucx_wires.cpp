#if __has_include(<ucp/api/ucp.h>)
#include <poll.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/wires/ucx_address.hpp"
#include "transport/wires/ucx_library.hpp"
#include "transport/wires/wire_address.hpp"
#include "transport/wires/wire_preamble.hpp"

namespace weft {
namespace {

using UcxClock = std::chrono::steady_clock;

/// The time in which the destructor delivers what was sent.
constexpr std::chrono::seconds kUcxLinger{2};
/// The time in which UCX has to end its requests and connections.
constexpr std::chrono::milliseconds kUcxCloseTime{500};

struct UcxWire;

/// A post. It must not move, because UCX may have its address.
struct UcxPost {
  UcxWire* wire = nullptr;
  std::byte* data = nullptr;
  std::size_t size = 0;
  bool is_done = false;
  bool has_failed = false;
  void* request = nullptr;  ///< UCX's request, until it is freed

  bool is_running() const { return request != nullptr && !is_done && !has_failed; }
};

struct UcxWire {
  WireStatus status{};
  ucp_ep_h endpoint = nullptr;
  std::uint32_t chip = 0;
  std::deque<UcxPost> sends;
  std::deque<UcxPost> receives;
  std::size_t sends_given = 0;  ///< number of the posts that UCX has received
  std::size_t receives_given = 0;
  std::uint32_t sends_numbered = 1;  ///< number of the next message; the preamble has number 0
  std::uint32_t receives_numbered = 1;
  bool is_broken = false;  ///< UCX has found the connection broken
  WirePreambleBytes sent_preamble{};
  WirePreambleBytes received_preamble{};
  UcxPost preamble_send{};
  UcxPost preamble_receive{};

  void lose(std::string why) {
    if (status.state == WireState::lost) return;
    status.state = WireState::lost;
    status.why = std::move(why);
  }
};

void end_post(void*, ucs_status_t status, void* user) {
  auto& post = *static_cast<UcxPost*>(user);
  (status == UCS_OK ? post.is_done : post.has_failed) = true;
}

void end_receive(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* user) {
  const bool is_whole = info->length == static_cast<UcxPost*>(user)->size;
  end_post(request, is_whole ? status : UCS_ERR_MESSAGE_TRUNCATED, user);
}

void on_endpoint_error(void* user, ucp_ep_h, ucs_status_t status) {
  auto& wire = *static_cast<UcxWire*>(user);
  wire.is_broken = true;
  wire.lose(UcxLibrary::get().status_string(status));
}

class UcxWires final : public Wires {
 public:
  explicit UcxWires(const WireConfig& config) : ucx_(UcxLibrary::get()), config_(config) {
    const std::string device = device_of(config.host);
    ucp_config_t* settings = nullptr;
    require(ucx_.config_read(nullptr, nullptr, &settings), "ucp_config_read");
    // RNDV_THRESH=inf makes all sends eager, because an eager send uses both directions of a
    // limited link at once, but a rendezvous doesn't.
    ucs_status_t status = ucx_.config_modify(settings, "TLS", "tcp");
    if (status == UCS_OK) status = ucx_.config_modify(settings, "RNDV_THRESH", "inf");
    // With ZCOPY_THRESH=0, a send ends when the kernel has all of its bytes, so UCX has nothing
    // left to do while the chip computes. A flush would wait until the peer calls progress().
    if (status == UCS_OK) status = ucx_.config_modify(settings, "ZCOPY_THRESH", "0");
    if (status == UCS_OK) status = ucx_.config_modify(settings, "NET_DEVICES", device.c_str());
    ucp_params_t wanted{};
    wanted.field_mask = UCP_PARAM_FIELD_FEATURES;
    wanted.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
    if (status == UCS_OK) {
      status = ucx_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &wanted, settings, &context_);
    }
    ucx_.config_release(settings);
    require(status, "ucp_init");
    make_worker();
  }

  ~UcxWires() override {
    const auto deadline = UcxClock::now() + kUcxLinger;
    const auto has_unsent = [](const UcxWire& wire) {
      return wire.status.state == WireState::up && wire.status.sends > 0;
    };
    while (std::ranges::any_of(wires_, has_unsent) && UcxClock::now() < deadline) {
      if (!progress()) wait(std::chrono::milliseconds(10));
    }
    close();
    free();
  }

  const std::string& address() const override { return address_; }
  std::span<const WirePeer> peers() const override { return peers_; }
  const WireStatus& status(int wire) const override {
    return wires_[static_cast<std::size_t>(wire)].status;
  }

  void connect(std::vector<WirePeer> peers) override {
    WEFT_CHECK(peers_.empty());
    peers_ = std::move(peers);
    wires_.resize(peers_.size());
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const WirePeer& peer = peers_[i];
      UcxWire& wire = wires_[i];
      wire.chip = peer.end.chip;
      ucx_bytes(peer);  // throws if the address is invalid
      wire.status.state = WireState::idle;
      if (!peer.connects_later) begin(wire, peer);
    }
  }

  void send(int wire, std::span<const std::byte> bytes) override {
    if (bytes.empty()) return;
    UcxWire& to = needed(wire);
    to.sends.push_back({&to, const_cast<std::byte*>(bytes.data()), bytes.size()});
    ++to.status.sends;
    give_posts(to);
  }

  void receive(int wire, std::span<std::byte> into) override {
    if (into.empty()) return;
    UcxWire& from = needed(wire);
    from.receives.push_back({&from, into.data(), into.size()});
    ++from.status.receives;
    give_posts(from);
  }

  bool progress() override {
    bool has_moved = false;
    for (int i = 0; i < 64 && ucx_.worker_progress(worker_) != 0; ++i) has_moved = true;
    for (std::size_t i = 0; i < wires_.size(); ++i) has_moved |= settle(wires_[i], peers_[i]);
    return has_moved;
  }

  void wait(std::chrono::milliseconds longest) override {
    if (ucx_.worker_arm(worker_) != UCS_OK) return;  // something has happened already
    pollfd ready{.fd = descriptor_, .events = POLLIN, .revents = 0};
    ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(longest.count(), 0)));
  }

  /// Closes all wires. Sends can't be cancelled, but end with their connection. The connection
  /// first gets time to deliver them, because a peer that has made a different call notices that by
  /// their contents.
  void close() override {
    end_endpoints(0);
    for (UcxWire& wire : wires_) {
      for (UcxPost& post : wire.receives) cancel(post);
      cancel(wire.preamble_receive);
    }
    for (UcxWire& wire : wires_) wire.lose("this end has closed the wire");
    end_endpoints(UCP_EP_CLOSE_FLAG_FORCE);
    for (UcxWire& wire : wires_) {
      for (UcxPost& post : wire.sends) release(post);
      for (UcxPost& post : wire.receives) release(post);
      for (UcxPost* post : {&wire.preamble_send, &wire.preamble_receive}) {
        release(*post);
      }
      wire.sends.clear();
      wire.receives.clear();
      wire.status.sends = wire.status.receives = 0;
    }
  }

 private:
  void require(ucs_status_t status, std::string_view call) const {
    if (status == UCS_OK) return;
    fail(Errc::unavailable, "wire host = \"{}\": {}: {}", config_.host, call,
         ucx_.status_string(status));
  }

  UcxWire& needed(int wire) {
    const auto i = static_cast<std::size_t>(wire);
    if (wires_[i].status.state == WireState::idle) begin(wires_[i], peers_[i]);
    return wires_[i];
  }

  /// Begins to connect. UCX keeps what the peer has sent earlier.
  void begin(UcxWire& wire, const WirePeer& peer) {
    wire.status.state = WireState::connecting;
    ucp_ep_params_t wanted{};
    wanted.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    wanted.address = reinterpret_cast<const ucp_address_t*>(ucx_bytes(peer).data());
    wanted.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    wanted.err_handler = {on_endpoint_error, &wire};
    const ucs_status_t status = ucx_.ep_create(worker_, &wanted, &wire.endpoint);
    if (status != UCS_OK) {
      wire.endpoint = nullptr;
      return wire.lose(ucx_.status_string(status));
    }
    wire.sent_preamble = encode(preamble_to(config_, peer.end));
    wire.preamble_receive = {&wire, wire.received_preamble.data(), kWirePreambleBytes};
    wire.preamble_send = {&wire, wire.sent_preamble.data(), kWirePreambleBytes};
    give_receive(wire.preamble_receive, 0);
    give_send(wire.preamble_send, 0);
  }

  void make_worker() {
    ucp_worker_params_t wanted{};
    wanted.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    wanted.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // threads take turns
    ucs_status_t status = ucx_.worker_create(context_, &wanted, &worker_);
    if (status == UCS_OK) status = ucx_.worker_get_efd(worker_, &descriptor_);
    ucp_address_t* address = nullptr;
    std::size_t size = 0;
    if (status == UCS_OK) status = ucx_.worker_get_address(worker_, &address, &size);
    if (status != UCS_OK) free();
    require(status, "ucp_worker_create");
    address_ = ucx_address({reinterpret_cast<const char*>(address), size});
    ucx_.worker_release_address(worker_, address);
  }

  void free() {
    if (worker_ != nullptr) ucx_.worker_destroy(worker_);
    ucx_.cleanup(context_);
  }

  /// Returns the tag of a message. Messages of another job, generation or channel have another tag
  /// with a probability of 1 - 2^-16, and their preambles always differ.
  ucp_tag_t tag_of(std::uint32_t sender, std::uint32_t number) const {
    std::uint64_t digest = config_.generation * 0x9e3779b97f4a7c15 + config_.channel;
    for (const char c : config_.job) {
      digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return digest >> 48 << 48 | std::uint64_t{sender & 0xffffU} << 32 | number;
  }

  void give_send(UcxPost& post, std::uint32_t number) {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.cb.send = end_post;
    how.user_data = &post;
    take(post, ucx_.tag_send_nbx(post.wire->endpoint, post.data, post.size,
                                 tag_of(config_.self.chip, number), &how));
  }

  void give_receive(UcxPost& post, std::uint32_t number) {
    ucp_request_param_t how{};
    // UCX 1.13 tells the size of some messages only to the callback.
    how.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    how.cb.recv = end_receive;
    how.user_data = &post;
    take(post, ucx_.tag_recv_nbx(worker_, post.data, post.size, tag_of(post.wire->chip, number),
                                 ~ucp_tag_t{0}, &how));
  }

  void take(UcxPost& post, ucs_status_ptr_t request) const {
    if (request == nullptr) {
      post.is_done = true;
    } else if (UCS_PTR_IS_ERR(request)) {
      post.wire->lose(ucx_.status_string(UCS_PTR_STATUS(request)));
    } else {
      post.request = request;
    }
  }

  void cancel(UcxPost& post) const {
    if (post.is_running()) ucx_.request_cancel(worker_, post.request);
  }
  void release(UcxPost& post) const {
    if (post.request != nullptr) ucx_.request_free(std::exchange(post.request, nullptr));
  }

  void give_posts(UcxWire& wire) {
    while (wire.status.state == WireState::up && wire.receives_given < wire.receives.size()) {
      give_receive(wire.receives[wire.receives_given++], wire.receives_numbered++);
    }
    while (wire.status.state == WireState::up && wire.sends_given < wire.sends.size()) {
      give_send(wire.sends[wire.sends_given++], wire.sends_numbered++);
    }
  }

  /// Handles what UCX has done for a wire. Returns whether there was anything.
  bool settle(UcxWire& wire, const WirePeer& peer) {
    bool has_moved = false;
    if (wire.status.state == WireState::connecting && wire.preamble_receive.is_done) {
      has_moved = take_preamble(wire, peer);
    }
    while (!wire.receives.empty() && wire.receives.front().is_done) {
      release(wire.receives.front());
      wire.receives.pop_front();
      --wire.receives_given;
      has_moved = true;
    }
    while (!wire.sends.empty() && wire.sends.front().is_done) {
      release(wire.sends.front());
      wire.sends.pop_front();
      --wire.sends_given;
      has_moved = true;
    }
    if (!wire.receives.empty() && wire.receives.front().has_failed) {
      wire.lose("the other end sent a message of another size");
    }
    wire.status.receives = wire.receives.size();
    wire.status.sends = wire.sends.size();
    return has_moved;
  }

  bool take_preamble(UcxWire& wire, const WirePeer& peer) {
    wire.preamble_receive.is_done = false;
    try {
      WirePreamble expected = preamble_to(config_, peer.end);
      std::swap(expected.from, expected.to);
      require_same(decode_preamble(wire.received_preamble), expected);
    } catch (const Error& error) {
      wire.status.why = error.what();
      return false;
    }
    wire.status.state = WireState::up;
    wire.status.why.clear();
    give_posts(wire);
    return true;
  }

  bool has_requests() const {
    const auto is_running = [](const UcxPost& post) { return post.is_running(); };
    return std::ranges::any_of(wires_, [&](const UcxWire& wire) {
      return is_running(wire.preamble_send) || is_running(wire.preamble_receive) ||
             std::ranges::any_of(wire.sends, is_running) ||
             std::ranges::any_of(wire.receives, is_running);
    });
  }

  /// Closes the connections. With UCP_EP_CLOSE_FLAG_FORCE, also waits for the end of all requests,
  /// because UCX may use their memory until then.
  void end_endpoints(unsigned flags) {
    std::vector<void*> closing;
    for (UcxWire& wire : wires_) {
      if (wire.endpoint == nullptr) continue;
      if (flags == 0 && wire.is_broken) continue;  // a broken connection can't be flushed
      ucp_request_param_t how{};
      how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      how.flags = flags;
      void* const request = ucx_.ep_close_nbx(std::exchange(wire.endpoint, nullptr), &how);
      if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
    }
    const auto deadline = UcxClock::now() + kUcxCloseTime;
    const auto is_open = [&](void* request) {
      return ucx_.request_check_status(request) == UCS_INPROGRESS;
    };
    while (std::ranges::any_of(closing, is_open) || (flags != 0 && has_requests())) {
      if (ucx_.worker_progress(worker_) != 0) continue;
      if (UcxClock::now() >= deadline) break;
      wait(std::chrono::milliseconds(1));
    }
    for (void* request : closing) ucx_.request_free(request);
  }

  const UcxLibrary& ucx_;
  WireConfig config_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;  ///< readable when progress() can do something; owned by UCX
  std::string address_;
  std::vector<WirePeer> peers_;
  std::deque<UcxWire> wires_;
};

}  // namespace

std::unique_ptr<Wires> make_ucx_wires(const WireConfig& config) {
  require_usable(config);
  return std::make_unique<UcxWires>(config);
}

}  // namespace weft
#endif
