#include "tools/weft/export.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "data/formats/npy.hpp"
#include "data/formats/npz.hpp"
#include "data/formats/safetensors.hpp"
#include "data/remote/output_file.hpp"
#include "data/remote/storages.hpp"
#include "tools/weft/tensor_choice.hpp"
#include "transport/storage/state_file.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string checkpoint;
  std::string format = "safetensors";
  std::string output;
  bool optimizer_state = false;
  bool averages = false;
  TensorChoice choice{};
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

/// Returns where averages of a ParameterAverage are: the indices of their tensors, by the names of
/// the averaged parameters.
std::map<std::string, std::size_t> averages_of(const StateFile& file) {
  constexpr std::string_view kSuffix = ".average";
  std::map<std::string, std::size_t> averages;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const FileTensor& tensor = file.tensors()[i];
    if (tensor.kind != StateKind::opt_state || !tensor.name.ends_with(kSuffix)) continue;
    averages[tensor.name.substr(0, tensor.name.size() - kSuffix.size())] = i;
  }
  if (averages.empty()) {
    fail(Errc::not_found,
         "--averages: {} has no average of a parameter: save state_dict(net, optimizer, average)",
         file.path());
  }
  return averages;
}

std::vector<Exported> choose(const StateFile& file, ExportOptions& options) {
  const auto averages = options.averages ? averages_of(file) : std::map<std::string, std::size_t>();
  std::vector<Exported> chosen;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const FileTensor& tensor = file.tensors()[i];
    if (tensor.kind == StateKind::opt_state && !options.optimizer_state) continue;
    if (!options.choice.takes(tensor.name)) continue;
    if (tensor.dtype >= FileDType::i16) {
      fail(Errc::unavailable, "'{}' is {}, which weft can't write: leave it out by --filter",
           tensor.name, tensor.label());
    }
    DType dtype = options.choice.cast(static_cast<DType>(tensor.dtype));
    if (options.format != "safetensors" && dtype == DType::bf16) {
      dtype = DType::f32;  // NumPy has no bf16
    }
    const auto average = averages.find(tensor.name);
    const bool has_average = average != averages.end();
    chosen.push_back({has_average ? average->second : i,
                      {options.choice.rename(tensor.name), {dtype, tensor.shape}}});
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
      fail(Errc::invalid_argument, "'{}' can't be a file name: export it as safetensors", name);
    }
  }
  if (find_storage(options.output, "--output") == nullptr) fs::create_directories(options.output);
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

int run(ExportOptions& options) {
  options.choice.prepare();
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
  command
      ->add_option("checkpoint", options->checkpoint,
                   "a checkpoint's folder, safetensors, or a file of torch.save()")
      ->required();
  command
      ->add_option("--format", options->format,
                   "safetensors, npz: one file; npy: a folder with a file for each tensor")
      ->check(CLI::IsMember({"safetensors", "npy", "npz"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "the file or folder")->required();
  command->add_flag("--optimizer-state", options->optimizer_state,
                    "write the state of optimizers too, not only parameters and buffers");
  command->add_flag("--averages", options->averages,
                    "write the averages of a ParameterAverage instead of the parameters");
  options->choice.add_options(*command);
  command->footer(
      "Examples:\n"
      "  weft export checkpoints/checkpoint_000640 -o model.safetensors --averages --cast bf16");
  command->callback([options, &code] { code = run(*options); });
}

}  // namespace weft
