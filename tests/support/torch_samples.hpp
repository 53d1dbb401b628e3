#pragma once
/// Runs small samples of ops and compares them with torch (tests/golden/torch/samples.py,
/// edges.py).

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weft::testing {

using Json = nlohmann::json;

/// Reads the samples in a file of tests/golden/torch, one per line, or in all files of a folder.
std::vector<Json> torch_samples(const std::string& name);

/// Runs a sample in the calling thread's RuntimeScope. Returns how its values or gradients differ
/// from torch's, or weft's error; "" if all agree.
std::string disagreement(const Json& sample);

}  // namespace weft::testing
