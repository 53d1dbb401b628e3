#pragma once
/// The fake plug-in's functions for executables, buffers and runs, and the modules of weft's
/// self-test. The callers hold the mutex of FakeState. A function refuses a call by throwing
/// FakeError.

#include "chips/pjrt/abi/buffer_abi.hpp"
#include "chips/pjrt/abi/executable_abi.hpp"

namespace weft::testing {

void compile(pjrt::CompileArgs& args);
void get_executable(pjrt::GetExecutableArgs& args);
void num_outputs(pjrt::CountArgs& args);
void serialize(pjrt::SerializeArgs& args);
void deserialize(pjrt::DeserializeArgs& args);
void from_host(pjrt::FromHostArgs& args);
void to_host(pjrt::ToHostArgs& args);
void unsafe_pointer(pjrt::AddressArgs& args);
void execute(pjrt::ExecuteArgs& args);

/// Adds the modules of weft's self-test to the plug-in.
void add_self_test();

}  // namespace weft::testing
