// limber run: one inference on files.
#include "base/file.h"
#include "base/show.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "jobs/output.h"
#include "jobs/outputs.h"
#include "jobs/scores.h"

namespace limber {
namespace {

struct RunCommand : RunJobOptions {
  bool json = false;
  std::string output, labels;
  int top = 5;
};

std::string row_name(const RunResult& result, size_t row) {
  return row < result.rows.size() ? result.rows[row] : fmt::format("row {}", row);
}

std::string top_text(const RunResult& result, const std::vector<std::vector<ClassScore>>& rows) {
  std::string text;
  for (size_t row = 0; row < rows.size(); ++row) {
    text += row_name(result, row) + "\n";
    for (const ClassScore& hit : rows[row]) {
      text += fmt::format("  {:>6.2f} %  {:>5}  {}\n", 100 * hit.probability, hit.index, hit.label);
    }
  }
  return text;
}

Json top_json(const RunResult& result, const std::vector<std::vector<ClassScore>>& rows) {
  const auto score = [](const ClassScore& hit) {
    return Json::object(
        {{"class", hit.index}, {"label", hit.label}, {"score", hit.score}, {"probability", hit.probability}});
  };
  Json list = Json::array();
  for (size_t row = 0; row < rows.size(); ++row) {
    list.push(
        Json::object({{"row", row}, {"name", row_name(result, row)}, {"top", Json::list(rows[row], score)}}));
  }
  return list;
}

void print_outputs(const RunResult& result) {
  for (const NamedTensor& output : result.outputs)
    fmt::print("{}: {}\n", output.name, output.tensor.type().to_string());
  fmt::print("one run took {}\n", show_seconds(result.seconds));
}

Result<int> run(const RunCommand& options) {
  Console console;
  const JobControl control{.observer = &console};
  if (!options.output.empty()) LIMBER_TRY(check_output_folder(options.output));
  std::vector<std::string> labels;
  if (!options.labels.empty()) {
    LIMBER_ASSIGN(labels, read_labels(options.labels));
  }
  LIMBER_ASSIGN(RunJob job, RunJob::open(options, control));
  if (labels.empty()) labels = job.classes();
  if (const Status status = job.assign(); !status.ok()) return usage_error(status);
  LIMBER_ASSIGN(const RunResult result, job.run(control));

  const Status numbers = check_numbers(result.outputs);
  const auto rows = numbers.ok() ? top_classes(result.outputs, options.top, labels)
                                 : std::vector<std::vector<ClassScore>>();
  const std::string top = top_text(result, rows);
  Json outputs = describe_outputs(result.outputs);
  if (!options.output.empty()) {
    LIMBER_ASSIGN(outputs, write_outputs(options.output, result.outputs));
    if (!rows.empty()) LIMBER_TRY(os_files().write(options.output + "/top.txt", top));
  }
  if (options.json) {
    const Json out =
        Json::object({{"outputs", outputs}, {"top", top_json(result, rows)}, {"run_s", result.seconds}});
    fmt::print("{}\n", out.text());
  } else {
    print_outputs(result);
    fmt::print("{}", top);
  }
  LIMBER_TRY(numbers);
  return kExitDone;
}

}  // namespace

void add_run(CommandLine& line) {
  auto options = std::make_shared<RunCommand>();
  RunCommand& o = *options;
  Arguments arguments =
      line.add("run", "Run a model once on .npy files or images", [options] { return run(*options); });
  add_common(arguments, o, o.json);
  arguments.texts("-i,--input", o.inputs, "[NAME=]FILE",
                  ".npy, image or builtin:image; several images make a batch", Arguments::Need::kRequired);
  arguments.text("-o,--output", o.output, "DIR", "Folder for every output as .npy, outputs.json and top.txt");
  add_image_arguments(arguments, o.image);
  arguments.text("--labels", o.labels, "FILE",
                 "Class names, one per line; default those saved with a training");
  arguments.number("--top", o.top, 1, 1000, "Classes to print per row; default 5");
}

}  // namespace limber
