// What a surrogate gains on one window, and what that takes: one JSON object on stdout.
//   surrogate_windows MODEL.onnx|MASTER_FOLDER DATA [name=value ...]
// Images are taken to be normalised as ImageNet's. For each family: 100 images to learn from, others to be
// scored by, at strength 5.
#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>

#include "adapt/answerer.h"
#include "adapt/methods/shot.h"
#include "adapt/surrogate/surrogate.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/ref/ref_backend.h"
#include "base/clock.h"
#include "data/corruptions.h"
#include "data/dataset.h"
#include "data/preprocess.h"
#include "io/onnx.h"
#include "variant/elastic_folder.h"

namespace limber::adapt {
namespace {

[[noreturn]] void stop(const Status& status) {
  fmt::print(stderr, "{}\n", status.message());
  std::exit(1);
}
template <typename T>
T must(Result<T> result) {
  if (!result.ok()) stop(result.status());
  return *std::move(result);
}
void must(const Status& status) {
  if (!status.ok()) stop(status);
}

// Wall clock, and what all threads computed meanwhile: the latter says more on a busy machine.
struct Took {
  double wall_s = 0, cpu_s = 0;
};
template <typename F>
Took timed(const F& work) {
  const std::clock_t cpu = std::clock();
  const double wall = now_seconds();
  work();
  return {now_seconds() - wall, static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC};
}

using Settings = std::map<std::string, std::string>;

double number(const Settings& settings, const std::string& name, double otherwise) {
  const auto found = settings.find(name);
  return found == settings.end() ? otherwise : std::strtod(found->second.c_str(), nullptr);
}

AdaptedModel load(const std::string& path, const Settings& settings) {
  AdaptedModel model;
  model.threads = static_cast<int>(number(settings, "threads", 2));
  model.backends = {make_cpu_backend({.threads = model.threads}), make_ref_backend()};
  if (is_elastic(path)) {
    ElasticFolder folder = must(load_elastic(path));
    model.graph = std::move(folder.model.base);
    model.weights = folder.model.params;
  } else {
    Model loaded = must(import_onnx(path));
    model.graph = std::move(loaded.graph);
    model.weights = loaded.params;
  }
  return model;
}

struct Images {
  Tensor pixels;
  std::vector<int64_t> labels;
};

Images take(const Dataset& data, size_t first, size_t count, const Preprocessor& prepare) {
  Images images;
  const Preprocess& how = prepare.how();
  images.pixels = must(Tensor::allocate(
      {DType::kF32, {static_cast<int64_t>(count), int64_t{3}, int64_t{how.height}, int64_t{how.width}}}));
  const size_t size = prepare.output_size();
  for (size_t i = 0; i < count; ++i) {
    const Sample sample = must(data.get(first + i));
    must(prepare.apply(sample.image, images.pixels.data<float>().subspan(i * size, size)));
    images.labels.push_back(sample.label);
  }
  return images;
}

double accuracy(const AdaptedModel& model, const Images& images) {
  const WeightSnapshot weights = must(model.weights->snapshot());
  const auto answerer = must(Answerer::create(model.graph, weights, model.backends, model.threads, 100));
  const Logits logits = must(answerer->answer(images.pixels));
  double right = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    right += std::max_element(logits[i].begin(), logits[i].end()) - logits[i].begin() == images.labels[i];
  return 100 * right / static_cast<double>(logits.size());
}

AdaptedModel copy_of(const AdaptedModel& model) {
  AdaptedModel copy = model;
  copy.weights = std::make_shared<Parameters>();
  for (const std::string& name : model.weights->names())
    copy.weights->set(name, must(must(model.weights->get(name)).copy()));
  return copy;
}

SurrogateOptions options_of(const Settings& settings) {
  SurrogateOptions o;
  o.budget.operations = number(settings, "operations", o.budget.operations);
  o.budget.block = static_cast<int64_t>(number(settings, "block", static_cast<double>(o.budget.block)));
  o.budget.least = number(settings, "least", o.budget.least);
  if (number(settings, "global", 0) > 0) o.budget.choice = UnitChoice::kGlobal;
  o.relevance = static_cast<RelevanceKind>(number(settings, "relevance", static_cast<double>(o.relevance)));
  o.prior = number(settings, "prior", o.prior);
  o.training.steps = static_cast<int>(number(settings, "steps", o.training.steps));
  o.training.rate = number(settings, "rate", o.training.rate);
  o.training.filter_share = number(settings, "filters", o.training.filter_share);
  o.training.teacher_share = number(settings, "teacher", o.training.teacher_share);
  return o;
}

struct Row {
  double as_it_came = 0, cut = 0, surrogate = 0, shot = 0;  // accuracies
  double operations = 0;
  Took first, again, shot_took;  // a window of a new domain up to a first answer, the next window, SHOT
};

Row measure(const AdaptedModel& master, const Images& window, const Images& scored, const Settings& settings) {
  Row row;
  row.as_it_came = accuracy(master, scored);
  SurrogateOptions options = options_of(settings);
  options.batch = window.pixels.shape().dim(0);
  {
    const auto surrogate = must(Surrogate::create(copy_of(master), options));
    row.first = timed([&] {
      must(surrogate->adapt(window.pixels));
      accuracy(*surrogate->remodelled(), window);
    });
    row.surrogate = accuracy(*surrogate->remodelled(), scored);
    row.operations = surrogate->operations();
    row.again = timed([&] { must(surrogate->adapt(window.pixels)); });
  }
  options.training.steps = 0;
  const auto cut = must(Surrogate::create(copy_of(master), options));
  must(cut->adapt(window.pixels));
  row.cut = accuracy(*cut->remodelled(), scored);
  if (number(settings, "shot", 1) == 0) return row;
  const AdaptedModel same_size = copy_of(*cut->remodelled());
  const auto shot = must(Shot::create(same_size, shot_im()));
  row.shot_took = timed([&] { must(shot->adapt(window.pixels)); });
  row.shot = accuracy(same_size, scored);
  return row;
}

std::string fields(const Row& sum, double rows) {
  return fmt::format("\"as_it_came\":{:.1f},\"cut\":{:.1f},\"surrogate\":{:.1f},\"shot\":{:.1f},\"first_s\":{:.2f},"
                     "\"first_cpu_s\":{:.2f},\"again_s\":{:.2f},\"again_cpu_s\":{:.2f},\"shot_s\":{:.2f},"
                     "\"shot_cpu_s\":{:.2f}",
                     sum.as_it_came / rows, sum.cut / rows, sum.surrogate / rows, sum.shot / rows,
                     sum.first.wall_s / rows, sum.first.cpu_s / rows, sum.again.wall_s / rows,
                     sum.again.cpu_s / rows, sum.shot_took.wall_s / rows, sum.shot_took.cpu_s / rows);
}

void add(const Took& one, Took& to) { to.wall_s += one.wall_s, to.cpu_s += one.cpu_s; }
void add(const Row& row, Row& to) {
  to.as_it_came += row.as_it_came, to.cut += row.cut, to.surrogate += row.surrogate, to.shot += row.shot;
  add(row.first, to.first), add(row.again, to.again), add(row.shot_took, to.shot_took);
}

int run(const std::string& model, const std::string& data, const Settings& settings) {
  const AdaptedModel master = load(model, settings);
  OpenOptions opening;
  opening.split = Split::kTest;
  const std::shared_ptr<const Dataset> clean = must(open_dataset(data, opening));
  Preprocess how;
  const Shape& shape = master.graph.type(master.graph.inputs()[0]).shape;
  how.height = static_cast<int>(shape.dim(2));
  how.width = static_cast<int>(shape.dim(3));
  use_preset(must(find_preset("imagenet")), how);
  how.resize = 0;
  const Preprocessor prepare = must(Preprocessor::make(how));
  const auto window = static_cast<size_t>(number(settings, "window", 100));
  const auto count = static_cast<size_t>(number(settings, "scored", 1000));
  const auto windows = static_cast<size_t>(number(settings, "windows", 1));
  fmt::print("{{\"families\":[");
  Row sum;
  double rows = 0;
  for (const Corruption kind : {Corruption::kSpeckleNoise, Corruption::kGaussianBlur, Corruption::kSpatter,
                                Corruption::kSaturate}) {
    const auto corrupted = corrupt_dataset(clean, kind, 5, 1);
    const Images scored = take(*corrupted, 5000, count, prepare);
    for (size_t w = 0; w < windows; ++w) {
      const Images unlabelled = take(*corrupted, 1000 + 37 * w + w * window, window, prepare);
      const Row row = measure(master, unlabelled, scored, settings);
      fmt::print("{}{{\"family\":\"{}\",\"operations\":{:.3f},{}}}\n", rows > 0 ? "," : "",
                 corruption_name(kind), row.operations, fields(row, 1));
      add(row, sum);
      ++rows;
    }
  }
  fmt::print("],\"mean\":{{{}}}}}\n", fields(sum, rows));
  return 0;
}

}  // namespace
}  // namespace limber::adapt

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "surrogate_windows MODEL.onnx|MASTER_FOLDER DATA [name=value ...]\n");
    return 2;
  }
  limber::adapt::Settings settings;
  for (int i = 3; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = text.find('=');
    if (equals != std::string::npos) settings[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return limber::adapt::run(argv[1], argv[2], settings);
}
