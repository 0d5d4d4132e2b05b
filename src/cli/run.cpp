// limber run: one inference on files.
#include "base/clock.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/image_arguments.h"
#include "cli/options.h"
#include "cli/outputs.h"
#include "cli/table.h"
#include "jobs/inputs.h"

namespace limber {
namespace {

struct RunOptions : CommonOptions {
  std::vector<std::string> inputs;
  std::string output;
  ImageOptions image;
  std::string labels;
  int top = 5;
};

struct Prepared {
  std::unique_ptr<Session> session;
  std::vector<InputFiles> files;
};

// Reads the inputs, fits the model to their shapes, compiles it and fills its inputs.
Result<Prepared> prepare(RunOptions& options, Model model, std::vector<InputFiles> files) {
  std::vector<Tensor> tensors;
  for (const InputFiles& one : files) {
    const Value& value = model.graph.value(model.graph.inputs()[one.input]);
    LIMBER_ASSIGN(Tensor tensor, read_input(one, value.name, value.type, options.image));
    tensors.push_back(std::move(tensor));
  }
  LIMBER_ASSIGN(Adaptation adaptation, adapt_shapes(model.graph, files, tensors));
  if (!adaptation.shapes.empty()) {
    options.shapes.merge(adaptation.shapes);
    LIMBER_ASSIGN(model, load(options));
  }
  options.dims.merge(adaptation.dims);
  LIMBER_ASSIGN(auto plan, build(model, options, false));
  LIMBER_ASSIGN(auto session, Session::create(plan));
  for (size_t i = 0; i < files.size(); ++i) {
    Tensor target = session->input(files[i].input);
    if (target.type() != tensors[i].type()) {
      return invalid("{}: {}, the model wants {}", files[i].files[0], tensors[i].type().to_string(),
                     target.type().to_string());
    }
    std::memcpy(target.raw(), tensors[i].raw(), tensors[i].bytes());
  }
  return Prepared{std::move(session), std::move(files)};
}

std::vector<NamedTensor> outputs_of(const Session& session) {
  std::vector<NamedTensor> outputs;
  const auto& list = session.plan().graph.outputs();
  for (size_t i = 0; i < list.size(); ++i) outputs.push_back({list[i].name, session.output(i)});
  return outputs;
}

// What a row of the batch is called: its image where there is one.
std::string row_name(const Prepared& prepared, size_t row) {
  for (const InputFiles& files : prepared.files) {
    if (is_image(files.files[0]) && row < files.files.size()) return files.files[row];
  }
  return fmt::format("row {}", row);
}

std::string top_text(const Prepared& prepared, const std::vector<std::vector<ClassScore>>& rows) {
  std::string text;
  for (size_t row = 0; row < rows.size(); ++row) {
    text += row_name(prepared, row) + "\n";
    for (const ClassScore& hit : rows[row]) {
      text += fmt::format("  {:>6.2f} %  {:>5}  {}\n", 100 * hit.probability, hit.index, hit.label);
    }
  }
  return text;
}

Json top_json(const Prepared& prepared, const std::vector<std::vector<ClassScore>>& rows) {
  Json list = Json::array();
  for (size_t row = 0; row < rows.size(); ++row) {
    Json hits = Json::array();
    for (const ClassScore& hit : rows[row]) {
      hits.push(Json::object({{"class", hit.index},
                              {"label", hit.label},
                              {"score", hit.score},
                              {"probability", hit.probability}}));
    }
    list.push(Json::object({{"row", row}, {"name", row_name(prepared, row)}, {"top", hits}}));
  }
  return list;
}

void print_outputs(const std::vector<NamedTensor>& outputs, double seconds) {
  for (const NamedTensor& output : outputs)
    fmt::print("{}: {}\n", output.name, output.tensor.type().to_string());
  fmt::print("one run took {}\n", show_seconds(seconds));
}

Result<int> run(RunOptions& options) {
  options.image.seed = options.seed;
  std::vector<std::string> labels;
  if (!options.labels.empty()) {
    LIMBER_ASSIGN(labels, read_labels(options.labels));
  }
  LIMBER_ASSIGN(Model model, load(options));
  auto files = assign_files(model.graph, options.inputs);
  if (!files.ok()) return usage_error(files.status());
  LIMBER_ASSIGN(const Prepared prepared, prepare(options, std::move(model), *std::move(files)));
  const double start = now_seconds();
  LIMBER_TRY(prepared.session->run());
  const double seconds = now_seconds() - start;

  const auto outputs = outputs_of(*prepared.session);
  const auto rows = top_classes(outputs, options.top, labels);
  const std::string top = top_text(prepared, rows);
  Json written = Json::array();
  if (!options.output.empty()) {
    LIMBER_ASSIGN(written, write_outputs(options.output, outputs));
    if (!rows.empty()) LIMBER_TRY(os_files().write(options.output + "/top.txt", top));
  }
  if (options.json) {
    const Json out =
        Json::object({{"outputs", written}, {"top", top_json(prepared, rows)}, {"run_s", seconds}});
    fmt::print("{}\n", out.text());
  } else {
    print_outputs(outputs, seconds);
    fmt::print("{}", top);
  }
  return kExitDone;
}

}  // namespace

void add_run(CommandLine& line) {
  auto options = std::make_shared<RunOptions>();
  RunOptions& o = *options;
  Arguments arguments =
      line.add("run", "Run a model once on .npy files or images", [options] { return run(*options); });
  add_common(arguments, o);
  arguments.texts("-i,--input", o.inputs, "[NAME=]FILE",
                  ".npy, image or builtin:image; several images make a batch",
                  Arguments::Need::kRequired);
  arguments.text("-o,--output", o.output, "DIR", "Folder for every output as .npy, outputs.json and top.txt");
  add_image_arguments(arguments, o.image);
  arguments.text("--labels", o.labels, "FILE", "Class names, one per line");
  arguments.number("--top", o.top, 1, 1000, "Classes to print per row; default 5");
}

}  // namespace limber
