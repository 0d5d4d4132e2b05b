// Options that several commands have, and what they lead to.
#pragma once

#include "cli/arguments.h"
#include "jobs/measured_step.h"
#include "jobs/source.h"

namespace limber {

// MODEL, --json, --threads, --batch, --dim, --shape, --tune, --tune-cache, --backend, --seed.
inline constexpr const char* kModelHelp = "ONNX file, folder of a training or checkpoint, or builtin:NAME";
void add_common(Arguments& arguments, JobOptions& options, bool& json,
                Arguments::Need model = Arguments::Need::kRequired, const char* model_help = kModelHelp);
// The same without MODEL.
void add_settings(Arguments& arguments, JobOptions& options, bool& json);
inline constexpr const char* kElasticModelHelp = "Folder that 'limber elastify' made";

// --train and --train-last: a training step instead of a run.
void add_train(Arguments& arguments, bool& train, int& last);
// "1x3x224x224" or "1,3,224,224"; "?" for a dimension that stays (-1). Empty when it cannot be read.
std::vector<int64_t> parse_dims(const std::string& text);

}  // namespace limber
