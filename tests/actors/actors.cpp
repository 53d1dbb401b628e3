#include "tests/actors/actors.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <stdexcept>

namespace weft::testing {

int Echo::pid() const { return getpid(); }

void Echo::fail_with(const std::string& text) { throw std::runtime_error(text); }

HostTensor Echo::doubled(const HostTensor& tensor) const {
  LoanedTensor result = ctx_.loan({tensor.elements.dtype(), tensor.shape});
  std::ranges::transform(tensor.get<float>(), result.get<float>().begin(),
                         [](float value) { return 2 * value; });
  return std::move(result).finish();
}

int Echo::wait_for_stop() const {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait(lock, ctx_.stop(), [] { return false; });
  return 1;
}

void Echo::kill_process() const { ::kill(getpid(), SIGKILL); }

int Echo::kill_process_once(const std::string& file) const {
  if (std::ifstream(file).good()) return static_cast<int>(ctx_.incarnation());
  std::ofstream(file) << "killed\n";
  ::kill(getpid(), SIGKILL);
  return 0;
}

int Caller::add(int index, int a, int b) const {
  return ctx_.find(echo, "echo")[index].call<&Echo::add>(a, b).get();
}

Worker::Worker(ActorContext& ctx) : ctx_(ctx) {
  if (ctx.config().value("fails", false)) throw std::runtime_error("no memory for a worker");
}

void Worker::work() {
  if (must_fail_) throw std::runtime_error("work went wrong");
  if (count_ < 1000) ++count_;
}

std::vector<ActorRef<Echo>> Desk::echoes() const {
  const auto mesh = ctx_.find(echo, "echo");
  std::vector<ActorRef<Echo>> all;
  for (int i = 0; i < mesh.size(); ++i) all.push_back(mesh[i]);
  return all;
}

ActorRef<Desk> Desk::self() const { return ctx_.find(desk, ctx_.mesh())[ctx_.index()]; }

void Desk::throws(Reply<int>) const { throw std::runtime_error("no ink"); }

void Desk::answer_all() {
  for (Open& each : open_) each.reply.send(2 * each.number);
  open_.clear();
}

int Desk::awaited() const {
  return static_cast<int>(
      std::ranges::count_if(open_, [](const Open& each) { return each.reply.is_awaited(); }));
}

int Desk::ask_along(const std::vector<ActorRef<Desk>>& desks) {
  if (desks.empty()) return 0;
  const std::vector<ActorRef<Desk>> rest(desks.begin(), desks.end() - 1);
  return 1 + desks.back().call<&Desk::ask_along>(rest).get();
}

void Desk::spin(int ms) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < end) {
  }
}

const ActorType<Desk> desk{"test.desk"};
const ActorType<Echo> echo{"test.echo"};
const ActorType<Caller> caller{"test.caller"};
const ActorType<Worker> worker{"test.worker"};

}  // namespace weft::testing

int main(int argc, char** argv) {
  if (std::getenv("WEFT_ACTORS") != nullptr && std::getenv("WEFT_TEST_ACTOR_PROCESS_EXITS")) {
    return 3;  // like a program that ends before it calls worker_main()
  }
  weft::worker_main(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
