/// A service that runs training jobs, several at the same time. On request it starts, lists,
/// watches and stops jobs; it also answers while they train. When the service ends (SIGTERM), it
/// stops its jobs cleanly.
///
///   curl -X POST localhost:8080/jobs -d '{"steps": 2000}'   {"job":"93ef4a..."}
///   curl localhost:8080/jobs                                all jobs
///   curl localhost:8080/jobs/93ef4a                         a job's phase, last report, result
///   curl -X DELETE localhost:8080/jobs/93ef4a               stops the job

#include <map>
#include <mutex>
#include <string>

#include <fmt/format.h>
#include <httplib.h>
#include <CLI/CLI.hpp>

#include <weft/weft.hpp>

#include "examples/common/service.hpp"

/// The fields of a request. A request that has another key is refused.
struct FitConfig {
  int steps = 200;
  int workers = 2;
  double rate = 0.02;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FitConfig, steps, workers, rate)

/// Fits a line to points on y = 3 x - 2 by gradient descent, on all chips.
void fit_line(weft::TrainContext& ctx, const FitConfig& config) {
  std::vector<float> x;
  std::vector<float> y;
  for (int i = 0; i < 64; ++i) {
    x.push_back(static_cast<float>(i) / 32 - 1);
    y.push_back(3 * x.back() - 2);
  }
  const auto points = weft::tensors({{"x", std::move(x)}, {"y", std::move(y)}});
  const weft::Parameter slope = weft::make_parameter("slope", std::vector<float>{0}, {1});
  const weft::Parameter offset = weft::make_parameter("offset", std::vector<float>{0}, {1});
  const std::vector parameters{slope, offset};
  weft::SGD optimizer(parameters, {.lr = config.rate});
  weft::DeviceLoader batches(points, {.batch_size = points->size()});
  while (ctx.step() < static_cast<std::uint64_t>(config.steps) && !ctx.reached_preemption()) {
    for (const weft::Batch& batch : batches) {
      const weft::Tensor error = batch["x"] * slope + offset - batch["y"];
      const weft::Tensor loss = weft::mean(error * error);
      optimizer.step(weft::grad(loss, parameters));
      weft::sync();
      ctx.report({{"step", ctx.step()}, {"loss", loss.item()}});
    }
  }
  ctx.report(
      {{"step", ctx.step()}, {"slope", slope.to_vector()[0]}, {"offset", offset.to_vector()[0]}});
}

static weft::Loop fit_loop{"fit_line", fit_line};

/// The jobs of this service by id, including jobs that have ended. Thread-safe.
class Jobs {
 public:
  std::string start(const weft::Config& config, const std::string& storage) {
    weft::Job job = weft::Trainer{fit_loop,
                                  {.loop_config = config,
                                   .scaling = {.num_workers = config.value("workers", 2)},
                                   .backend = {.timeout_s = 30},
                                   .run = {.name = "fit_line",
                                           .storage_path = storage,
                                           .failure = {.max_failures = 3},
                                           .grace_s = 10}}}
                        .start();
    const std::lock_guard lock(mutex_);
    const std::string id = job.info().id;
    jobs_.emplace(id, std::move(job));
    return id;
  }
  weft::Config list() const {
    const std::lock_guard lock(mutex_);
    weft::Config all = weft::Config::array();
    for (const auto& [id, job] : jobs_) all.push_back(describe(job));
    return all;
  }
  /// Returns the job's state as JSON, or null for an unknown job.
  weft::Config show(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto job = jobs_.find(id);
    return job == jobs_.end() ? weft::Config() : describe(job->second);
  }
  bool stop(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto job = jobs_.find(id);
    if (job == jobs_.end()) return false;
    job->second.stop();
    return true;
  }
  /// Stops all jobs at the same time.
  void end() {
    const std::lock_guard lock(mutex_);
    for (auto& [id, job] : jobs_) job.stop();
    for (auto& [id, job] : jobs_) job.wait();
  }

 private:
  static weft::Config describe(const weft::Job& job) {
    weft::Config json{{"job", job.info().id}, {"latest", job.latest()}};
    if (job.phase() != weft::Job::Phase::ended) {
      json["phase"] = job.phase() == weft::Job::Phase::stopping ? "stopping" : "running";
      return json;
    }
    const weft::Result result = job.result();
    json["phase"] = "ended";
    json["ok"] = result.ok();
    json["ended_by"] = weft::to_string(result.ended_by);
    json["losses_survived"] = result.failures.size();
    if (result.error) json["error"] = result.error->message;
    return json;
  }

  mutable std::mutex mutex_;
  std::map<std::string, weft::Job> jobs_;
};

using examples::answer;

void add_routes(httplib::Server& server, Jobs& jobs, const std::string& storage) {
  server.Post("/jobs", [&jobs, storage](const auto& request, auto& response) {
    try {
      answer(response, 201, {{"job", jobs.start(weft::Config::parse(request.body), storage)}});
    } catch (const std::exception& e) {
      answer(response, 400, {{"error", e.what()}});
    }
  });
  server.Get("/jobs", [&jobs](const auto&, auto& response) { answer(response, 200, jobs.list()); });
  server.Get("/jobs/([0-9a-f]+)", [&jobs](const auto& request, auto& response) {
    const weft::Config job = jobs.show(request.matches[1]);
    if (job.is_null()) return answer(response, 404, {{"error", "no such job"}});
    answer(response, 200, job);
  });
  server.Delete("/jobs/([0-9a-f]+)", [&jobs](const auto& request, auto& response) {
    if (!jobs.stop(request.matches[1])) return answer(response, 404, {{"error", "no such job"}});
    answer(response, 202, {{"job", request.matches[1].str()}});
  });
}

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);  // doesn't return in a worker, so only the service opens the port
  int port = 8080;
  std::string storage = "~/weft_runs";
  CLI::App app{"Trains models on request."};
  app.add_option("--port", port, "port to listen at; 0: any free port");
  app.add_option("--storage", storage, "folder for the runs' folders");
  CLI11_PARSE(app, argc, argv);

  examples::Service service;
  Jobs jobs;
  add_routes(service.server(), jobs, storage);
  if (!service.serve(port)) return 1;
  jobs.end();
  fmt::print("all jobs have ended\n");
}
