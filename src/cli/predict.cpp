// limber predict: what is on images.
#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/say.h"
#include "jobs/json.h"
#include "jobs/output.h"
#include "jobs/predict_job.h"

namespace limber {
namespace {

enum class Format : uint8_t { kText, kCsv, kJson };

struct PredictCommand : PredictJobOptions {
  bool json = false;
  std::optional<Format> format;
  std::string labels, output;
};

// A field of a CSV line, quoted where it must be.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_of(const PredictResult& result) {
  std::string text = "image,rank,class,label,confidence\n";
  for (const Prediction& one : result.predictions) {
    for (size_t rank = 0; rank < one.top.size(); ++rank) {
      const ClassScore& hit = one.top[rank];
      text += fmt::format("{},{},{},{},{:.6f}\n", csv_field(one.image), rank + 1, hit.index,
                          csv_field(hit.label), hit.probability);
    }
  }
  return text;
}

std::string json_of(const PredictCommand& options, const PredictResult& result) {
  const auto score = [](const ClassScore& hit) {
    return Json::object({{"class", hit.index}, {"label", hit.label}, {"confidence", hit.probability}});
  };
  const auto prediction = [&](const Prediction& one) {
    return Json::object({{"image", one.image}, {"top", Json::list(one.top, score)}});
  };
  return Json::object({{"model", options.model},
                       {"images", result.predictions.size()},
                       {"seconds", result.seconds},
                       {"predictions", Json::list(result.predictions, prediction)},
                       {"skipped", Json::list(result.skipped)}})
             .text() +
         "\n";
}

std::string text_of(const PredictResult& result) {
  std::string text;
  for (const Prediction& one : result.predictions) {
    text += fmt::format("{:>6.2f} %  {}  {}\n", 100 * one.top[0].probability, one.top[0].label, one.image);
    for (size_t rank = 1; rank < one.top.size(); ++rank)
      text += fmt::format("  {:>6.2f} %  {}\n", 100 * one.top[rank].probability, one.top[rank].label);
  }
  return text;
}

// What was asked for, or what the name of the output says.
Format format_of(const PredictCommand& options) {
  if (options.json) return Format::kJson;
  if (options.format) return *options.format;
  if (options.output.ends_with(".csv")) return Format::kCsv;
  return options.output.ends_with(".json") ? Format::kJson : Format::kText;
}

Result<int> predict(PredictCommand& options) {
  if (!options.output.empty()) LIMBER_TRY(check_output_file(options.output, options.model));
  if (!options.labels.empty()) {
    LIMBER_ASSIGN(options.classes, read_labels(options.labels));
  }
  LIMBER_ASSIGN(const auto result, on_console(run_predict, options));
  if (!result) return stopped();
  for (const std::string& message : result->skipped) say("skipped: {}\n", message);
  const Format format = format_of(options);
  const std::string text = format == Format::kJson  ? json_of(options, *result)
                           : format == Format::kCsv ? csv_of(*result)
                                                    : text_of(*result);
  if (options.output.empty()) {
    fmt::print("{}", text);
  } else {
    LIMBER_TRY(os_files().write(options.output, text));
  }
  return kExitDone;
}

}  // namespace

void add_predict(CommandLine& line) {
  auto options = std::make_shared<PredictCommand>();
  PredictCommand& o = *options;
  Arguments arguments = line.add("predict", "What a classifier sees on images, the most confident first",
                                 [options] { return predict(*options); });
  add_common(arguments, o, o.json);
  arguments.texts("images", o.images, "IMAGES",
                  "Images, folders, which are searched to all depths, and archives (.tar, .zip)",
                  Arguments::Need::kRequired);
  arguments.number("--top", o.top, 1, 1000, "Classes for each image; default 1");
  arguments.choice("--format", o.format,
                   {{"text", Format::kText}, {"csv", Format::kCsv}, {"json", Format::kJson}},
                   "What to print; default what the name of FILE says, or text");
  arguments.text("-o,--output", o.output, "FILE", "Write to this file instead of stdout");
  arguments.text("--labels", o.labels, "FILE",
                 "Class names, one per line; default those saved with a training");
  add_image_arguments(arguments, o.image);
  add_bad_images_argument(arguments, o.on_bad_image);
  arguments.footer(
      "A training's folder knows its classes and how images are prepared.\n"
      "Examples:\n"
      "  limber predict RUN photos\n"
      "  limber predict RUN a.jpg b.jpg --top 3\n"
      "  limber predict model.onnx photos --labels classes.txt -o answers.csv");
}

}  // namespace limber
