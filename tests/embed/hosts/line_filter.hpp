#pragma once
/// The function of the plug-in that a host calls; the host knows nothing of weft.

/// Returns the result of `steps` steps on `workers` workers; if they fail, returns -1 and prints a
/// line on stderr.
using FitLine = double (*)(int steps, int workers);
