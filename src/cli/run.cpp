// limber run: one inference on files.
#include <charconv>

#include "base/clock.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/table.h"

namespace limber {
namespace {

struct RunOptions : CommonOptions {
  std::vector<std::string> inputs;
  std::string output;
  ImageOptions image;
  std::string labels;
  int top = 5;
};

// "0.5" for all channels or "0.485,0.456,0.406".
std::array<float, 3> parse_channels(const std::string& option, const std::string& text) {
  std::vector<float> values;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    float value = 0;
    const auto [stop, problem] = std::from_chars(at, end, value);
    if (problem != std::errc() || (stop != end && *stop != ',')) break;
    values.push_back(value);
    at = stop == end ? end : stop + 1;
  }
  if (at != end || (values.size() != 1 && values.size() != 3)) {
    throw CLI::ValidationError(option,
                               fmt::format("'{}' should be one number or three, as in 0.5,0.5,0.5", text));
  }
  if (values.size() == 1) values.assign(3, values[0]);
  return {values[0], values[1], values[2]};
}

void parse_std(RunOptions& options, const std::string& text) {
  options.image.normalisation.std = parse_channels("--std", text);
  for (const float x : options.image.normalisation.std) {
    if (!(x > 0)) throw CLI::ValidationError("--std", fmt::format("'{}' must be positive", text));
  }
}

void parse_size(RunOptions& options, const std::string& text) {
  options.image.size = parse_dims(text);
  for (const int64_t side : options.image.size) {
    if (side < 1 || side > kMaxImageSide || options.image.size.size() > 2) {
      throw CLI::ValidationError("--size", fmt::format("'{}' should be SIDE or HEIGHTxWIDTH", text));
    }
  }
}

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

nlohmann::json top_json(const Prepared& prepared, const std::vector<std::vector<ClassScore>>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t row = 0; row < rows.size(); ++row) {
    nlohmann::json hits = nlohmann::json::array();
    for (const ClassScore& hit : rows[row]) {
      hits.push_back({{"class", hit.index},
                      {"label", hit.label},
                      {"score", hit.score},
                      {"probability", hit.probability}});
    }
    list.push_back({{"row", row}, {"name", row_name(prepared, row)}, {"top", hits}});
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
  nlohmann::json written = nlohmann::json::array();
  if (!options.output.empty()) {
    LIMBER_ASSIGN(written, write_outputs(options.output, outputs));
    if (!rows.empty()) LIMBER_TRY(os_files().write(options.output + "/top.txt", top));
  }
  if (options.json) {
    const nlohmann::json out{{"outputs", written}, {"top", top_json(prepared, rows)}, {"run_s", seconds}};
    fmt::print("{}\n", out.dump(2));
  } else {
    print_outputs(outputs, seconds);
    fmt::print("{}", top);
  }
  return kExitDone;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Run a model once on .npy files or images");
  auto options = std::make_shared<RunOptions>();
  add_model_options(*command, *options);
  add_build_options(*command, *options);
  command
      ->add_option("-i,--input", options->inputs,
                   ".npy, JPEG, PNG or builtin:image; several images make a batch")
      ->required()
      ->type_name("[NAME=]FILE");
  command
      ->add_option("-o,--output", options->output,
                   "Folder for every output as .npy, outputs.json and top.txt")
      ->type_name("DIR");
  auto* o = options.get();
  command
      ->add_option_function<std::string>(
          "--mean",
          [o](const std::string& text) { o->image.normalisation.mean = parse_channels("--mean", text); },
          "Subtracted from pixels scaled to 0..1: one number or R,G,B (default 0)")
      ->type_name("R,G,B");
  command
      ->add_option_function<std::string>(
          "--std", [o](const std::string& text) { parse_std(*o, text); },
          "What pixels are then divided by: one number or R,G,B (default 1)")
      ->type_name("R,G,B");
  command
      ->add_option_function<std::string>(
          "--size", [o](const std::string& text) { parse_size(*o, text); },
          "Resize images to SIDExSIDE or HxW; with --crop, SIDE is the shorter side")
      ->type_name("SIDE|HxW");
  command->add_option("--crop", options->image.crop, "Then cut this square out of the middle")
      ->check(CLI::Range(1, kMaxImageSide))
      ->type_name("SIDE");
  command->add_option("--labels", options->labels, "Class names, one per line")->type_name("FILE");
  command->add_option("--top", options->top, "Classes to print per row")->check(CLI::Range(1, 1000));
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace limber
