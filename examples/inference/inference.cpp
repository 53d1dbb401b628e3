/// A service that recognizes hand-written digits with a network that a job trains meanwhile. Actors
/// answer from the newest published parameters. Workers and actors that are killed are replaced.
/// SIGTERM stops the job and ends the service.
///
///   curl localhost:8080/job                                    the job's id and last report
///   curl -X POST localhost:8080/digits -d '[[0,0,5,13, ...]]'  {"digits":[0],"version":420}
///
/// An image is 64 pixels from 0 to 16, as in a line of examples/data/digits.csv.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <httplib.h>
#include <CLI/CLI.hpp>

#include <weft/actor.hpp>
#include <weft/session.hpp>
#include <weft/weft.hpp>

#include "examples/common/digits_data.hpp"
#include "examples/common/service.hpp"

namespace {

constexpr std::size_t kImagesMax = 256;  // of a request

struct Net : weft::Module {
  weft::Linear hidden{*this, "hidden", {.in_features = digits::kPixels, .out_features = 128}};
  weft::Linear out{*this, "out", {.in_features = 128, .out_features = digits::kClasses}};
  weft::Tensor operator()(const weft::Tensor& x) const { return out(weft::relu(hidden(x))); }
};

/// Trains until the job is stopped, and publishes the parameters every 20 steps.
void train(weft::TrainContext& ctx, const weft::Config& config) {
  const digits::Data data = digits::load(config.at("data"));
  Net net;
  weft::AdamW optimizer(net.parameters(), {.lr = 2e-3});
  weft::Publisher publisher(ctx, "net", net.parameters());
  weft::DeviceLoader batches(
      data.train,
      {.batch_size = 64, .shuffle = true, .input_sharding = weft::PartitionSpec{{"data"}}});
  for (;;) {
    for (const weft::Batch& batch : batches) {
      if (ctx.reached_preemption()) return;
      const weft::Tensor loss = weft::cross_entropy(net(batch["x"]), batch["y"]);
      optimizer.step(weft::grad(loss, net.parameters()));
      const bool is_published = ctx.step() % 20 == 0;
      if (is_published) publisher.publish();
      weft::sync();
      if (is_published) ctx.report({{"step", ctx.step()}, {"loss", loss.item()}});
    }
  }
}
weft::Loop train_loop{"inference.train", train};

struct Answer {
  std::vector<std::int32_t> digits{};
  std::uint64_t version = 0;
};

class Reader {
 public:
  explicit Reader(weft::ActorContext& ctx) : parameters_(ctx.parameters("net")) {}
  /// Recognizes images f32[n,64]. The function is const, so a call is repeated if this process dies
  /// before it answers.
  Answer read(const weft::HostTensor& images) const {
    const weft::ParameterView view = parameters_.newest();
    session_.bind(net_, view);
    const weft::Tensor x = weft::to_device(images.elements, images.shape);
    return {.digits = weft::argmax(net_(x), 1).to_vector<std::int32_t>(),
            .version = view.version()};
  }
  using endpoints = weft::Endpoints<&Reader::read>;

 private:
  mutable weft::Session session_;
  Net net_;
  weft::Parameters parameters_;
};
weft::ActorType<Reader> reader{"inference.reader"};

/// Copies the images of a request to shared memory, as rows of a tensor. The number of rows is
/// rounded up to a power of two, so that Sessions compile few programs; additional rows are empty.
/// Throws std::invalid_argument.
weft::HostTensor images_of(const weft::Config& request, weft::ActorSystem& system) {
  if (!request.is_array() || request.empty() || request.size() > kImagesMax) {
    throw std::invalid_argument(
        fmt::format("expected an array of 1 to {} images, each an array of {} numbers", kImagesMax,
                    digits::kPixels));
  }
  const auto rows = static_cast<std::int64_t>(std::bit_ceil(request.size()));
  weft::LoanedTensor loan = system.loan({weft::DType::f32, {rows, digits::kPixels}});
  const std::span<float> pixels = loan.get<float>();
  std::ranges::fill(pixels, 0.0F);
  std::size_t next = 0;
  for (const weft::Config& image : request) {
    const auto is_number = [](const weft::Config& pixel) { return pixel.is_number(); };
    if (!image.is_array() || image.size() != std::size_t{digits::kPixels} ||
        !std::ranges::all_of(image, is_number)) {
      throw std::invalid_argument(fmt::format("image {}: expected an array of {} numbers",
                                              next / digits::kPixels, digits::kPixels));
    }
    for (const weft::Config& pixel : image) pixels[next++] = pixel.get<float>() / 16;
  }
  return std::move(loan).finish();
}

void add_routes(httplib::Server& server, const weft::Job& job, weft::ActorSystem& system,
                const weft::ActorMesh<Reader>& readers) {
  server.Get("/job", [&job](const auto&, auto& response) {
    examples::answer(response, 200, {{"job", job.info().id}, {"latest", job.latest()}});
  });
  server.Post("/digits", [&system, &readers](const auto& request, auto& response) {
    try {
      const weft::Config images = weft::Config::parse(request.body);
      const Answer answer = readers.any().call<&Reader::read>(images_of(images, system)).get();
      const std::span<const std::int32_t> digits(answer.digits.data(), images.size());
      examples::answer(response, 200, {{"digits", digits}, {"version", answer.version}});
    } catch (const weft::Error& e) {  // the job has failed, or its processes die again and again
      examples::answer(response, 503, {{"error", e.what()}});
    } catch (const std::exception& e) {
      examples::answer(response, 400, {{"error", e.what()}});
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  int port = 8080;
  int workers = 2;
  std::string storage = "~/weft_runs";
  std::string data = DIGITS_CSV;
  CLI::App app{"Recognizes digits with a network that is being trained."};
  app.add_option("--port", port, "port to listen at; 0: any free port");
  app.add_option("--workers", workers, "worker processes that train");
  app.add_option("--storage", storage, "folder for the run's folder");
  app.add_option("--data", data, "file of images and digits");
  CLI11_PARSE(app, argc, argv);

  examples::Service service;
  weft::ActorSystem system{{.name = "inference"}};
  weft::Job job =
      weft::Trainer{
          train_loop,
          {.loop_config = {{"data", data}},
           .scaling = {.num_workers = workers},
           .run = {.name = "inference", .storage_path = storage, .failure = {.max_failures = -1}}}}
          .start();
  fmt::print("job {}\n", job.info().id);
  const auto readers = system.spawn(reader, {.count = 2,
                                             .place = weft::processes(2),
                                             .own_thread = true,
                                             .lives_with = &job,
                                             .supervision = {.max_restarts = -1}});
  add_routes(service.server(), job, system, readers);
  const bool has_served = service.serve(port);
  job.stop();
  const weft::Result result = job.result();
  const bool has_failed = !result.ok() && result.ended_by != weft::EndedBy::stop;
  if (has_failed) fmt::print("the job has failed: {}\n", result.error->message);
  fmt::print("the job has ended with {} losses of workers\n", result.failures.size());
  return has_served && !has_failed ? 0 : 1;
}
