#include "api/bridge.h"
#include "api/work.h"
#include "limber/limber.h"

namespace limber {
inline namespace v1 {
namespace {

struct ElementFacts {
  const char* name;
  size_t size;
};

constexpr ElementFacts kElements[] = {{"float32", 4}, {"float64", 8}, {"float16", 2}, {"bfloat16", 2},
                                      {"int8", 1},    {"uint8", 1},   {"int16", 2},   {"uint16", 2},
                                      {"int32", 4},   {"uint32", 4},  {"int64", 8},   {"uint64", 8},
                                      {"bool", 1}};

Expected<TensorView> find(const char* what, std::string_view name, std::span<const TensorView> views) {
  for (const TensorView& view : views) {
    if (view.name == name) return view;
  }
  return bridge::no_such(what, std::string(name), views);
}

}  // namespace

size_t element_size(ElementType type) { return kElements[static_cast<size_t>(type)].size; }
const char* element_name(ElementType type) { return kElements[static_cast<size_t>(type)].name; }

Session::Session(std::unique_ptr<bridge::SessionHandle> handle) : handle_(std::move(handle)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::span<const TensorView> Session::inputs() const { return handle_->inputs(); }
std::span<const TensorView> Session::outputs() const { return handle_->outputs(); }
Expected<TensorView> Session::input(std::string_view name) const { return find("input", name, inputs()); }
Expected<TensorView> Session::output(std::string_view name) const { return find("output", name, outputs()); }
Error Session::run() { return handle_->run(); }
int Session::threads() const { return handle_->threads(); }
size_t Session::working_bytes() const { return handle_->working_bytes(); }

Expected<Session> Session::clone() const {
  auto handle = handle_->clone();
  if (!handle) return handle.error();
  return Session(*std::move(handle));
}

Model::Model(std::unique_ptr<bridge::ModelHandle> handle) : handle_(std::move(handle)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Expected<Model> Model::load(const std::string& path, const LoadOptions& options) {
  auto handle = bridge::load(path, options.shapes);
  if (!handle) return handle.error();
  return Model(*std::move(handle));
}

Expected<Model> Model::load_bytes(std::span<const std::byte> bytes, const std::string& label,
                                  const LoadOptions& options) {
  auto handle = bridge::load_bytes(bytes, label, options.shapes);
  if (!handle) return handle.error();
  return Model(*std::move(handle));
}

std::span<const TensorInfo> Model::inputs() const { return handle_->inputs(); }
std::span<const TensorInfo> Model::outputs() const { return handle_->outputs(); }
int64_t Model::parameter_count() const { return handle_->parameter_count(); }

Expected<Session> Model::compile(const CompileOptions& options) const {
  auto handle = handle_->compile({.threads = options.threads,
                                  .batch = options.batch,
                                  .symbols = options.symbols,
                                  .tune = options.tune,
                                  .tune_cache = options.tune_cache,
                                  .memory_limit = options.memory_limit});
  if (!handle) return handle.error();
  return Session(*std::move(handle));
}

Error Model::save(const std::string& path) const { return handle_->save(path); }

Elastic::Elastic(std::unique_ptr<bridge::ElasticHandle> handle) : handle_(std::move(handle)) {}
Elastic::~Elastic() = default;
Elastic::Elastic(Elastic&&) noexcept = default;
Elastic& Elastic::operator=(Elastic&&) noexcept = default;

Expected<Elastic> Elastic::open(const std::string& folder) {
  auto handle = bridge::open_elastic(folder);
  if (!handle) return handle.error();
  return Elastic(*std::move(handle));
}

Expected<std::vector<KnownVariant>> Elastic::known(int threads) const { return handle_->known(threads); }

Expected<KnownVariant> Elastic::choose(const VariantBudget& budget, int threads) const {
  return handle_->choose(budget, threads);
}

Expected<Model> Elastic::model(const std::string& variant) const {
  auto handle = handle_->model(variant);
  if (!handle) return handle.error();
  return Model(*std::move(handle));
}

Expected<TrainReport> train(const TrainSettings& settings, const TrainControl& control) {
  return bridge::train(settings, control);
}

Expected<EvaluateReport> evaluate(const EvaluateSettings& settings, const Control& control) {
  return bridge::evaluate(settings, control);
}

Expected<ElastifyReport> elastify(const ElastifySettings& settings, const Control& control) {
  return bridge::elastify(settings, control);
}

Expected<SearchReport> search(const SearchSettings& settings, const Control& control) {
  return bridge::search(settings, control);
}

std::vector<std::string> builtin_models() { return bridge::builtin_names(); }
std::string_view version() { return LIMBER_VERSION; }

}  // namespace v1
}  // namespace limber
