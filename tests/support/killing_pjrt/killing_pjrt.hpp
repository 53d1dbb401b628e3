#pragma once
/// A PJRT plug-in for tests that passes all calls on to a real plug-in, and kills its process in
/// one of the calls. WEFT_PJRT_PLUGIN names it for tests and for the workers of their jobs.

namespace weft::testing {

/// The environment variable with the path of the real plug-in.
inline constexpr const char* kRealPluginVariable = "WEFT_TEST_REAL_PLUGIN";
/// The environment variable that says in which call the process is killed: "FUNCTION NUMBER
/// MARKER". FUNCTION is PJRT_Client_Compile, PJRT_LoadedExecutable_Execute or
/// PJRT_Buffer_ToHostBuffer. The process is killed in call NUMBER of this function. Calls are
/// counted from 1, beginning with the compilation of the first step, without those that only ask
/// for a size. The kill makes the file MARKER. If the file already exists, there is no kill.
inline constexpr const char* kKillVariable = "WEFT_TEST_KILL";

}  // namespace weft::testing
