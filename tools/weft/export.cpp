#include "tools/weft/export.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/error.hpp>

#include "transport/foreign/npy.hpp"
#include "transport/foreign/npz.hpp"
#include "transport/foreign/safetensors.hpp"
#include "transport/memory/utf8.hpp"
#include "transport/storage/output_file.hpp"
#include "transport/storage/state_file.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string checkpoint;
  std::string format = "safetensors";
  std::string output;
  bool optimizer_state = false;
};

/// A tensor that is to be exported.
struct Exported {
  std::size_t tensor = 0;
  NamedType type{};
};

std::vector<std::byte> elements_of(const StateFile& file, const Exported& exported) {
  std::vector<std::byte> elements(static_cast<std::size_t>(exported.type.type.bytes()));
  const TensorSource::Target target{whole_box(exported.type.type.shape), elements.data()};
  file.source(exported.tensor, exported.type.type.dtype)->read({&target, 1});
  return elements;
}

std::vector<Exported> choose(const StateFile& file, const ExportOptions& options) {
  std::vector<Exported> chosen;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const FileTensor& tensor = file.tensors()[i];
    if (tensor.kind == StateKind::opt_state && !options.optimizer_state) continue;
    if (tensor.dtype >= FileDType::i16) {
      fail(Errc::unavailable, "'{}' is {}, which weft only reads", tensor.name, tensor.label());
    }
    auto dtype = static_cast<DType>(tensor.dtype);
    if (options.format != "safetensors" && dtype == DType::bf16) {
      dtype = DType::f32;  // NumPy has no bf16
    }
    chosen.push_back({i, {tensor.name, {dtype, tensor.shape}}});
  }
  return chosen;
}

void write_safetensors(const StateFile& file, const std::vector<Exported>& chosen,
                       const ExportOptions& options) {
  std::vector<NamedType> types;
  for (const Exported& exported : chosen) types.push_back(exported.type);
  const SafetensorsLayout layout = write_safetensors_header(types, {{"format", "pt"}});
  std::vector<std::size_t> order(chosen.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return layout.begins[i]; });
  OutputFile output(options.output);
  output.write(layout.header);
  for (const std::size_t i : order) output.write(elements_of(file, chosen[i]));
  output.finish();
}

void write_npy(const StateFile& file, const std::vector<Exported>& chosen,
               const ExportOptions& options) {
  for (const Exported& exported : chosen) {
    const std::string& name = exported.type.name;
    if (name.find_first_of(std::string_view("/\0", 2)) != std::string::npos ||
        name.starts_with('.')) {
      fail(Errc::invalid_argument, "'{}' is no file's name: export it as safetensors", name);
    }
  }
  fs::create_directories(options.output);
  for (const Exported& exported : chosen) {
    const std::string& name = exported.type.name;
    OutputFile output(options.output + "/" + name + ".npy");
    output.write(write_npy_header(exported.type.type));
    output.write(elements_of(file, exported));
    output.finish();
  }
}

void write_npz(const StateFile& file, const std::vector<Exported>& chosen,
               const ExportOptions& options) {
  OutputFile output(options.output);
  NpzWriter writer([&](std::span<const std::byte> bytes) { output.write(bytes); });
  for (const Exported& exported : chosen) {
    writer.add(exported.type.name, exported.type.type, elements_of(file, exported));
  }
  writer.finish();
  output.finish();
}

int run(const ExportOptions& options) {
  const auto file = StateFile::open(options.checkpoint);
  const std::vector<Exported> chosen = choose(*file, options);
  if (options.format == "npy") {
    write_npy(*file, chosen, options);
  } else if (options.format == "npz") {
    write_npz(*file, chosen, options);
  } else {
    write_safetensors(*file, chosen, options);
  }
  fmt::print("{}: {} tensors\n", visible(options.output), chosen.size());
  return 0;
}

}  // namespace

void add_export(CLI::App& app, int& code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "write the tensors of a checkpoint to files for other programs");
  command->add_option("checkpoint", options->checkpoint, "a checkpoint's folder")->required();
  command
      ->add_option("--format", options->format,
                   "safetensors, npz: one file; npy: a folder with a file for each tensor")
      ->check(CLI::IsMember({"safetensors", "npy", "npz"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "the file or folder")->required();
  command->add_flag("--optimizer-state", options->optimizer_state,
                    "the state of optimizers too, not only parameters and buffers");
  command->footer(
      "Example:\n"
      "  weft export checkpoints/checkpoint_000640 --format safetensors -o model");
  command->callback([options, &code] { code = run(*options); });
}

}  // namespace weft
