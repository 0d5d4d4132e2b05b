#include "jobs/port_folder.h"

#include <filesystem>

#include "base/file.h"
#include "io/onnx.h"
#include "jobs/engine.h"
#include "jobs/output.h"

namespace limber {
namespace {

constexpr const char* kTreeFile = "/port.json";
constexpr size_t kMostRecord = size_t{1} << 20;

}  // namespace

Result<PortFolder> PortFolder::open(const std::string& path, bool resume) {
  LIMBER_TRY(check_output_folder(path));
  std::error_code failed;
  if (!resume && std::filesystem::exists(path + kTreeFile, failed))
    return invalid("{} holds a porting already; resume it or choose another folder", path);
  std::filesystem::create_directory(path, failed);
  if (failed) return error(Code::kIo, "{}: {}", path, failed.message());
  return PortFolder(path);
}

std::optional<GoalRecord> PortFolder::find(const std::string& goal) const {
  const auto text = os_files().read(path_ + "/" + goal + "/goal.json", kMostRecord);
  if (!text.ok()) return std::nullopt;
  auto record = parse_fields<GoalRecord>(*text);
  std::error_code ignored;
  if (!record.ok() || record->name != goal) return std::nullopt;
  if (record->made && !std::filesystem::exists(model_of(goal), ignored)) return std::nullopt;
  return *std::move(record);
}

Result<Ported> PortFolder::load(const GoalRecord& record) const {
  Ported ported{.variant = record.variant, .cost = record.cost(), .accuracy = record.accuracy};
  LIMBER_ASSIGN(ported.model, load_model(model_of(record.name), {.open_batch = true}));
  ported.model.origin = nullptr;
  return ported;
}

Status PortFolder::save_model(const std::string& goal, const Model& model, const ModelCard& card) const {
  return export_onnx(model.graph, *model.params, model_of(goal), {.metadata = card_texts(card)});
}

Status PortFolder::save(const GoalRecord& record) const {
  return os_files().write(path_ + "/" + record.name + "/goal.json", format_fields(record) + "\n");
}

Status PortFolder::save_tree(const std::string& text) const {
  return os_files().write(path_ + kTreeFile, text + "\n");
}

}  // namespace limber
