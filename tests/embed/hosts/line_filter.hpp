#pragma once
/// What a host calls of the plug-in: it knows nothing of weft.

/// What came of `steps` steps on `workers` workers; -1 and a line on stderr where it failed.
using FitLine = double (*)(int steps, int workers);
