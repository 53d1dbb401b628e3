#include "tests/embed/hosts/split_loops.hpp"

weft::Loop split_loop{"split.loop", [](weft::TrainContext& ctx) {
                        weft::sync();
                        ctx.report({{"rank", ctx.world_rank()}});
                      }};
