#include "actors/runtime/plan_store.hpp"

#include <filesystem>
#include <vector>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "data/files/file_bytes.hpp"
#include "data/remote/output_file.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "transport/format/plan_file.hpp"

namespace weft {
namespace {

/// Returns the types of a program's inputs or outputs.
template <typename Side>
std::vector<TensorType> types_of(const Program& program, const std::vector<Side>& side) {
  std::vector<TensorType> types;
  for (const auto& each : side) types.push_back(program.type(each.value));
  return types;
}

}  // namespace

PlanStore::PlanStore(std::string folder, const Mesh& mesh, const Target& target)
    : folder_(std::move(folder)), mesh_(mesh) {
  if (!is_on()) return;
  std::vector<int> devices;
  for (int position = 0; position < mesh.size(); ++position) {
    devices.push_back(mesh.device_at(position));
  }
  // The executable's file identifies the build of the compiler in it.
  const std::string text =
      fmt::format("{} {} {} {} {}", mesh.to_string(), fmt::join(devices, ","), mesh.dcn_atoms(),
                  target.name, file_identity("/proc/self/exe"));
  suffix_ = fmt::format("{:016x}", std::hash<std::string>()(text));
}

std::string PlanStore::path(const Fingerprint& key) const {
  return fmt::format("{}/{}-{}.weftplan", folder_, key.to_string(), suffix_);
}

std::shared_ptr<const Plan> PlanStore::load(const Fingerprint& key, const Program& program) const {
  if (!is_on()) return nullptr;
  try {
    auto plan = std::make_shared<Plan>(decode_plan(read_file_bytes(path(key), kPlanBytesMax)));
    verify(*plan, mesh_);
    if (types_of(program, program.inputs) != plan->input_types ||
        types_of(program, program.outputs) != plan->output_types) {
      fail(Errc::corrupt, "is the plan of another program");
    }
    return plan;
  } catch (const Error& error) {
    if (error.code() == Errc::not_found) return nullptr;
    logger("weft.worker")->warn("{}: {}; the program is compiled again", path(key), error.what());
    return nullptr;
  }
}

void PlanStore::keep(const Fingerprint& key, const Plan& plan) const {
  if (!is_on()) return;
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  try {
    OutputFile out(path(key));
    out.write(encode_plan(plan));
    out.finish();
  } catch (const Error& error) {
    logger("weft.worker")->warn("WEFT_COMPILE_CACHE: {}", error.what());
  }
}

}  // namespace weft
