#include "actors/trainer/trainer_link.hpp"

#include <caf/all.hpp>

#include "actors/process/log.hpp"
#include "actors/trainer/trainer_actor.hpp"
#include "actors/worker/worker_actor.hpp"

namespace weft {
namespace {

class ActorTrainerLink : public TrainerLink {
 public:
  ActorTrainerLink(const TrainerLinkOptions& options, HostLink& host, const Recorder& recorder)
      : timeout_(options.spec.timeout()),
        trainer_(spawn_trainer(system_, options, host, recorder)) {
    if (options.socket_path.empty()) return;
    try {
      listen(options);
    } catch (...) {
      quit();  // without this, the system would wait for the actor forever
      throw;
    }
  }
  ~ActorTrainerLink() override { quit(); }

  const std::string& address() const override { return address_; }

  void process_started(int worker, int pid) override {
    weft::post(trainer_, started_a_v, std::int32_t{worker}, std::int32_t{pid});
  }
  void process_ended(const ProcessEnded& ended) override {
    system_.hang_up(ended.pid);
    weft::post(trainer_, process_a_v, ended);
  }
  void preempt(const std::string& reason) override { weft::post(trainer_, preempt_a_v, reason); }
  void cancel(Errc code, const std::string& reason) override {
    weft::post(trainer_, cancel_a_v, static_cast<std::uint8_t>(code), reason);
  }
  void keep_hang(bool is_kept) override { weft::post(trainer_, keep_a_v, is_kept); }
  void post(const CommandPost& post) override { weft::post(trainer_, post_a_v, post); }
  std::unique_ptr<WorkerLink> local_worker(int worker, const LinkRecorder& recorder) override {
    return make_worker_link(system_, trainer_, worker, timeout_, recorder);
  }

 private:
  void listen(const TrainerLinkOptions& options) {
    if (options.spec.place.count > 1) {
      address_ = system_.publish(trainer_, options.spec.place);
      logger("weft.trainer")
          ->info("host 0 of {}, control at {}", options.spec.place.count, address_);
      return;
    }
    const TlsConfig& tls = options.spec.tls;
    if (!tls.wanted()) {
      system_.publish(trainer_, options.socket_path, options.token);
      address_ = "unix:" + options.socket_path;
      return;
    }
    address_ = system_.publish(trainer_, tls, options.token);
    logger("weft.trainer")->info("control at {}", address_);
  }
  void quit() { caf::anon_send_exit(trainer_, caf::exit_reason::user_shutdown); }

  System system_;
  std::chrono::milliseconds timeout_;
  TrainerActor trainer_;
  std::string address_;
};

}  // namespace

std::unique_ptr<TrainerLink> TrainerLink::start(TrainerLinkOptions options, HostLink& host,
                                                const Recorder& recorder) {
  return std::make_unique<ActorTrainerLink>(options, host, recorder);
}

}  // namespace weft
