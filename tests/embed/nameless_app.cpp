/// A program that doesn't call weft::worker_main() and that calls fit() in the way that its
/// argument names. It prints a line "right", "refused: ..." or "wrong: ..." for each fit().

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include <weft/weft.hpp>

namespace {

using weft::Config;
using weft::TrainContext;

template <int kAmount>
void add(TrainContext& ctx, const Config&) {
  weft::Parameter sum = weft::make_parameter("sum", std::vector<float>{1}, {1});
  while (ctx.step() < 5) {
    sum.assign(sum + static_cast<double>(kAmount));
    weft::sync();
  }
  ctx.report({{"sum", sum.to_vector()[0]}});
}

weft::TrainerOptions options(int workers = 2) {
  return {.scaling = {.num_workers = workers},
          .backend = {.timeout_s = 30},
          .run = {.name = "nameless", .storage_path = std::getenv("WEFT_TEST_STORAGE")}};
}

/// Calls `fit` and prints the line that says how it ended. `fit` must run a loop that adds `amount`
/// five times, and return the Result.
template <typename Fit>
void tell(int amount, Fit fit) {
  std::string line;
  try {
    const weft::Result result = fit();
    if (!result.ok()) {
      line = "refused: " + result.error->message;
    } else {
      line = result.metrics["sum"] == 1 + 5 * amount ? "right" : "wrong: " + result.metrics.dump();
    }
  } catch (const weft::Error& e) {
    line = std::string("refused: ") + e.what();
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

/// Starts two loops in two threads; a worker may reach either of them first.
void race() {
  auto one = std::async(std::launch::async,
                        [] { tell(1, [] { return weft::Trainer(add<1>, options()).fit(); }); });
  auto other = std::async(std::launch::async, [] {
    tell(100, [] { return weft::Trainer(add<100>, options()).fit(); });
  });
  one.get();
  other.get();
}

void add_some(int amount, TrainContext& ctx) { amount == 1 ? add<1>(ctx, {}) : add<100>(ctx, {}); }

struct Adder {
  int amount;
  void operator()(TrainContext& ctx) const { add_some(amount, ctx); }
};

/// Runs two loops of the same line and the same type; only their captures differ.
void fit_with_captures(int amount) {
  const auto fit = [amount](const weft::TrainLoop& loop) {
    tell(amount, [&] { return weft::Trainer(loop, options()).fit(); });
  };
  fit([amount](TrainContext& ctx) { add_some(amount, ctx); });
  fit([&amount](TrainContext& ctx, const Config&) { add_some(amount, ctx); });
  fit(Adder{amount});
  fit(std::bind_front(add_some, amount));
  fit(std::function<void(TrainContext&)>(Adder{amount}));
}

void captures() { fit_with_captures(1); }

void captures_on_threads() {
  std::thread one(fit_with_captures, 1);
  std::thread other(fit_with_captures, 100);
  one.join();
  other.join();
}

/// Runs loops that capture another value in the workers than in the trainer, because the workers
/// inherit WEFT_TEST_LATER.
void captures_by_environment() {
  const int first = std::getenv("WEFT_TEST_LATER") != nullptr ? 100 : 1;
  ::setenv("WEFT_TEST_LATER", "1", 1);
  fit_with_captures(first);
}

/// Runs a loop without captures that is another function in the workers than in the trainer, but of
/// the same type and at the same line.
void functions_by_environment() {
  const bool is_later = std::getenv("WEFT_TEST_LATER") != nullptr;
  ::setenv("WEFT_TEST_LATER", "1", 1);
  tell(1, [&] { return weft::Trainer(is_later ? add<100> : add<1>, options()).fit(); });
}

/// Runs a loop without worker processes, so no process has to find the loop and its captures again.
void captures_without_workers() {
  const int amount = 100;
  tell(amount, [amount] {
    return weft::Trainer([amount](TrainContext& ctx) { add_some(amount, ctx); }, options(0)).fit();
  });
}

/// Takes another branch in a worker than in the trainer.
void branches() {
  if (std::getenv("WEFT_PROCESS_INDEX") != nullptr) {
    tell(100, [] { return weft::Trainer(add<100>, options()).fit(); });
  } else {
    tell(1, [] { return weft::Trainer(add<1>, options()).fit(); });
  }
}

/// Calls fit() with a config that differs in each process.
void other_config() {
  weft::TrainerOptions with_pid = options();
  with_pid.loop_config = {{"pid", ::getpid()}};
  tell(1, [&] { return weft::Trainer(add<1>, with_pid).fit(); });
}

/// Lets main() continue in the workers while another thread is about to call fit().
void background() {
  std::thread fit([] { tell(1, [] { return weft::Trainer(add<1>, options()).fit(); }); });
  fit.join();
}

void one_after_the_other() {
  tell(1, [] { return weft::Trainer(add<1>, options(0)).fit(); });
  tell(100, [] { return weft::Trainer(add<100>, options(2)).fit(); });
  tell(1, [] { return weft::Trainer(add<1>, options(1)).fit(); });
}

weft::Loop named{"named", add<1>};

void named_loop() {
  tell(1, [] { return weft::Trainer(named, options()).fit(); });
}

void start() {
  tell(1, [] { return weft::Trainer(add<1>, options()).start().result(); });
}

/// Starts in each worker, before the worker's fit(), another program that uses weft but isn't a
/// worker.
void grandchild(const char* program) {
  weft::TrainerOptions with_program = options();
  with_program.loop_config = {{"command", std::string(program) + " one_after_the_other"}};
  tell(1, [&] {
    return weft::Trainer(
               [](TrainContext& ctx, const Config& config) {
                 const auto command = config.at("command").get<std::string>();
                 if (std::system(command.c_str()) != 0) weft::fail(weft::Errc::io, "it failed");
                 add<1>(ctx, config);
               },
               with_program)
        .fit();
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "race") race();
  if (mode == "captures") captures();
  if (mode == "captures_on_threads") captures_on_threads();
  if (mode == "captures_by_environment") captures_by_environment();
  if (mode == "captures_without_workers") captures_without_workers();
  if (mode == "functions_by_environment") functions_by_environment();
  if (mode == "branches") branches();
  if (mode == "other_config") other_config();
  if (mode == "background") background();
  if (mode == "one_after_the_other") one_after_the_other();
  if (mode == "named") named_loop();
  if (mode == "start") start();
  if (mode == "grandchild") grandchild(argv[0]);
}
